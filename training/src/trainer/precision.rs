//! Precision of the forward pass: f32, or mixed with bf16 or f16 by libtorch's autocast.

use serde::{Deserialize, Serialize};
use tch::Device;

/// First factor of a loss in f16, and the steps after which it doubles (Micikevicius et al., "Mixed
/// precision training", ICLR 2018).
const FIRST_SCALE: f64 = 65_536.0;
const STEPS_PER_DOUBLING: u64 = 2_000;
/// Least and largest factor.
const SCALES: (f64, f64) = (1.0 / 65_536.0, 4_294_967_296.0);

/// Precision of the forward pass. Weights, their gradients and the optimiser are always f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32 throughout.
    #[default]
    F32,
    /// Matrix products and convolutions in bf16, which has the range of f32.
    Bf16,
    /// Matrix products and convolutions in f16, with a loss scale, since small gradients would
    /// vanish.
    F16,
}

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    unsafe extern "C" {
        pub safe fn ondes_autocast_enter(device: i32, kind: i32);
        pub safe fn ondes_autocast_exit(device: i32);
    }
}

/// Turns autocast off when it is dropped, also by a panic.
struct Autocast(i32);

impl Drop for Autocast {
    fn drop(&mut self) {
        shim::ondes_autocast_exit(self.0);
    }
}

impl Precision {
    /// Names of the precisions.
    pub const NAMES: [&str; 3] = ["f32", "bf16", "f16"];

    /// Returns the precision of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::F32, Self::Bf16, Self::F16]
            .into_iter()
            .zip(Self::NAMES)
            .find(|(_, known)| *known == name)
            .map(|(own, _)| own)
    }

    /// Runs a forward pass in this precision.
    pub fn run<R>(self, device: Device, forward: impl FnOnce() -> R) -> R {
        let kind = match self {
            Self::F32 => return forward(),
            Self::Bf16 => 0,
            Self::F16 => 1,
        };
        let device = i32::from(device != Device::Cpu);
        shim::ondes_autocast_enter(device, kind);
        let _exit = Autocast(device);
        forward()
    }
}

/// Factor of the loss that keeps small gradients representable in f16.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossScale {
    /// Factor.
    pub factor: f64,
    /// Steps since the factor changed.
    steps: u64,
}

impl Default for LossScale {
    fn default() -> Self {
        Self {
            factor: FIRST_SCALE,
            steps: 0,
        }
    }
}

impl LossScale {
    /// Halves the factor after a gradient that is not finite. Returns false if it cannot be less.
    pub fn overflowed(&mut self) -> bool {
        let lower = (self.factor / 2.0).max(SCALES.0);
        let can_fall = lower < self.factor;
        *self = Self {
            factor: lower,
            steps: 0,
        };
        can_fall
    }

    /// Doubles the factor after many finite gradients.
    pub fn succeeded(&mut self) {
        self.steps += 1;
        if self.steps >= STEPS_PER_DOUBLING {
            *self = Self {
                factor: (2.0 * self.factor).min(SCALES.1),
                steps: 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use tch::{Kind, Tensor};

    use super::*;

    #[test]
    fn products_have_the_precision_and_only_inside() {
        let matrix = Tensor::ones([8, 8], (Kind::Float, Device::Cpu));
        let kind =
            |precision: Precision| precision.run(Device::Cpu, || matrix.matmul(&matrix).kind());
        assert_eq!(kind(Precision::F32), Kind::Float);
        assert_eq!(kind(Precision::Bf16), Kind::BFloat16);
        assert_eq!(kind(Precision::F16), Kind::Half);
        assert_eq!(matrix.matmul(&matrix).kind(), Kind::Float);
    }

    #[test]
    fn a_loss_scale_falls_at_overflow_and_recovers() {
        let mut scale = LossScale::default();
        assert!(scale.overflowed() && scale.overflowed());
        assert_eq!(scale.factor, FIRST_SCALE / 4.0);
        (0..2 * STEPS_PER_DOUBLING).for_each(|_| scale.succeeded());
        assert_eq!(scale.factor, FIRST_SCALE);
        while scale.overflowed() {}
        assert_eq!(scale.factor, SCALES.0);
    }
}
