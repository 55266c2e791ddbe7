//! Onsets: where sounds begin.
//!
//! The spectrum rises most there (Böck & Widmer, "Maximum filter vibrato suppression for onset
//! detection", DAFx 2013, without the filter).

use std::collections::VecDeque;
use std::f64::consts::TAU;

use ondes_kernels::Kernels;

use super::fourier::RealFft;
use super::level::moving_mean;

/// Length of the spectra and time between them, seconds: of the usual 1024 samples at 44.1 kHz, and
/// half a hop of Böck, Krebs & Schedl, "Evaluating the online capabilities of onset detection
/// methods", ISMIR 2012.
const SPECTRUM_S: f64 = 0.023;
const STEP_S: f64 = 0.005;
/// Compression of amplitudes before they are compared, as a factor within a logarithm of 1 + x.
const COMPRESSION: f32 = 1_000.0;
/// Least rise of an onset, mean over the bins of the compressed spectrum, above that of noise.
const RISE: f32 = 0.08;
/// Rise of noise, in mean rises around the onset.
const RISE_OF_NOISE: f32 = 2.0;
/// Time around an onset whose mean rise counts as noise, to both sides, seconds.
const AROUND_S: f64 = 0.1;
/// Time in which an onset is the largest rise, to both sides, seconds.
const ALONE_S: f64 = 0.03;
/// Time before an onset that the spectrum is compared with, seconds.
const BEFORE_S: f64 = 0.02;

/// Returns the samples at which sounds begin in a whole sound of one channel, in order;
/// `sample_rate` is in Hz.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::onsets::onsets;
///
/// let strokes = |n: usize| (-0.002 * (n % 12_000) as f32).exp() * (0.2 * n as f32).sin();
/// let sound: Vec<f32> = (0..48_000).map(strokes).collect();
/// assert_eq!(onsets(&sound, 48_000.0).len(), 4);
/// ```
#[must_use]
pub fn onsets(sound: &[f32], sample_rate: f64) -> Vec<usize> {
    let step = (STEP_S * sample_rate).round().max(1.0) as usize;
    let length = 2 * (0.5 * SPECTRUM_S * sample_rate).round().max(1.0) as usize;
    let steps = |seconds: f64| (seconds / STEP_S).round() as usize;
    let before = steps(BEFORE_S);
    let rise = rises(sound, length, step, before);
    let usual: Vec<f32> = moving_mean(&rise, 2 * steps(AROUND_S)).collect();
    let alone = steps(ALONE_S);
    let is_onset = |&index: &usize| {
        let (first, end) = (
            index.saturating_sub(alone),
            (index + alone + 1).min(rise.len()),
        );
        let is_first_largest = rise[first..index].iter().all(|other| *other < rise[index])
            && rise[index..end].iter().all(|other| *other <= rise[index]);
        rise[index] > RISE + RISE_OF_NOISE * usual[index] && is_first_largest
    };
    let begins = |index: usize| {
        ((index + before) * step)
            .saturating_sub(length / 2)
            .min(sound.len() - 1)
    };
    (0..rise.len()).filter(is_onset).map(begins).collect()
}

/// Returns how much compressed spectra rise within `before` steps, mean over their bins. Spectrum
/// `i` is that of the `length` samples before sample `i · step`; there is silence before the sound.
fn rises(sound: &[f32], length: usize, step: usize, before: usize) -> Vec<f32> {
    let mut fft = RealFft::new(length, Kernels::detect());
    let window = (0..length).map(|n| 0.5 - 0.5 * (TAU * n as f64 / length as f64).cos() as f32);
    let window: Vec<f32> = window.collect();
    let (mut samples, mut spectrum) = (vec![0.0; length], vec![0.0; fft.spectrum()]);
    let mut last: VecDeque<Vec<f32>> = VecDeque::new();
    let mut rises = Vec::new();
    for end in (0..=sound.len()).step_by(step) {
        let silence = length.saturating_sub(end);
        samples[..silence].fill(0.0);
        samples[silence..].copy_from_slice(&sound[end - (length - silence)..end]);
        samples
            .iter_mut()
            .zip(&window)
            .for_each(|(sample, window)| *sample *= window);
        fft.forward(&mut samples, &mut spectrum);
        let mut compressed = if last.len() > before {
            last.pop_front().unwrap_or_default()
        } else {
            Vec::new()
        };
        compressed.clear();
        let amplitude = |bin: &[f32]| bin[0].hypot(bin[1]) * 2.0 / length as f32;
        compressed.extend(
            spectrum
                .chunks_exact(2)
                .map(|bin| (COMPRESSION * amplitude(bin)).ln_1p()),
        );
        last.push_back(compressed);
        if last.len() > before {
            let (first, newest) = (&last[0], &last[before]);
            let sum: f32 = newest
                .iter()
                .zip(first)
                .map(|(new, old)| (new - old).max(0.0))
                .sum();
            rises.push(sum / newest.len() as f32);
        }
    }
    rises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsp::noise;

    const RATE: usize = 16_000;

    #[test]
    fn onsets_are_found_where_sounds_begin() {
        // Four strokes a second, then eight.
        let strokes = |interval: usize| {
            (0..2 * RATE).map(move |n| {
                let since = (n % interval) as f32 / RATE as f32;
                0.5 * (-since * 12.0).exp() * (TAU as f32 * 330.0 * since).sin()
            })
        };
        let sound: Vec<f32> = strokes(RATE / 4).chain(strokes(RATE / 8)).collect();
        let found = onsets(&sound, RATE as f64);
        let expected = (0..8)
            .map(|index| index * RATE / 4)
            .chain((0..16).map(|index| 2 * RATE + index * RATE / 8));
        let expected: Vec<usize> = expected.collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        let errors = found
            .iter()
            .zip(&expected)
            .map(|(found, expected)| found.abs_diff(*expected));
        assert!(
            errors.clone().all(|error| error < RATE / 50),
            "{:?}",
            errors.collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_goes_on_begins_once() {
        let steady: Vec<f32> = (0..2 * RATE)
            .map(|n| 0.5 * (n as f32 * 0.13).sin())
            .collect();
        assert_eq!(onsets(&steady, RATE as f64).len(), 1);
        let mut sound = vec![0.0; 2 * RATE];
        assert!(onsets(&sound, RATE as f64).is_empty() && onsets(&[], RATE as f64).is_empty());
        noise::fill(Kernels::detect(), 3, 0, &mut sound);
        assert!(
            onsets(&sound, RATE as f64).len() <= 2,
            "{:?}",
            onsets(&sound, RATE as f64)
        );
    }
}
