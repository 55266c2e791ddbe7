//! One cycle (Smith & Topin, "Super-convergence: very fast training of neural networks using large
//! learning rates", 2017).

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::check;

/// Rises to the highest rate and falls to nearly nothing, both along half a cosine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OneCycle {
    /// Share of the run at which the rate is highest.
    pub peak: f64,
    /// Share of the highest rate at the start.
    pub first: f64,
    /// Share of the highest rate at the end.
    pub last: f64,
}

impl Default for OneCycle {
    fn default() -> Self {
        Self {
            peak: 0.3,
            first: 0.04,
            last: 4e-6,
        }
    }
}

impl OneCycle {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::in_range("schedule.peak", self.peak, 0.01..=0.99)?;
        check::in_range("schedule.first", self.first, 0.0..=1.0)?;
        check::in_range("schedule.last", self.last, 0.0..=1.0)
    }

    pub(super) fn share(self, progress: f64) -> f64 {
        let between = |from: f64, to: f64, share: f64| {
            to + (from - to) * (0.5 + 0.5 * (PI * share.min(1.0)).cos())
        };
        if progress < self.peak {
            between(self.first, 1.0, progress / self.peak)
        } else {
            between(1.0, self.last, (progress - self.peak) / (1.0 - self.peak))
        }
    }
}
