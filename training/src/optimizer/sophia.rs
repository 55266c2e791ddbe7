//! Sophia (Liu, Li, Hall, Liang & Ma, "Sophia: a scalable stochastic second-order optimizer for language model
//! pre-training", ICLR 2024), with Hutchinson's estimate of the diagonal of the Hessian.
//!
//! The estimate is `u ⊙ H u`. The signs `u` are random, which has the expectation of the paper's normals and less variance.
//! The product `H u` is a central difference of gradients, so that layers need no second derivative: recurrent layers of
//! libtorch have none on GPUs.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{GradientSource, Optimizer, OptimizerStep, check_decay, check_positive};
use crate::trainer::parameters::Parameters;

/// Settings of [`Sophia`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SophiaConfig {
    /// Decay rate of the mean gradient.
    pub beta1: f64,
    /// Decay rate of the mean Hessian.
    pub beta2: f64,
    /// Factor of the Hessian: the larger, the fewer elements move by less than the learning rate.
    pub gamma: f64,
    /// Least value of the denominator.
    pub epsilon: f64,
    /// Steps from one estimate of the Hessian to the next.
    pub every: u64,
    /// Distance of the two gradients of an estimate, relative to the root mean square of the weights.
    pub distance: f64,
}

impl Default for SophiaConfig {
    fn default() -> Self {
        Self { beta1: 0.96, beta2: 0.99, gamma: 0.01, epsilon: 1e-12, every: 10, distance: 1e-3 }
    }
}

impl SophiaConfig {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check_decay("beta1", self.beta1)?;
        check_decay("beta2", self.beta2)?;
        check_positive("gamma", self.gamma)?;
        check_positive("epsilon", self.epsilon)?;
        check_positive("distance", self.distance)?;
        anyhow::ensure!(self.every > 0, "optimizer.every must be above 0");
        Ok(())
    }
}

/// Sophia.
pub struct Sophia {
    config: SophiaConfig,
    first: Tensor,
    hessian: Tensor,
}

impl Sophia {
    /// Creates an optimiser with a mean gradient and a Hessian of zero.
    #[must_use]
    pub fn new(config: SophiaConfig, parameters: &Parameters) -> Self {
        Self { config, first: parameters.zeros(), hessian: parameters.zeros() }
    }

    /// Adds an estimate of the Hessian at the current weights. The gradient is changed.
    fn estimate(
        &mut self,
        parameters: &mut Parameters,
        number: u64,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        let before = tch::no_grad(|| parameters.values().copy());
        let signs = signs(&before, number);
        let scale = tch::no_grad(|| before.norm().double_value(&[])) / (parameters.count().max(1) as f64).sqrt();
        let distance = self.config.distance * if scale > 0.0 { scale } else { 1.0 };
        let mut gradients = Vec::new();
        for side in [distance, -distance] {
            tch::no_grad(|| parameters.values().copy_(&(&before + &signs * side)));
            let computed = gradient(parameters);
            tch::no_grad(|| parameters.values().copy_(&before));
            computed?;
            gradients.push(tch::no_grad(|| parameters.gradients().copy()));
        }
        tch::no_grad(|| {
            let beta2 = self.config.beta2;
            let diagonal = (&gradients[0] - &gradients[1]) * signs * ((1.0 - beta2) / (2.0 * distance));
            let _ = self.hessian.g_mul_scalar_(beta2).g_add_(&diagonal);
        });
        Ok(())
    }
}

/// Returns random signs that depend on the number of the step only.
fn signs(like: &Tensor, number: u64) -> Tensor {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let count = like.numel();
    let mut signs = Vec::with_capacity(count.next_multiple_of(64));
    while signs.len() < count {
        let bits = random.next_u64();
        signs.extend((0..64).map(|bit| if bits >> bit & 1 == 0 { -1.0_f32 } else { 1.0 }));
    }
    Tensor::from_slice(&signs[..count]).to_kind(like.kind()).to_device(like.device())
}

impl Optimizer for Sophia {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        let SophiaConfig { beta1, gamma, epsilon, every, .. } = self.config;
        tch::no_grad(|| {
            let gradient = &*parameters.gradients() * (1.0 - beta1);
            let _ = self.first.g_mul_scalar_(beta1).g_add_(&gradient);
        });
        if (step.number - 1).is_multiple_of(every) {
            self.estimate(parameters, step.number, gradient)?;
        }
        tch::no_grad(|| {
            parameters.decay(step.rate, step.weight_decay);
            let denominator = (&self.hessian * gamma).clamp_min(epsilon);
            parameters.subtract(&(&self.first / denominator).clamp(-1.0, 1.0), step.rate);
        });
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        vec![("first", &mut self.first), ("hessian", &mut self.hessian)]
    }
}
