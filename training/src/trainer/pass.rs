//! Forward and backward pass of a step.

use anyhow::Context;
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

use super::interrupt;
use super::parameters::Parameters;
use super::precision::Precision;
use super::profile::{Part, Profile};
use super::task::Task;
use crate::compression::fake_quantization::QuantizationGrids;
use crate::distributed::{Group, GroupError};
use crate::loss::Loss;

/// Gradient of the loss at the current weights.
pub(super) struct Pass<'a> {
    pub(super) weights: &'a TorchWeights,
    pub(super) grids: Option<&'a QuantizationGrids>,
    pub(super) step: u64,
    /// Precision of the forward pass.
    pub(super) precision: Precision,
    pub(super) device: Device,
    /// Factor of the loss during the backward pass.
    pub(super) scale: f64,
    /// Processes that compute the other rows.
    pub(super) group: Option<&'a Group>,
    /// Sums of gradients may begin during the backward pass: each weight's gradient is complete
    /// when it is added.
    pub(super) overlap: bool,
    /// Stopwatch of the run.
    pub(super) profile: &'a Profile,
}

/// Parts of a batch with their share of its rows.
pub(super) type Parts<B> = [(f64, B)];

impl Pass<'_> {
    fn loss<T: Task>(&self, task: &mut T, batch: &T::Batch) -> Loss {
        let weights = effective_weights(self.grids, self.weights);
        let loss = || task.loss(&weights, batch);
        self.profile
            .measure(Part::Forward, || self.precision.run(self.device, loss))
    }

    /// Computes forward only, which brings the task's state up to date.
    pub(super) fn forward<T: Task>(&self, task: &mut T, batches: &Parts<T::Batch>) {
        tch::no_grad(|| {
            batches
                .iter()
                .for_each(|(_, batch)| drop(self.loss(task, batch)))
        });
    }

    /// Computes forward and backward; returns the loss, adds its terms, and tells whether a process
    /// has been asked to stop. Loss, terms and gradient are those of all processes.
    ///
    /// # Errors
    /// Returns an error if a process has gone.
    pub(super) fn gradient<T: Task>(
        &self,
        task: &mut T,
        batches: &Parts<T::Batch>,
        parameters: &mut Parameters,
        mut terms: Option<&mut Vec<(&'static str, f64)>>,
    ) -> Result<(f64, bool), GroupError> {
        let total = self.own_gradient(task, batches, parameters, terms.as_deref_mut());
        self.collect(parameters)?;
        if self.group.is_none() {
            return Ok((total, interrupt::requested()));
        }
        let terms = terms.map_or(&mut [][..], Vec::as_mut_slice);
        let sums = parameters.tail(2 + terms.len());
        terms
            .iter_mut()
            .zip(&sums[2..])
            .for_each(|(term, sum)| term.1 = *sum);
        Ok((sums[0], sums[1] > 0.0))
    }

    /// Computes forward and backward of this process's rows; returns their share of the loss and
    /// adds its terms.
    pub(super) fn own_gradient<T: Task>(
        &self,
        task: &mut T,
        batches: &Parts<T::Batch>,
        parameters: &mut Parameters,
        mut terms: Option<&mut Vec<(&'static str, f64)>>,
    ) -> f64 {
        parameters.clear_gradients();
        let mut total = 0.0;
        for (part, (share, batch)) in batches.iter().enumerate() {
            let loss = self.loss(task, batch);
            total += share * loss.total.double_value(&[]);
            if let Some(terms) = &mut terms {
                add_terms(terms, &loss.terms, *share);
            }
            if self.group.is_some() && part + 1 == batches.len() {
                let asked = f64::from(u8::from(interrupt::requested()));
                let own = terms
                    .iter()
                    .flat_map(|terms| terms.iter().map(|(_, value)| *value));
                parameters.set_tail(&[total, asked].into_iter().chain(own).collect::<Vec<f64>>());
            }
            self.begin_sums(parameters, part + 1 == batches.len());
            self.profile.measure(Part::Backward, || {
                (&loss.total * (share * self.scale)).backward()
            });
        }
        total
    }

    /// Begins with the sums of the gradients in the last backward pass of a step.
    fn begin_sums(&self, parameters: &mut Parameters, last: bool) {
        if last && self.overlap {
            parameters.begin_sums();
        }
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
            let rank = self.group.map_or(0, Group::rank);
            let seed = self.step ^ (part as u64) << 40 ^ (rank as u64) << 52;
            let sample = || task.curvature_sample(&weights, batch, seed);
            let sample = self
                .profile
                .measure(Part::Forward, || self.precision.run(self.device, sample));
            let sample = sample.context(
                "optimizer.estimate \"gauss-newton\" needs esr, mse or pre_emphasis in the loss",
            )?;
            self.begin_sums(parameters, part + 1 == batches.len());
            // Squares of parts add up to that of the batch.
            self.profile.measure(Part::Backward, || {
                (sample * (share.sqrt() * self.scale)).backward()
            });
        }
        self.collect(parameters)?;
        Ok(())
    }

    /// Collects the gradients, sums them over the processes, and divides them by the factor of the
    /// loss.
    fn collect(&self, parameters: &mut Parameters) -> Result<(), GroupError> {
        parameters.sum_gradients()?;
        if self.scale != 1.0 {
            let _ = tch::no_grad(|| parameters.gradients().g_mul_scalar_(1.0 / self.scale));
        }
        Ok(())
    }
}

/// Returns the weights that the network computes with.
pub(super) fn effective_weights(
    grids: Option<&QuantizationGrids>,
    weights: &TorchWeights,
) -> TorchWeights {
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
