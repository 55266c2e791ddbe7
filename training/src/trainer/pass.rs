//! Forward and backward pass of a step.

use anyhow::Context;
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

use super::parameters::Parameters;
use super::precision::Precision;
use super::profile::{Part, Profile};
use super::task::Task;
use crate::fake_quantization::QuantizationGrids;
use crate::loss::Loss;

/// Gradient of a phase's loss at the current weights.
pub(super) struct Pass<'a> {
    /// Index of the phase.
    pub(super) index: usize,
    pub(super) weights: &'a TorchWeights,
    pub(super) grids: Option<&'a QuantizationGrids>,
    pub(super) step: u64,
    /// Precision of the forward pass.
    pub(super) precision: Precision,
    pub(super) device: Device,
    /// Factor of the loss during the backward pass.
    pub(super) scale: f64,
    /// Stopwatch of the run.
    pub(super) profile: &'a Profile,
}

/// Parts of a batch with their share of its rows.
pub(super) type Parts<B> = [(f64, B)];

impl Pass<'_> {
    fn loss<T: Task>(&self, task: &mut T, batch: &T::Batch) -> Loss {
        let weights = effective_weights(self.grids, self.weights);
        let loss = || task.loss(self.index, &weights, batch, self.step);
        self.profile.measure(Part::Forward, || self.precision.run(self.device, loss))
    }

    /// Computes forward only, which brings the task's state up to date.
    pub(super) fn forward<T: Task>(&self, task: &mut T, batches: &Parts<T::Batch>) {
        tch::no_grad(|| batches.iter().for_each(|(_, batch)| drop(self.loss(task, batch))));
    }

    /// Computes forward and backward; returns the loss and adds its terms.
    pub(super) fn gradient<T: Task>(
        &self,
        task: &mut T,
        batches: &Parts<T::Batch>,
        parameters: &mut Parameters,
        mut terms: Option<&mut Vec<(&'static str, f64)>>,
    ) -> f64 {
        parameters.clear_gradients();
        let mut total = 0.0;
        for (share, batch) in batches {
            let loss = self.loss(task, batch);
            self.profile.measure(Part::Backward, || (&loss.total * (share * self.scale)).backward());
            total += share * loss.total.double_value(&[]);
            if let Some(terms) = &mut terms {
                add_terms(terms, &loss.terms, *share);
            }
        }
        self.collect(parameters);
        total
    }

    /// Computes the gradient of [`Task::curvature_sample`].
    ///
    /// # Errors
    /// Returns an error if the task has none.
    pub(super) fn sampled_gradient<T: Task>(
        &self,
        task: &mut T,
        batches: &Parts<T::Batch>,
        parameters: &mut Parameters,
    ) -> anyhow::Result<()> {
        parameters.clear_gradients();
        let weights = effective_weights(self.grids, self.weights);
        for (part, (share, batch)) in batches.iter().enumerate() {
            let seed = self.step ^ (part as u64) << 40;
            let sample = || task.curvature_sample(self.index, &weights, batch, seed);
            let sample = self.profile.measure(Part::Forward, || self.precision.run(self.device, sample));
            let sample =
                sample.context("optimizer.estimate \"gauss-newton\" needs esr, mse or pre_emphasis in the loss")?;
            // Squares of parts add up to that of the batch.
            self.profile.measure(Part::Backward, || (sample * (share.sqrt() * self.scale)).backward());
        }
        self.collect(parameters);
        Ok(())
    }

    /// Collects the gradients and divides them by the factor of the loss.
    fn collect(&self, parameters: &mut Parameters) {
        parameters.collect_gradients();
        if self.scale != 1.0 {
            let _ = tch::no_grad(|| parameters.gradients().g_mul_scalar_(1.0 / self.scale));
        }
    }
}

/// Returns the weights that the network computes with.
pub(super) fn effective_weights(grids: Option<&QuantizationGrids>, weights: &TorchWeights) -> TorchWeights {
    grids.map_or_else(|| weights.shallow_clone(), |grids| grids.rounded(weights))
}

/// Adds the terms of a part of a batch.
fn add_terms(sums: &mut Vec<(&'static str, f64)>, terms: &[(&'static str, Tensor)], share: f64) {
    for (name, term) in terms {
        let value = share * term.double_value(&[]);
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name, value)),
        }
    }
}
