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
pub struct MelDistance(MelSpectrum);

impl MelDistance {
    /// Prepares it for a sample rate, Hz.
    pub fn new(sample_rate: f64, device: Device) -> Self {
        Self(MelSpectrum::new(sample_rate, device))
    }

    /// Returns the mean absolute difference of the logarithms.
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        let target = tch::no_grad(|| self.0.logarithm(target));
        (self.0.logarithm(sound) - target).abs().mean(Kind::Float)
    }
}

/// Mel spectra on one device.
pub struct MelSpectrum {
    window: Tensor,
    /// `[band, bin]`.
    bank: Tensor,
    sample_rate: f64,
}

impl MelSpectrum {
    /// Prepares it for a sample rate, Hz.
    pub fn new(sample_rate: f64, device: Device) -> Self {
        let window = Tensor::hann_window(LENGTH, (Kind::Float, device));
        // A full-scale sine has magnitude 1.
        let window = &window * 2.0 / window.sum(Kind::Float);
        let bank = Tensor::from_slice(&bank(sample_rate))
            .view([BANDS as i64, -1])
            .to_device(device);
        Self {
            window,
            bank,
            sample_rate,
        }
    }

    /// Returns the frames a second.
    pub fn frame_rate(&self) -> f64 {
        self.sample_rate / HOP as f64
    }

    /// Returns the spectral centroids of the frames of `[band, frame]` that are louder than
    /// `least_db`, MIDI notes.
    pub fn centroids(&self, logarithms: &Tensor, least_db: f32) -> Vec<f32> {
        let notes = Tensor::from_slice(
            &(0..BANDS)
                .map(|band| note(centre_hz(band, self.sample_rate)))
                .collect::<Vec<_>>(),
        );
        let powers = (logarithms.exp() - FLOOR).clamp_min(0.0).square();
        let sums = powers.sum_dim_intlist([0_i64].as_slice(), false, Kind::Float);
        let centroids =
            (notes.view([-1, 1]) * powers).sum_dim_intlist([0_i64].as_slice(), false, Kind::Float)
                / &sums;
        let loud = sums.ge(10.0_f64.powf(f64::from(least_db) / 10.0));
        Vec::<f32>::try_from(centroids.masked_select(&loud)).expect("a vector of numbers")
    }

    /// Returns the logarithms of the magnitudes of `[batch, samples]`, `[batch, band, frame]`.
    pub fn logarithm(&self, sound: &Tensor) -> Tensor {
        let power = power_spectrum(sound, LENGTH, HOP, &self.window);
        (self.bank.matmul(&(power + 1e-14).sqrt()) + FLOOR).log()
    }
}

fn mel(hz: f64) -> f64 {
    2595.0 * (1.0 + hz / 700.0).log10()
}

/// Returns the centre of a band, Hz.
fn centre_hz(band: usize, sample_rate: f64) -> f64 {
    let at = mel(sample_rate / 2.0) * (band + 1) as f64 / (BANDS + 1) as f64;
    700.0 * (10.0_f64.powf(at / 2595.0) - 1.0)
}

/// Returns the MIDI note of a frequency; 69 is 440 Hz.
fn note(hz: f64) -> f32 {
    (69.0 + 12.0 * (hz / 440.0).log2()) as f32
}

/// Returns triangular filters of equal width on the mel scale `2595 log10(1 + f / 700)`,
/// `[band][bin]`.
fn bank(sample_rate: f64) -> Vec<f32> {
    let width = mel(sample_rate / 2.0) / (BANDS + 1) as f64;
    let mut bank = Vec::new();
    for band in 0..BANDS {
        let centre = width * (band + 1) as f64;
        let bins = (0..=LENGTH / 2).map(|bin| mel(bin as f64 * sample_rate / LENGTH as f64));
        bank.extend(bins.map(|at| (1.0 - (at - centre).abs() / width).max(0.0) as f32));
    }
    bank
}
