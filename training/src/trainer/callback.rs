//! Work beside the arithmetic of a run: logs, checkpoints, stopping.

use super::parameters::Parameters;
use super::task::Validation;
use crate::data::LoaderStats;

/// A finished step.
pub struct StepReport<'a> {
    /// Steps that are done.
    pub step: u64,
    /// Loss, NaN if the step only brought state up to date.
    pub loss: f64,
    /// Terms of the loss.
    pub terms: &'a [(&'static str, f64)],
    /// Norm of the gradient before clipping.
    pub gradient: f64,
    /// Learning rate.
    pub rate: f64,
    /// Mean of the loss over the last steps.
    pub mean_loss: f64,
    /// Duration, seconds.
    pub seconds: f64,
    /// Part of it that was spent waiting for the batch, seconds.
    pub data_seconds: f64,
    /// Rows of the batch.
    pub rows: usize,
    /// Returns counts and times of the threads that read the data.
    pub loader: &'a dyn Fn() -> Option<LoaderStats>,
    /// Trained weights, with the gradients of this step.
    pub parameters: &'a Parameters,
}

/// A validation.
pub struct ValidationReport<'a> {
    /// Steps that are done.
    pub step: u64,
    /// Result.
    pub validation: &'a Validation,
    /// Tells whether it is the best so far.
    pub is_best: bool,
    /// Mean of the training loss over the last steps.
    pub mean_loss: f64,
    /// Learning rate.
    pub rate: f64,
    /// Sample rate of the validation sound, Hz.
    pub sample_rate: u32,
}

/// Reason to stop before the last step, in a few words.
pub type StopReason = Option<String>;

/// Observer of a run.
pub trait Callback {
    /// Called after each step.
    ///
    /// # Errors
    /// Returns an error that ends the run, such as a full disk.
    fn step_done(&mut self, _report: &StepReport<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Called after each validation; may stop the run.
    ///
    /// # Errors
    /// Returns an error that ends the run.
    fn validated(&mut self, _report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        Ok(None)
    }

    /// Called at the end of the run.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    fn finished(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
