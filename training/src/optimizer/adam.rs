//! Adam (Kingma & Ba, ICLR 2015) and AdamW (Loshchilov & Hutter, "Decoupled weight decay
//! regularization", ICLR 2019).

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{GradientSource, Optimizer, OptimizerStep};
use crate::check;
use crate::trainer::parameters::Parameters;

/// Settings of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamConfig {
    /// Decay rate of the mean gradient.
    pub beta1: f64,
    /// Decay rate of the mean squared gradient.
    pub beta2: f64,
    /// Term in the denominator.
    pub epsilon: f64,
}

impl Default for AdamConfig {
    /// Small models learn fast with a shorter memory of squares than the paper's 0.999.
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.99,
            epsilon: 1e-8,
        }
    }
}

impl AdamConfig {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::decay_rate("optimizer.beta1", self.beta1)?;
        check::decay_rate("optimizer.beta2", self.beta2)?;
        check::positive("optimizer.epsilon", self.epsilon)
    }
}

/// Effect of weight decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightDecay {
    /// Gradient of an L2 penalty, which passes through the moments: Adam.
    Penalty,
    /// Shrinks the weights directly: AdamW.
    Decoupled,
}

/// Means of gradients and of their squares.
pub(super) struct Moments {
    first: Tensor,
    second: Tensor,
}

impl Moments {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Self {
            first: parameters.zeros(),
            second: parameters.zeros(),
        }
    }

    /// Adds a gradient and returns Adam's update without a learning rate, `m̂ / (√v̂ + ε)`.
    pub(super) fn update(&mut self, gradient: &Tensor, config: AdamConfig, number: u64) -> Tensor {
        let AdamConfig {
            beta1,
            beta2,
            epsilon,
        } = config;
        let power = i32::try_from(number).unwrap_or(i32::MAX);
        let correction = (1.0 - beta1.powi(power), 1.0 - beta2.powi(power));
        let _ = self
            .first
            .g_mul_scalar_(beta1)
            .g_add_(&(gradient * (1.0 - beta1)));
        let _ = self
            .second
            .g_mul_scalar_(beta2)
            .g_add_(&(gradient.square() * (1.0 - beta2)));
        let mut denominator = &self.second / correction.1;
        let denominator = denominator
            .sqrt_()
            .g_add_scalar_(epsilon)
            .g_mul_scalar_(correction.0);
        &self.first / denominator
    }

    pub(super) fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        vec![("first", &mut self.first), ("second", &mut self.second)]
    }
}

/// Adam, with either kind of weight decay.
pub struct Adam {
    config: AdamConfig,
    weight_decay: WeightDecay,
    moments: Moments,
}

impl Adam {
    /// Creates an optimiser with moments of zero.
    #[must_use]
    pub fn new(config: AdamConfig, weight_decay: WeightDecay, parameters: &Parameters) -> Self {
        Self {
            config,
            weight_decay,
            moments: Moments::new(parameters),
        }
    }
}

impl Optimizer for Adam {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        _gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        tch::no_grad(|| {
            let gradient = match self.weight_decay {
                WeightDecay::Penalty => {
                    parameters.penalty_gradient(step.weight_decay) + &*parameters.gradients()
                }
                WeightDecay::Decoupled => {
                    parameters.decay(step.rate, step.weight_decay);
                    parameters.gradients().shallow_clone()
                }
            };
            let update = self.moments.update(&gradient, self.config, step.number);
            parameters.subtract(&update, step.rate);
        });
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        self.moments.state()
    }
}
