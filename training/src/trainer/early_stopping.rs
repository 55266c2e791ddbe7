//! Stops a run that no longer improves, or that is good enough.

use super::callback::{Callback, StopReason, ValidationReport};

/// Stops after validations without progress, or at a loss.
pub struct EarlyStopping {
    patience: Option<u64>,
    stop_at: Option<f64>,
    /// Validations since the best.
    waited: u64,
}

impl EarlyStopping {
    /// Creates a callback; `waited` validations have passed since the best.
    #[must_use]
    pub fn new(patience: Option<u64>, stop_at: Option<f64>, waited: u64) -> Self {
        Self {
            patience,
            stop_at,
            waited,
        }
    }
}

impl Callback for EarlyStopping {
    fn validated(&mut self, report: &ValidationReport<'_>) -> anyhow::Result<StopReason> {
        self.waited = if report.is_best { 0 } else { self.waited + 1 };
        let loss = report.validation.loss;
        if let Some(limit) = self.stop_at.filter(|limit| loss <= *limit) {
            return Ok(Some(format!(
                "the validation loss {loss:.5} reached {limit}"
            )));
        }
        Ok(self
            .patience
            .filter(|patience| self.waited >= *patience)
            .map(|patience| format!("{patience} validations without progress")))
    }
}
