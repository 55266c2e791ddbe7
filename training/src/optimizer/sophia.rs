//! Sophia (Liu, Li, Hall, Liang & Ma, "Sophia: a scalable stochastic second-order optimizer for
//! language model pre-training", ICLR 2024), with either estimate of the diagonal of the Hessian.
//!
//! Gauss-Newton-Bartlett is the square of a gradient for targets that are drawn around the
//! network's own outputs, and is for losses that are squared errors. Hutchinson's is for all:
//! `u ⊙ H u`. The signs `u` are random, which has the expectation of the paper's normals and less
//! variance. The product `H u` is a central difference of gradients, so that layers need no second
//! derivative: recurrent layers of libtorch have none on GPUs.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{GradientKind, GradientSource, Optimizer, OptimizerStep};
use crate::check;
use crate::loss::random_signs::random_signs;
use crate::trainer::parameters::Parameters;

/// Estimate of the diagonal of the Hessian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurvatureEstimate {
    /// Hutchinson's, by two further gradients.
    #[default]
    Hutchinson,
    /// Gauss-Newton-Bartlett, by one further gradient; only of the loss's squared errors.
    GaussNewton,
}

impl CurvatureEstimate {
    /// Returns whether it is the default, which checkpoints of before it could be chosen do not
    /// name.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

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
    /// Estimate of the Hessian.
    #[serde(skip_serializing_if = "CurvatureEstimate::is_default")]
    pub estimate: CurvatureEstimate,
    /// Distance of the two gradients of Hutchinson's estimate, relative to the root mean square of
    /// the weights.
    pub distance: f64,
}

impl Default for SophiaConfig {
    fn default() -> Self {
        Self {
            beta1: 0.96,
            beta2: 0.99,
            gamma: 0.01,
            epsilon: 1e-12,
            every: 10,
            estimate: CurvatureEstimate::Hutchinson,
            distance: 1e-3,
        }
    }
}

impl SophiaConfig {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::decay_rate("optimizer.beta1", self.beta1)?;
        check::decay_rate("optimizer.beta2", self.beta2)?;
        check::positive("optimizer.gamma", self.gamma)?;
        check::positive("optimizer.epsilon", self.epsilon)?;
        check::positive("optimizer.distance", self.distance)?;
        check::not_zero("optimizer.every", self.every)?;
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
        Self {
            config,
            first: parameters.zeros(),
            hessian: parameters.zeros(),
        }
    }

    /// Adds an estimate of the Hessian at the current weights. The gradient is changed.
    fn estimate(
        &mut self,
        parameters: &mut Parameters,
        number: u64,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        let diagonal = match self.config.estimate {
            CurvatureEstimate::Hutchinson => self.hutchinson(parameters, number, gradient)?,
            CurvatureEstimate::GaussNewton => {
                gradient(parameters, GradientKind::CurvatureSample)?;
                tch::no_grad(|| parameters.gradients().square())
            }
        };
        let _ = tch::no_grad(|| self.hessian.lerp_(&diagonal, 1.0 - self.config.beta2));
        Ok(())
    }

    /// Returns Hutchinson's estimate.
    fn hutchinson(
        &self,
        parameters: &mut Parameters,
        number: u64,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<Tensor> {
        let before = tch::no_grad(|| parameters.values().copy());
        let signs = random_signs(&before, number);
        let scale = tch::no_grad(|| before.norm().double_value(&[]))
            / (parameters.count().max(1) as f64).sqrt();
        let distance = self.config.distance * if scale > 0.0 { scale } else { 1.0 };
        let mut gradients = Vec::new();
        for side in [distance, -distance] {
            tch::no_grad(|| parameters.values().copy_(&(&before + &signs * side)));
            let computed = gradient(parameters, GradientKind::Loss);
            tch::no_grad(|| parameters.values().copy_(&before));
            computed?;
            gradients.push(tch::no_grad(|| parameters.gradients().copy()));
        }
        Ok(tch::no_grad(|| {
            (&gradients[0] - &gradients[1]) * signs * (0.5 / distance)
        }))
    }
}

impl Optimizer for Sophia {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        let SophiaConfig {
            beta1,
            gamma,
            epsilon,
            every,
            ..
        } = self.config;
        let own = tch::no_grad(|| &*parameters.gradients() * (1.0 - beta1));
        if (step.number - 1).is_multiple_of(every) {
            self.estimate(parameters, step.number, gradient)?;
        }
        tch::no_grad(|| {
            let _ = self.first.g_mul_scalar_(beta1).g_add_(&own);
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
