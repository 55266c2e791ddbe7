//! Stochastic gradient descent with momentum (Sutskever, Martens, Dahl & Hinton, "On the importance
//! of initialization and momentum in deep learning", ICML 2013, in PyTorch's form).

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{GradientSource, Optimizer, OptimizerStep};
use crate::check;
use crate::trainer::parameters::Parameters;

/// Settings of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SgdConfig {
    /// Share of the last step's velocity that is kept.
    pub momentum: f64,
    /// Nesterov's momentum: the gradient is added to the velocity after it is decayed once more.
    pub nesterov: bool,
}

impl Default for SgdConfig {
    fn default() -> Self {
        Self {
            momentum: 0.9,
            nesterov: false,
        }
    }
}

impl SgdConfig {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::decay_rate("optimizer.momentum", self.momentum)
    }
}

/// Stochastic gradient descent.
pub struct Sgd {
    config: SgdConfig,
    velocity: Tensor,
}

impl Sgd {
    /// Creates an optimiser at rest.
    #[must_use]
    pub fn new(config: SgdConfig, parameters: &Parameters) -> Self {
        Self {
            config,
            velocity: parameters.zeros(),
        }
    }
}

impl Optimizer for Sgd {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        _gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        tch::no_grad(|| {
            let gradient =
                parameters.penalty_gradient(step.weight_decay) + &*parameters.gradients();
            let momentum = self.config.momentum;
            let _ = self.velocity.g_mul_scalar_(momentum).g_add_(&gradient);
            if self.config.nesterov {
                parameters.subtract(&(gradient + &self.velocity * momentum), step.rate);
            } else {
                parameters.subtract(&self.velocity, step.rate);
            }
        });
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        vec![("velocity", &mut self.velocity)]
    }
}
