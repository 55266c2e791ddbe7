//! Runs a model's code, which may panic, without taking the audio thread or the worker down.

use std::time::Duration;

use super::health::InstanceMetrics;
use crate::panics::contain;

/// The model's code has panicked: the model is silent for good. Its metrics have the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

/// Runs the code of the model with these metrics, on any thread.
pub(super) fn guard<R>(metrics: &InstanceMetrics, work: impl FnOnce() -> R) -> Result<R, Failed> {
    guard_with_reason(work).map_err(|reason| {
        metrics.set_failure(reason);
        Failed
    })
}

/// End of the reason of a failure.
pub(super) const STAYS_SILENT: &str = "; it stays silent until a model is loaded again";

/// Runs a model's code and returns the reason of a panic, one line. A failing TorchScript program
/// panics with its message.
pub(super) fn guard_with_reason<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    contain(work).map_err(|reason| format!("the model failed: {reason}{STAYS_SILENT}"))
}

/// Returns the duration of `samples` samples.
pub(super) fn duration_of(samples: usize, sample_rate: u32) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(sample_rate.max(1)))
}
