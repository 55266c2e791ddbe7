//! Short measurement of the cost of playing a model on this machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineError, PipelineOptions, latency_at};
use serde::Serialize;

/// Time for all measurements of a model: short enough not to be noticed, long enough for two
/// digits.
const BUDGET: Duration = Duration::from_millis(120);
/// Trials of a measurement.
const TRIALS: u32 = 6;
/// Block length, samples, as a host would ask for.
const BLOCK: usize = 256;
/// Sample rates of hosts for which the latency is stated, Hz.
const HOST_RATES: [u32; 4] = [44_100, 48_000, 88_200, 96_000];

/// Cost of one way to play a model.
#[derive(Serialize)]
pub struct PlaybackCost {
    /// Description of the test input.
    pub what: String,
    /// Executor that ran the network.
    pub executor: String,
    /// Time per sample, ns.
    pub ns_per_sample: f64,
    /// Seconds of sound per second of computation, on one core.
    pub realtime_factor: f64,
    /// Memory of weights, states and buffers for all voices, bytes.
    pub memory_bytes: usize,
    /// Latency at the model's own rate, samples.
    pub latency_samples: usize,
    /// Latency, ms.
    pub latency_ms: f64,
    /// Latency in ms, with the conversion of rates, by the host's sample rate in Hz.
    pub latency_ms_at: BTreeMap<u32, f64>,
}

/// Measures a model in the ways that its kind is played.
///
/// # Errors
/// Returns an error if the model cannot be played.
pub fn measure(model: &Model) -> Result<Vec<PlaybackCost>, PipelineError> {
    match model.header().kind {
        Kind::Instrument => Ok(vec![
            measure_note(model)?,
            measure_sound(model, "following a recording", BUDGET / 2)?,
        ]),
        Kind::Effect | Kind::Codec => Ok(vec![measure_sound(model, "a recording", BUDGET)?]),
        Kind::Generator => Ok(vec![measure_sound(model, "on its own", BUDGET)?]),
    }
}

/// Measures one held note through the whole pipeline.
fn measure_note(model: &Model) -> Result<PlaybackCost, PipelineError> {
    let mut pipeline = set_up(model, ControlSource::Notes)?;
    let performance = model.header().performance.unwrap_or_default();
    let key = (0.5 * (performance.pitch_low + performance.pitch_high)) as u8;
    let (mut block, mut position) = ([0.0; BLOCK], 0);
    let ns_per_sample = time(BUDGET / 2, BLOCK, || {
        if pipeline.sounding() == 0 {
            let kind = EventKind::NoteOn {
                channel: 0,
                key,
                velocity: 0.8,
            };
            // If the event queue is full the note starts a block later.
            let _ = pipeline.handle(Event { at: position, kind });
        }
        pipeline.process(&[], &mut block);
        position += BLOCK as u64;
    });
    pipeline_cost(
        "one note",
        model,
        (&pipeline, ControlSource::Notes),
        ns_per_sample,
    )
}

/// Measures one session whose input is a sawtooth of 220 Hz.
fn measure_sound(
    model: &Model,
    what: &str,
    budget: Duration,
) -> Result<PlaybackCost, PipelineError> {
    let mut pipeline = set_up(model, ControlSource::AudioInput)?;
    let step = 220.0 / model.header().sample_rate as f32;
    let (mut input, mut block, mut phase) = ([0.0; BLOCK], [0.0; BLOCK], 0.0_f32);
    let ns_per_sample = time(budget, BLOCK, || {
        for sample in &mut input {
            phase = (phase + step).fract();
            *sample = 0.4 * (phase - 0.5);
        }
        pipeline.process(&input, &mut block);
    });
    pipeline_cost(
        what,
        model,
        (&pipeline, ControlSource::AudioInput),
        ns_per_sample,
    )
}

fn set_up(model: &Model, source: ControlSource) -> Result<Pipeline, PipelineError> {
    let sample_rate = model.header().sample_rate;
    Pipeline::new(
        model,
        &PipelineOptions {
            sample_rate,
            source,
            ..Default::default()
        },
    )
}

fn pipeline_cost(
    what: &str,
    model: &Model,
    (pipeline, source): (&Pipeline, ControlSource),
    ns_per_sample: f64,
) -> Result<PlaybackCost, PipelineError> {
    let header = model.header();
    let rate = f64::from(header.sample_rate);
    let latency_samples = pipeline.latency_samples();
    let has_input = source == ControlSource::AudioInput;
    let latency_at = |host: u32| {
        let samples = latency_at(host, header.sample_rate, latency_samples, has_input)?;
        Ok::<_, PipelineError>((host, 1e3 * samples as f64 / f64::from(host)))
    };
    Ok(PlaybackCost {
        what: what.to_owned(),
        executor: pipeline.executor(),
        ns_per_sample,
        realtime_factor: 1e9 / (ns_per_sample * rate),
        memory_bytes: pipeline.bytes(),
        latency_samples,
        latency_ms: 1e3 * latency_samples as f64 / rate,
        latency_ms_at: HOST_RATES
            .into_iter()
            .map(latency_at)
            .collect::<Result<_, _>>()?,
    })
}

/// Returns the time per sample in ns of a step of `samples` samples: the fastest of several trials,
/// which exclude what other programs take. The first quarter of the budget warms up caches and
/// clock.
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
    (0..TRIALS)
        .map(|_| measure(3 * budget / (4 * TRIALS)))
        .fold(f64::INFINITY, f64::min)
}
