//! What playing a model takes on this machine, measured on the spot.

use std::time::{Duration, Instant};

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{Pipeline, PipelineError, PipelineOptions, Source};
use serde::Serialize;

/// Time for all measuring of a model: too short to be waited for, long enough for two digits.
const BUDGET: Duration = Duration::from_millis(120);
/// Samples at a time, as a host would ask for.
const BLOCK: usize = 256;

/// What one way to play a model takes.
#[derive(Serialize)]
pub struct Cost {
    /// What was measured.
    pub what: String,
    /// What computes it.
    pub executor: String,
    /// Time for a sample, ns.
    pub ns_per_sample: f64,
    /// Seconds of sound made in a second, on one core.
    pub realtime_factor: f64,
    /// Memory of weights, states and buffers for all voices, bytes.
    pub memory_bytes: usize,
    /// From what is played to what is heard, at the model's own rate.
    pub latency_samples: usize,
    /// The same, ms.
    pub latency_ms: f64,
}

/// Measures a model as a player would use it.
///
/// # Errors
/// When the model cannot be played.
pub fn measure(model: &Model) -> Result<Vec<Cost>, PipelineError> {
    match model.header().kind {
        Kind::Instrument => Ok(vec![measure_note(model)?, measure_sound(model, "following a recording", BUDGET / 2)?]),
        Kind::Effect | Kind::Codec => Ok(vec![measure_sound(model, "a recording", BUDGET)?]),
        Kind::Generator => Ok(vec![measure_sound(model, "on its own", BUDGET)?]),
    }
}

/// One held note through the whole pipeline.
fn measure_note(model: &Model) -> Result<Cost, PipelineError> {
    let mut pipeline = set_up(model, Source::Notes)?;
    let performance = model.header().performance.unwrap_or_default();
    let key = (0.5 * (performance.pitch_low + performance.pitch_high)) as u8;
    let (mut block, mut position) = ([0.0; BLOCK], 0);
    let ns_per_sample = time(BUDGET / 2, BLOCK, || {
        if pipeline.sounding() == 0 {
            let kind = EventKind::NoteOn { channel: 0, key, velocity: 0.8 };
            // Hardly any events wait, so there is room; if not, the note comes a block later.
            let _ = pipeline.handle(Event { at: position, kind });
        }
        pipeline.process(&[], &mut block);
        position += BLOCK as u64;
    });
    Ok(pipeline_cost("one note", model, &pipeline, ns_per_sample))
}

/// One session that hears a sound: a sawtooth of 220 Hz.
fn measure_sound(model: &Model, what: &str, budget: Duration) -> Result<Cost, PipelineError> {
    let mut pipeline = set_up(model, Source::Sound)?;
    let step = 220.0 / model.header().sample_rate as f32;
    let (mut input, mut block, mut phase) = ([0.0; BLOCK], [0.0; BLOCK], 0.0_f32);
    let ns_per_sample = time(budget, BLOCK, || {
        for sample in &mut input {
            phase = (phase + step).fract();
            *sample = 0.4 * (phase - 0.5);
        }
        pipeline.process(&input, &mut block);
    });
    Ok(pipeline_cost(what, model, &pipeline, ns_per_sample))
}

fn set_up(model: &Model, source: Source) -> Result<Pipeline, PipelineError> {
    let sample_rate = model.header().sample_rate;
    Pipeline::new(model, &PipelineOptions { sample_rate, source, ..Default::default() })
}

fn pipeline_cost(what: &str, model: &Model, pipeline: &Pipeline, ns_per_sample: f64) -> Cost {
    let rate = f64::from(model.header().sample_rate);
    let latency_samples = pipeline.latency_samples();
    Cost {
        what: what.to_owned(),
        executor: pipeline.executor(),
        ns_per_sample,
        realtime_factor: 1e9 / (ns_per_sample * rate),
        memory_bytes: pipeline.bytes(),
        latency_samples,
        latency_ms: 1e3 * latency_samples as f64 / rate,
    }
}

/// ns per sample of a step of `samples` samples. The first quarter of the time warms up caches and clock.
fn time(budget: Duration, samples: usize, mut step: impl FnMut()) -> f64 {
    let mut measure = |budget: Duration| {
        let begun = Instant::now();
        let mut steps = 0_u64;
        loop {
            step();
            steps += 1;
            let elapsed = begun.elapsed();
            if elapsed >= budget {
                return 1e9 * elapsed.as_secs_f64() / (steps * samples as u64) as f64;
            }
        }
    };
    measure(budget / 4);
    measure(3 * budget / 4)
}
