//! Measures the time from loading a model into a session to its first sound.
//!
//! `cargo run --release -p ondes-engine --example load_time -- assets/models/*.ondes`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::instrument::EventKind;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Action, PipelineOptions};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadStatus, PlayableModel, SessionController, Setup,
};

const SETUP: Setup = Setup {
    sample_rate: 48_000,
    max_block: 64,
};
/// Runs per model and driver; the fastest counts.
const RUNS: usize = 7;

/// Returns the time until the model is ready, and until the first sample that is not silent.
fn measure(model: &Arc<Model>, driver: Driver) -> Result<(Duration, Duration), Box<dyn Error>> {
    let controller = SessionController::new();
    controller.set_driver(driver);
    let mut session = controller.activate(SETUP)?;
    let model = model.clone();
    let start = Instant::now();
    let load = move || Ok(Arc::new(PlayableModel::new(model, PipelineOptions::default())?) as _);
    controller.load(Box::new(load), &[]);
    let note = Action::Play(EventKind::NoteOn {
        channel: 0,
        key: 57,
        velocity: 0.9,
    });
    let mut commands = vec![BlockCommand {
        offset: 0,
        action: note,
    }];
    let (input, mut output) = ([0.1; 64], [0.0; 64]);
    let mut ready = None;
    loop {
        if ready.is_none() && controller.status() != LoadStatus::Loading {
            ready = Some(start.elapsed());
        }
        session.process(&commands, &[&input], &mut [&mut output]);
        commands.clear();
        if output.iter().any(|sample| sample.abs() > 1e-4) {
            return Ok((ready.unwrap_or_else(|| start.elapsed()), start.elapsed()));
        }
        // As fast as the device asks: a callback every 1.3 ms.
        std::thread::sleep(Duration::from_micros(1333));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let model = Arc::new(file::read(path.as_ref())?);
        for (name, driver) in [
            ("inline", Driver::Inline),
            ("worker", Driver::Worker { latency: None }),
            ("auto", Driver::Auto),
        ] {
            let runs: Vec<(Duration, Duration)> = (0..RUNS)
                .map(|_| measure(&model, driver))
                .collect::<Result<_, _>>()?;
            let ready = runs.iter().map(|run| run.0).min().unwrap_or_default();
            let sound = runs.iter().map(|run| run.1).min().unwrap_or_default();
            println!("{path} {name}: ready after {ready:.1?}, first sound after {sound:.1?}");
        }
    }
    Ok(())
}
