//! Reduction of the rate when the validation loss no longer falls.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::check;

/// Multiplies the rate by a factor after validations without progress.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plateau {
    /// Factor of a reduction.
    pub factor: f64,
    /// Validations without progress before a reduction.
    pub patience: u32,
    /// Least relative fall of the loss that counts as progress.
    pub threshold: f64,
    /// Least share of the highest rate.
    pub last: f64,
}

impl Default for Plateau {
    fn default() -> Self {
        Self {
            factor: 0.5,
            patience: 5,
            threshold: 1e-3,
            last: 1e-3,
        }
    }
}

impl Plateau {
    pub(super) fn check(self) -> anyhow::Result<()> {
        ensure!(self.patience > 0, "schedule.patience must be above 0");
        check::in_range("schedule.factor", self.factor, 0.0..=1.0)?;
        check::in_range("schedule.threshold", self.threshold, 0.0..=1.0)?;
        check::in_range("schedule.last", self.last, 0.0..=1.0)
    }
}

/// State of a [`Plateau`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlateauState {
    share: Option<f64>,
    best: Option<f64>,
    waited: u32,
}

impl PlateauState {
    /// Returns the share of the highest rate.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share.unwrap_or(1.0)
    }

    /// Takes the loss of a validation.
    pub fn validated(&mut self, plateau: &Plateau, loss: f64) {
        if self
            .best
            .is_none_or(|best| loss < best * (1.0 - plateau.threshold))
        {
            self.best = Some(loss);
            self.waited = 0;
            return;
        }
        self.waited += 1;
        if self.waited >= plateau.patience {
            self.waited = 0;
            self.share = Some((self.share() * plateau.factor).max(plateau.last));
        }
    }
}
