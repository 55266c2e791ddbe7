//! LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
//! ICLR 2020): Adam's update, scaled in each weight tensor to the norm of that tensor.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::adam::{AdamConfig, Moments};
use super::{GradientSource, Optimizer, OptimizerStep};
use crate::trainer::parameters::Parameters;

/// Settings of [`Lamb`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LambConfig {
    /// Decay rate of the mean gradient.
    pub beta1: f64,
    /// Decay rate of the mean squared gradient.
    pub beta2: f64,
    /// Term in the denominator.
    pub epsilon: f64,
}

impl Default for LambConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-6,
        }
    }
}

impl LambConfig {
    pub(super) fn check(self) -> anyhow::Result<()> {
        self.adam().check()
    }

    fn adam(self) -> AdamConfig {
        AdamConfig {
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
        }
    }
}

/// LAMB.
pub struct Lamb {
    config: LambConfig,
    moments: Moments,
}

impl Lamb {
    /// Creates an optimiser with moments of zero.
    #[must_use]
    pub fn new(config: LambConfig, parameters: &Parameters) -> Self {
        Self {
            config,
            moments: Moments::new(parameters),
        }
    }
}

impl Optimizer for Lamb {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        _gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        tch::no_grad(|| {
            let gradient = parameters.gradients().shallow_clone();
            let update = self
                .moments
                .update(&gradient, self.config.adam(), step.number)
                + parameters.penalty_gradient(step.weight_decay);
            let values = parameters.values().shallow_clone();
            let (weights, updates) = (parameters.norms(&values), parameters.norms(&update));
            // Tensors of zeros, such as new biases, move as with Adam.
            let defined = weights.greater(0.0).logical_and(&updates.greater(0.0));
            let ratio = (weights / &updates).where_self(&defined, &updates.ones_like());
            parameters.subtract(&(update * parameters.expanded(&ratio)), step.rate);
        });
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        self.moments.state()
    }
}
