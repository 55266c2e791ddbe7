//! Fourier transform of real samples.

use std::f64::consts::TAU;
use std::sync::Arc;

use num_complex::Complex32;
use ondes_kernels::Kernels;
use rustfft::{Fft, FftPlanner};

/// Transforms an even number of real samples to their spectrum and back. Clones share the tables.
///
/// Pairs of samples are transformed as complex numbers of half the length; a pass over the bins
/// separates them (H. V. Sorensen et al., "Real-valued fast Fourier transform algorithms", IEEE
/// Trans. ASSP 35(6), 1987).
#[derive(Clone)]
pub(crate) struct RealFft {
    kernels: Kernels,
    samples: usize,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    /// Twiddle factors of the forward and inverse transform, `[bin from 1 on][re, im]`, for the
    /// bins with a mirror image.
    twiddles: [Arc<[f32]>; 2],
    scratch: Vec<Complex32>,
}

impl RealFft {
    /// Creates a transform of an even, positive number of samples.
    pub fn new(samples: usize, kernels: Kernels) -> Self {
        assert!(
            samples > 0 && samples.is_multiple_of(2),
            "the number of samples must be even and positive"
        );
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (
            planner.plan_fft_forward(samples / 2),
            planner.plan_fft_inverse(samples / 2),
        );
        let twiddles = |re: f32, im: f32| -> Arc<[f32]> {
            let angles = (1..=(samples / 2 - 1) / 2).map(|bin| TAU / samples as f64 * bin as f64);
            angles
                .flat_map(|angle| [re * angle.cos() as f32, im * angle.sin() as f32])
                .collect()
        };
        let scratch = forward
            .get_outofplace_scratch_len()
            .max(inverse.get_outofplace_scratch_len());
        Self {
            kernels,
            samples,
            twiddles: [twiddles(0.5, -0.5), twiddles(-1.0, -1.0)],
            scratch: vec![Complex32::default(); scratch],
            forward,
            inverse,
        }
    }

    /// Returns the floats per spectrum: real and imaginary parts of `samples / 2 + 1` bins.
    pub fn spectrum(&self) -> usize {
        self.samples + 2
    }

    /// Writes the spectrum, `[bin][re, im]`; overwrites the samples.
    pub fn forward(&mut self, samples: &mut [f32], spectrum: &mut [f32]) {
        let n = self.samples;
        let (input, output) = (
            bytemuck::cast_slice_mut(samples),
            bytemuck::cast_slice_mut(&mut spectrum[..n]),
        );
        self.forward
            .process_outofplace_with_scratch(input, output, &mut self.scratch);
        let (even, odd) = (spectrum[0], spectrum[1]);
        (spectrum[0], spectrum[1]) = (even + odd, 0.0);
        (spectrum[n], spectrum[n + 1]) = (even - odd, 0.0);
        self.cross(spectrum, 0, 0.5);
    }

    /// Writes `n` times the samples of a spectrum, whose first and last bins count as real;
    /// overwrites the spectrum.
    pub fn inverse(&mut self, spectrum: &mut [f32], samples: &mut [f32]) {
        let n = self.samples;
        let (first, last) = (spectrum[0], spectrum[n]);
        (spectrum[0], spectrum[1]) = (first + last, first - last);
        self.cross(spectrum, 1, 1.0);
        let (input, output) = (
            bytemuck::cast_slice_mut(&mut spectrum[..n]),
            bytemuck::cast_slice_mut(samples),
        );
        self.inverse
            .process_outofplace_with_scratch(input, output, &mut self.scratch);
    }

    /// Combines each bin between the first and the last with its mirror image.
    fn cross(&self, spectrum: &mut [f32], direction: usize, scale: f32) {
        let twiddles = &self.twiddles[direction];
        let (near, rest) = spectrum[2..self.samples].split_at_mut(twiddles.len());
        let (middle, far) = rest.split_at_mut(rest.len() - twiddles.len());
        self.kernels.real_bins(near, far, twiddles, scale);
        if let [re, im] = middle {
            (*re, *im) = (2.0 * scale * *re, -2.0 * scale * *im);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_exact_and_invertible() {
        for n in [2, 4, 6, 14, 34, 36, 320, 384] {
            let mut fft = RealFft::new(n, Kernels::detect());
            let signal: Vec<f32> = (0..n)
                .map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0)
                .collect();
            let (mut samples, mut spectrum) = (signal.clone(), vec![0.0; fft.spectrum()]);
            fft.forward(&mut samples, &mut spectrum);
            for (bin, found) in spectrum.chunks_exact(2).enumerate() {
                let part = |wave: fn(f64) -> f64| {
                    let term = |(i, &x): (usize, &f32)| {
                        f64::from(x) * wave(TAU * (bin * i % n) as f64 / n as f64)
                    };
                    signal.iter().enumerate().map(term).sum::<f64>()
                };
                let (re, im) = (part(f64::cos), -part(f64::sin));
                let error = (f64::from(found[0]) - re).hypot(f64::from(found[1]) - im);
                assert!(error < 1e-4, "bin {bin} of {n}: {found:?} for {re} {im}");
            }
            fft.inverse(&mut spectrum, &mut samples);
            for (found, expected) in samples.iter().zip(&signal) {
                assert!(
                    (found / n as f32 - expected).abs() < 1e-6,
                    "{n}: {found} for {expected}"
                );
            }
        }
    }
}
