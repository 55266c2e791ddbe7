//! Baseline of a sampler: the training recording of the nearest pitch, resampled.

use ondes_engine::dsp::resample::resample;

use crate::data::{Features, Recordings};

/// Nominal sample rate for resampling, Hz; the ratio to it shifts the pitch.
const RATE: f64 = 12_800.0;
/// Level relative to the loudest frame at which a note begins, dB.
const ONSET_DB: f32 = 30.0;

/// Returns the recording with the same positions of the knobs whose pitch, and then level, is
/// nearest to a recording's, with the pitch, onset, power and length of that. `None` if either has
/// no pitch.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn nearest(
    target: &Features,
    pitch: Option<f32>,
    training: &Recordings,
) -> anyhow::Result<Option<Vec<f32>>> {
    let Some(pitch) = pitch else { return Ok(None) };
    let level = target
        .loudness()
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let alike = training
        .indices
        .iter()
        .filter(|&&index| training.knobs(index) == target.knobs);
    let candidates = alike.filter_map(|&index| {
        let recording = &training.store.recordings()[index];
        let shift = pitch - recording.pitch?;
        let own_level = recording.loudness + training.gain(index);
        Some((
            shift.abs().round() as i32,
            (level - own_level).abs(),
            shift,
            index,
        ))
    });
    let best = candidates.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let Some((_, _, shift, index)) = best else {
        return Ok(None);
    };
    let source = training.store.features(index)?;
    let speed = (f64::from(shift) / 12.0).exp2();
    let sound = resample(source.audio(), (RATE * speed).round() as u32, RATE as u32)?;
    let from = (onset(&source) as f64 / speed) as usize;
    let to = onset(target);
    let mut aligned = vec![0.0; target.audio().len()];
    for (index, sample) in aligned.iter_mut().enumerate() {
        let position = (index + from).checked_sub(to);
        *sample = position
            .and_then(|position| sound.get(position))
            .copied()
            .unwrap_or(0.0);
    }
    let power = |sound: &[f32]| sound.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let gain = (power(target.audio()) / power(&aligned).max(1e-20)).sqrt() as f32;
    aligned.iter_mut().for_each(|sample| *sample *= gain);
    Ok(Some(aligned))
}

/// Returns the sample at which a note begins.
fn onset(features: &Features) -> usize {
    let loudest = features
        .loudness()
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let frame = features
        .loudness()
        .iter()
        .position(|level| *level > loudest - ONSET_DB);
    frame.unwrap_or(0) * features.rate.hop
}
