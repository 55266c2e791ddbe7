//! Plays a note live: one thread controls the session, another one stands for the audio callback of
//! a host.
//!
//! `cargo run -p ondes-engine --example realtime_session -- assets/models/bowed.ondes`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::instrument::EventKind;
use ondes_engine::model::file;
use ondes_engine::pipeline::{Action, ControlId, PipelineOptions};
use ondes_engine::realtime::{
    BlockCommand, Health, LoadError, LoadStatus, PlayableModel, Session, SessionController, Setup,
};

const SETUP: Setup = Setup {
    sample_rate: 48_000,
    max_block: 256,
};

/// Plays a note for a second, and returns the peak of the output and the counters of the session.
pub fn play(model: &Path) -> Result<(f32, Health), Box<dyn Error>> {
    // The controller stays with the main thread. It loads models on a thread of its own.
    let controller = SessionController::new();
    let path: PathBuf = model.into();
    let load = move || {
        let model = file::read(&path).map_err(|error| LoadError::from(error.to_string()))?;
        Ok(Arc::new(PlayableModel::new(
            Arc::new(model),
            PipelineOptions::default(),
        )?) as _)
    };
    controller.load(Box::new(load), &[(ControlId::new("room"), 0.5)]);
    while controller.status() == LoadStatus::Loading {
        std::thread::sleep(Duration::from_millis(1));
    }
    if let LoadStatus::Failed(reason) = controller.status() {
        return Err(reason.into());
    }

    // The session moves to the audio thread.
    let session = controller.activate(SETUP)?;
    let callback = std::thread::spawn(move || run_callback(session));
    let peak = callback.join().map_err(|_| "the audio thread panicked")?;
    let health = controller.health().ok_or("no model plays")?;
    Ok((peak, health))
}

/// Calls the session at the rate of an audio device, and returns the peak of the output.
fn run_callback(mut session: Session) -> f32 {
    let (mut left, mut right) = ([0.0; SETUP.max_block], [0.0; SETUP.max_block]);
    let mut peak = 0.0_f32;
    let start = Instant::now();
    for block in 0..SETUP.sample_rate as usize / SETUP.max_block {
        let note = EventKind::NoteOn {
            channel: 0,
            key: 57,
            velocity: 0.8,
        };
        let commands = [BlockCommand {
            offset: 0,
            action: Action::Play(note),
        }];
        let commands = if block == 0 { &commands[..] } else { &[] };
        session.process(commands, &[], &mut [&mut left, &mut right]);
        peak = left
            .iter()
            .fold(peak, |peak, sample| peak.max(sample.abs()));
        let seconds = (block + 1) as f64 * SETUP.max_block as f64 / f64::from(SETUP.sample_rate);
        std::thread::sleep(Duration::from_secs_f64(seconds).saturating_sub(start.elapsed()));
    }
    peak
}

#[allow(dead_code, reason = "unused where a test includes this file")]
fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args()
        .nth(1)
        .ok_or("usage: realtime_session MODEL")?;
    let (peak, health) = play(model.as_ref())?;
    println!("peak {:.1} dB, {health:#?}", 20.0 * peak.log10());
    Ok(())
}
