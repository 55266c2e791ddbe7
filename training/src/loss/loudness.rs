//! Difference of A-weighted levels over time.

use tch::{Device, Kind, Tensor};

use super::a_weighting::bin_gains;
use super::power_spectrum::power_spectrum;

/// Transform and hop, samples.
const LENGTH: i64 = 1024;
const HOP: i64 = 256;
/// Power of a frame that counts as silent: −80 dB.
const FLOOR: f64 = 1e-8;

/// Distance of levels on one device.
pub struct LoudnessDistance {
    window: Tensor,
    /// Power gain by bin, `[bin, 1]`.
    gains: Tensor,
}

impl LoudnessDistance {
    /// Prepares it for a sample rate, Hz.
    pub fn new(sample_rate: f64, device: Device) -> Self {
        let window = Tensor::hann_window(LENGTH, (Kind::Float, device));
        // Twice the sum over positive frequencies is the mean square of the frame.
        let scale =
            (2.0 / (LENGTH as f64 * window.square().sum(Kind::Double).double_value(&[]))).sqrt();
        Self {
            window: window * scale,
            gains: bin_gains(LENGTH, sample_rate, device).view([-1, 1]),
        }
    }

    /// Returns the mean absolute difference of the levels, in units of 10 dB.
    pub fn between(&self, sound: &Tensor, target: &Tensor) -> Tensor {
        let target = tch::no_grad(|| self.level(target));
        (self.level(sound) - target).abs().mean(Kind::Float)
    }

    /// Returns the common logarithm of the weighted power, `[batch, frame]`.
    fn level(&self, sound: &Tensor) -> Tensor {
        let power = power_spectrum(sound, LENGTH, HOP, &self.window);
        ((power * &self.gains).sum_dim_intlist([1_i64].as_slice(), false, Kind::Float) + FLOOR)
            .log10()
    }
}
