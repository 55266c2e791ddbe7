//! Optimisers. Each is a file of its own, computes on the flat buffers of [`Parameters`], and keeps
//! its whole state in flat tensors, which checkpoints hold.

mod adam;
mod lamb;
mod sam;
mod sgd;
mod sophia;
#[cfg(test)]
mod tests;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::trainer::parameters::{Clip, Parameters};
pub use adam::{Adam, AdamConfig, WeightDecay};
pub use lamb::{Lamb, LambConfig};
pub use sam::{Sam, SamConfig};
pub use sgd::{Sgd, SgdConfig};
pub use sophia::{CurvatureEstimate, Sophia, SophiaConfig};

/// Step of an optimiser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerStep {
    /// Number of the step, from 1.
    pub number: u64,
    /// Learning rate.
    pub rate: f64,
    /// Weight decay of matrices.
    pub weight_decay: f64,
    /// Limits of gradients that the optimiser asks for.
    pub clip: Clip,
}

/// Gradient that an optimiser asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientKind {
    /// Of the loss.
    Loss,
    /// Random; its square has the diagonal of the loss's Gauss-Newton matrix as its mean.
    CurvatureSample,
}

/// Computes a gradient of the step's batch at the current weights, without limits.
pub type GradientSource<'a> =
    &'a mut dyn FnMut(&mut Parameters, GradientKind) -> anyhow::Result<()>;

/// Moves weights by their gradient.
pub trait Optimizer {
    /// Moves the weights. Their gradient has been computed and clipped; `gradient` computes it
    /// again where an optimiser needs it at other weights.
    ///
    /// # Errors
    /// Returns the error of `gradient`; weights and state are then as before.
    fn step(
        &mut self,
        parameters: &mut Parameters,
        step: OptimizerStep,
        gradient: GradientSource<'_>,
    ) -> anyhow::Result<()>;

    /// Returns the state by name, one flat tensor each.
    fn state(&mut self) -> Vec<(&'static str, &mut Tensor)>;
}

/// Optimiser and its settings, the table `[optimizer]` of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum OptimizerConfig {
    /// Stochastic gradient descent.
    Sgd(SgdConfig),
    /// Adam with an L2 penalty.
    Adam(AdamConfig),
    /// Adam with decoupled weight decay.
    AdamW(AdamConfig),
    /// Adam with a step per layer in proportion to its weights, for large batches.
    Lamb(LambConfig),
    /// Sharpness-aware minimisation around another optimiser.
    Sam(SamConfig),
    /// Second-order optimiser with a diagonal Hessian.
    Sophia(SophiaConfig),
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::AdamW(AdamConfig::default())
    }
}

impl OptimizerConfig {
    /// Names of the optimisers.
    pub const NAMES: [&str; 6] = ["sgd", "adam", "adamw", "lamb", "sam", "sophia"];

    /// Returns an optimiser with default settings.
    ///
    /// # Errors
    /// Returns an error that lists the names if there is none of this name.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let table = toml::Table::from_iter([("name".to_owned(), toml::Value::from(name))]);
        table
            .try_into()
            .with_context(|| format!("optimizer {name:?}"))
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error that names the field and its range.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Sgd(config) => config.check(),
            Self::Adam(config) | Self::AdamW(config) => config.check(),
            Self::Lamb(config) => config.check(),
            Self::Sam(config) => config.check(),
            Self::Sophia(config) => config.check(),
        }
    }

    /// Creates the optimiser with an empty state.
    #[must_use]
    pub fn build(&self, parameters: &Parameters) -> Box<dyn Optimizer> {
        match self {
            Self::Sgd(config) => Box::new(Sgd::new(*config, parameters)),
            Self::Adam(config) => Box::new(Adam::new(*config, WeightDecay::Penalty, parameters)),
            Self::AdamW(config) => Box::new(Adam::new(*config, WeightDecay::Decoupled, parameters)),
            Self::Lamb(config) => Box::new(Lamb::new(*config, parameters)),
            Self::Sam(config) => Box::new(Sam::new(config, parameters)),
            Self::Sophia(config) => Box::new(Sophia::new(*config, parameters)),
        }
    }
}
