//! Distance of logarithmic mel spectra.

use tch::{Device, Kind, Tensor};

use super::power_spectrum::power_spectrum;

/// Transform and hop, samples.
const LENGTH: i64 = 2048;
const HOP: i64 = 512;
/// Bands, from 0 Hz to half the sample rate.
const BANDS: usize = 80;
/// Magnitude below which bands count as silent.
const FLOOR: f64 = 1e-4;

/// Distance of mel spectra on one device.
pub struct MelDistance {
    window: Tensor,
    /// `[band, bin]`.
    bank: Tensor,
}

impl MelDistance {
    /// Prepares it for a sample rate, Hz.
    pub fn new(sample_rate: f64, device: Device) -> Self {
        let window = Tensor::hann_window(LENGTH, (Kind::Float, device));
        // A full-scale sine has magnitude 1.
        let window = &window * 2.0 / window.sum(Kind::Float);
        let bank = Tensor::from_slice(&bank(sample_rate)).view([BANDS as i64, -1]).to_device(device);
        Self { window, bank }
    }

    /// Returns the mean absolute difference of the logarithms.
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        let target = tch::no_grad(|| self.logarithm(target));
        (self.logarithm(sound) - target).abs().mean(Kind::Float)
    }

    fn logarithm(&self, sound: &Tensor) -> Tensor {
        let power = power_spectrum(sound, LENGTH, HOP, &self.window);
        (self.bank.matmul(&(power + 1e-14).sqrt()) + FLOOR).log()
    }
}

/// Returns triangular filters of equal width on the mel scale `2595 log10(1 + f / 700)`, `[band][bin]`.
fn bank(sample_rate: f64) -> Vec<f32> {
    let mel = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
    let top = mel(sample_rate / 2.0);
    let mut bank = Vec::new();
    for band in 0..BANDS {
        let centre = top * (band + 1) as f64 / (BANDS + 1) as f64;
        let width = top / (BANDS + 1) as f64;
        let bins = (0..=LENGTH / 2).map(|bin| mel(bin as f64 * sample_rate / LENGTH as f64));
        bank.extend(bins.map(|at| (1.0 - (at - centre).abs() / width).max(0.0) as f32));
    }
    bank
}
