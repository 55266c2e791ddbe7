//! Terms on samples.

use tch::{Kind, Tensor};

/// Coefficient of the pre-emphasis `y[t] = x[t] − 0.95 x[t − 1]` (Wright & Välimäki, "Perceptual
/// loss function for neural modelling of audio systems", ICASSP 2020).
pub const PRE_EMPHASIS: f64 = 0.95;

/// Returns the mean squared difference.
pub fn mean_square(sound: &Tensor, target: &Tensor) -> Tensor {
    (sound - target).square().mean(Kind::Float)
}

/// Returns the mean absolute difference.
pub fn mean_absolute(sound: &Tensor, target: &Tensor) -> Tensor {
    (sound - target).abs().mean(Kind::Float)
}

/// Returns the difference of the means of each row.
pub fn mean_offset(sound: &Tensor, target: &Tensor) -> Tensor {
    (sound - target).mean_dim([-1_i64].as_slice(), false, Kind::Float)
}

/// Returns the pre-emphasised sound, one sample shorter.
pub fn pre_emphasised(sound: &Tensor) -> Tensor {
    let samples = sound.size()[1];
    sound.narrow(1, 1, samples - 1) - PRE_EMPHASIS * sound.narrow(1, 0, samples - 1)
}
