//! Sharpness-aware minimisation (Foret, Kleiner, Mobahi & Neyshabur, ICLR 2021): another optimiser
//! moves by the gradient at the worst weights within a small distance.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{GradientKind, GradientSource, Optimizer, OptimizerConfig, OptimizerStep};
use crate::check;
use crate::trainer::parameters::Parameters;

/// Settings of [`Sam`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamConfig {
    /// Distance to the worst weights.
    pub rho: f64,
    /// Optimiser that moves the weights, a table of its own.
    pub around: Box<OptimizerConfig>,
}

impl Default for SamConfig {
    fn default() -> Self {
        Self {
            rho: 0.05,
            around: Box::default(),
        }
    }
}

impl SamConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check::positive("optimizer.rho", self.rho)?;
        anyhow::ensure!(
            !matches!(*self.around, OptimizerConfig::Sam(_)),
            "optimizer.around must be another optimizer than sam"
        );
        self.around.check()
    }
}

/// Sharpness-aware minimisation. A step computes the gradient twice.
pub struct Sam {
    rho: f64,
    around: Box<dyn Optimizer>,
}

impl Sam {
    /// Creates an optimiser around a new one.
    #[must_use]
    pub fn new(config: &SamConfig, parameters: &Parameters) -> Self {
        Self {
            rho: config.rho,
            around: config.around.build(parameters),
        }
    }
}

impl Optimizer for Sam {
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()> {
        let norm = parameters.gradient_norm();
        if norm > 0.0 {
            let before = tch::no_grad(|| parameters.values().copy());
            let ascent = tch::no_grad(|| &*parameters.gradients() * (self.rho / norm));
            let _ = tch::no_grad(|| parameters.values().g_add_(&ascent));
            let computed = gradient(parameters, GradientKind::Loss);
            tch::no_grad(|| parameters.values().copy_(&before));
            computed?;
            let norm = parameters.gradient_norm();
            parameters.clip(step.clip, norm);
        }
        self.around.step(parameters, step, gradient)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)> {
        self.around.state()
    }
}
