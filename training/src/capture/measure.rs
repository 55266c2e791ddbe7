//! How well a capture does, as played by the engine.

use ondes_engine::Kernels;
use ondes_engine::dsp::resample::resample;
use ondes_engine::model::{ModelError, Measure, Model};
use ondes_engine::native::Executor;
use ondes_kernels::FlushToZero;
use serde::Serialize;

use super::align::overlapping;
use super::pair::Pair;
use super::signal::{RATE, standard};
use super::windows::Split;

/// The name of the measure in cards.
pub const ESR: &str = "error-to-signal ratio";

/// Samples per step.
const STEP: usize = 256;

/// What a capture makes of a sound, from its rest.
///
/// # Errors
/// When the model is no effect of one channel that can be stepped by single samples.
pub fn play(model: &Model, dry: &[f32]) -> Result<Vec<f32>, ModelError> {
    let method = model.method("forward")?;
    let one = |ports: &[ondes_engine::model::Port]| ports.len() == 1 && ports[0].channels == 1 && ports[0].ratio == 1;
    if !(one(&method.inputs) && one(&method.outputs)) {
        return Err(ModelError::Header("not a capture of one channel: it has other ports".into()));
    }
    let block = method.block;
    let mut executor = Executor::new(model, "forward", Kernels::detect(), 1, STEP.div_ceil(block))?;
    let _flush = FlushToZero::on();
    let mut wet = Vec::with_capacity(dry.len() + STEP);
    for chunk in dry.chunks(STEP.div_ceil(block) * block) {
        executor.begin(&[0], chunk.len().div_ceil(block));
        let input = executor.input(0);
        input.fill(0.0);
        input[..chunk.len()].copy_from_slice(chunk);
        executor.run();
        wet.extend_from_slice(&executor.output(0)[..chunk.len()]);
    }
    Ok(wet)
}

/// The error-to-signal ratio, Σ(y − ŷ)² / Σy²; 0 is perfect, 1 is as bad as silence.
#[must_use]
pub fn esr(target: &[f32], sound: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let error: f64 = target.iter().zip(sound).map(|(y, x)| square(f64::from(*y) - f64::from(*x))).sum();
    error / target.iter().map(|y| square(f64::from(*y))).sum::<f64>().max(1e-20)
}

/// How a capture does on a pair.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Length of the part that is held out of training.
    pub held_out_seconds: f64,
    /// On that part.
    pub held_out: Measure,
    /// Length of the pair.
    pub seconds: f64,
    /// On all of it.
    pub all: Measure,
}

/// Samples by which a delay that was found without blips may be wrong.
const UNSURE: i64 = 8;

/// Plays a pair's signal and holds the result against the recording; the baseline is the signal itself. Where no blips tell how
/// late the recording is, it is taken to be as late, within [`UNSURE`] samples, as fits the model best: how late a recorder was is
/// no part of the sound.
///
/// # Errors
/// As [`play`].
pub fn compare(model: &Model, pair: &Pair) -> Result<Comparison, ModelError> {
    let round = |value: f64| (value * 1e6).round() / 1e6;
    let sound = play(model, &pair.dry)?;
    let unsure = if pair.alignment.blips { 0 } else { UNSURE };
    let error = |delay: i64| {
        let (sound, wet) = overlapping(&sound, &pair.wet, delay);
        esr(wet, sound)
    };
    let delay = (-unsure..=unsure).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0);
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

/// How loud a capture is: the level of what it makes of [`standard`], dB RMS of full scale.
///
/// # Errors
/// As [`play`], or when the signal cannot be brought to the capture's rate.
pub fn loudness_db(model: &Model) -> anyhow::Result<f64> {
    let sound = resample(&standard(), RATE, model.header().sample_rate)?;
    Ok((1e3 * rms_db(&play(model, &sound)?)).round() / 1e3)
}

/// Root mean square, dB of full scale; −200 for silence.
#[must_use]
pub fn rms_db(sound: &[f32]) -> f64 {
    let square: f64 = sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / sound.len().max(1) as f64;
    10.0 * square.max(1e-20).log10()
}
