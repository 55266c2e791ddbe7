//! Quality of a capture, as played by the engine.

use ondes_engine::Kernels;
use ondes_engine::dsp::resample::resample;
use ondes_engine::executor::Execute;
use ondes_engine::model::{Measure, Model, ModelError, Port};
use ondes_engine::native::Executor;
use ondes_kernels::FlushToZero;
use serde::Serialize;

use super::align::overlapping;
use super::knobs::settings_or_defaults;
use super::level::rms_db;
use super::pair::Pair;
use super::signal::{RATE, standard};
use super::windows::Split;

/// Name of the measure on cards.
pub const ESR: &str = "error-to-signal ratio";

/// Samples per call of the executor.
const STEP: usize = 256;

/// Renders a sound through a capture, from its initial state, with its knobs at their defaults.
///
/// # Errors
/// Returns an error if the model is no effect with one input and one output channel at its sample
/// rate.
pub fn play(model: &Model, dry: &[f32]) -> Result<Vec<f32>, ModelError> {
    play_method(model, "forward", &[], dry)
}

/// Renders a sound through a size of a capture with its knobs at these settings; none for their
/// defaults.
///
/// # Errors
/// As [`play`].
pub fn play_method(
    model: &Model,
    method: &str,
    settings: &[f32],
    dry: &[f32],
) -> Result<Vec<f32>, ModelError> {
    let settings = settings_or_defaults(model, settings);
    let plan = model.method(method)?;
    let is_mono = |port: &Port| port.channels == 1 && port.ratio == 1;
    let is_knob = |port: &Port| {
        model
            .header()
            .controls
            .iter()
            .any(|control| control.name == port.name)
    };
    let (sound, knobs) = plan.inputs.split_at(plan.inputs.len().min(1));
    let fits =
        sound.iter().chain(&plan.outputs).chain(knobs).all(is_mono) && knobs.iter().all(is_knob);
    if !fits || sound.is_empty() || plan.outputs.len() != 1 {
        return Err(ModelError::Header(
            "not a model with one input and one output channel".into(),
        ));
    }
    let block = plan.block;
    let mut executor = Executor::new(model, method, Kernels::detect(), 1, STEP.div_ceil(block))?;
    let _flush = FlushToZero::on();
    let mut wet = Vec::with_capacity(dry.len() + STEP);
    for chunk in dry.chunks(STEP.div_ceil(block) * block) {
        executor.begin(&[0], chunk.len().div_ceil(block));
        let input = executor.input(0);
        input.fill(0.0);
        input[..chunk.len()].copy_from_slice(chunk);
        for (port, setting) in settings.iter().enumerate() {
            executor.input(port + 1).fill(*setting);
        }
        executor.run();
        wet.extend_from_slice(&executor.output(0)[..chunk.len()]);
    }
    Ok(wet)
}

/// Returns the error-to-signal ratio, Σ(y − ŷ)² / Σy²; 0 is perfect, 1 equals silence.
#[must_use]
pub fn esr(target: &[f32], sound: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let error: f64 = target
        .iter()
        .zip(sound)
        .map(|(y, x)| square(f64::from(*y) - f64::from(*x)))
        .sum();
    error
        / target
            .iter()
            .map(|y| square(f64::from(*y)))
            .sum::<f64>()
            .max(1e-20)
}

/// Quality of a capture on a pair.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Length of the held-out part, seconds.
    pub held_out_seconds: f64,
    /// Error on the held-out part.
    pub held_out: Measure,
    /// Length of the pair, seconds.
    pub seconds: f64,
    /// Error on the whole pair.
    pub all: Measure,
}

/// Uncertainty of a delay that was measured without clicks, samples.
const DELAY_UNCERTAINTY: i64 = 8;

/// Measures a capture on a pair; the baseline is the dry signal itself. Without clicks, the delay
/// within `DELAY_UNCERTAINTY` that gives the least error is used, since the recorder's delay is not
/// part of the sound.
///
/// # Errors
/// As [`play`].
pub fn compare(model: &Model, pair: &Pair) -> Result<Comparison, ModelError> {
    let round = |value: f64| (value * 1e6).round() / 1e6;
    let sound = play_method(model, "forward", &pair.settings, &pair.dry)?;
    let reach = if pair.alignment.from_clicks {
        0
    } else {
        DELAY_UNCERTAINTY
    };
    let error = |delay: i64| {
        let (sound, wet) = overlapping(&sound, &pair.wet, delay);
        esr(wet, sound)
    };
    let delay = (-reach..=reach)
        .min_by(|&a, &b| error(a).total_cmp(&error(b)))
        .unwrap_or(0);
    let (sound, wet) = overlapping(&sound, &pair.wet, delay);
    let dry = &pair.dry[..pair.dry.len().min(wet.len())];
    let measure = |from: usize| Measure {
        name: ESR.into(),
        unit: String::new(),
        value: round(esr(&wet[from..], &sound[from..])),
        baseline: Some(round(esr(&wet[from..], &dry[from..]))),
    };
    let Split { held_out, end, .. } = Split::new(wet.len(), f64::from(pair.rate));
    let seconds = |samples: usize| (1e3 * samples as f64 / f64::from(pair.rate)).round() / 1e3;
    Ok(Comparison {
        held_out_seconds: seconds(end - held_out),
        held_out: measure(held_out),
        seconds: seconds(end),
        all: measure(0),
    })
}

/// Returns the loudness of a capture: the output level for [`standard`], dB RMS of full scale.
///
/// # Errors
/// As [`play`]; also if the signal cannot be resampled.
pub fn loudness_db(model: &Model) -> anyhow::Result<f64> {
    let sound = resample(&standard(), RATE, model.header().sample_rate)?;
    Ok((1e3 * rms_db(&play(model, &sound)?)).round() / 1e3)
}
