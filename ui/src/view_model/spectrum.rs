//! Magnitude spectrum for the scope.

use std::f32::consts::TAU;
use std::sync::Arc;

use ondes_engine::dsp::level::amplitude_to_db;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Length of the transform, samples.
pub const SAMPLES: usize = 4096;

/// Computes spectra.
pub struct Spectrum {
    plan: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    samples: Vec<f32>,
    bins: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Default for Spectrum {
    fn default() -> Self {
        Self::new()
    }
}

impl Spectrum {
    /// Plans the transform.
    #[must_use]
    pub fn new() -> Self {
        let plan = RealFftPlanner::new().plan_fft_forward(SAMPLES);
        let window = (0..SAMPLES)
            .map(|n| 0.5 - 0.5 * (TAU * n as f32 / SAMPLES as f32).cos())
            .collect();
        let (samples, bins, scratch) = (
            plan.make_input_vec(),
            plan.make_output_vec(),
            plan.make_scratch_vec(),
        );
        Self {
            plan,
            window,
            samples,
            bins,
            scratch,
        }
    }

    /// Computes the spectrum in dB, `[bin]`; a sine at full scale reaches 0 dB.
    pub fn compute(&mut self, sound: &[f32], spectrum_db: &mut Vec<f32>) {
        for ((to, sample), factor) in self.samples.iter_mut().zip(sound).zip(&self.window) {
            *to = sample * factor;
        }
        spectrum_db.clear();
        if self
            .plan
            .process_with_scratch(&mut self.samples, &mut self.bins, &mut self.scratch)
            .is_ok()
        {
            // The Hann window halves the amplitude, and half of the rest is at negative
            // frequencies.
            let scale = 4.0 / SAMPLES as f32;
            spectrum_db.extend(
                self.bins
                    .iter()
                    .map(|bin| amplitude_to_db(scale * bin.norm())),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_stands_where_it_is() {
        let sine: Vec<f32> = (0..SAMPLES)
            .map(|n| (TAU * 100.0 * n as f32 / SAMPLES as f32).sin())
            .collect();
        let mut spectrum = Vec::new();
        Spectrum::new().compute(&sine, &mut spectrum);
        assert_eq!(spectrum.len(), SAMPLES / 2 + 1);
        assert!(
            spectrum[100].abs() < 0.1 && spectrum[110] < -80.0,
            "{} {}",
            spectrum[100],
            spectrum[110]
        );
    }
}
