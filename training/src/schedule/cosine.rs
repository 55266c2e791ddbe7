//! Cosine decay with restarts (Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm
//! restarts", ICLR 2017).

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::check;

/// Half a cosine from the highest rate to the last, once or several times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cosine {
    /// Cycles in the run; each but the last ends with a restart.
    pub cycles: u32,
    /// Length of a cycle relative to the one before.
    pub cycle_factor: f64,
    /// Share of the highest rate at the end of a cycle.
    pub last: f64,
}

impl Default for Cosine {
    fn default() -> Self {
        Self {
            cycles: 1,
            cycle_factor: 1.0,
            last: 0.01,
        }
    }
}

impl Cosine {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::in_range("schedule.cycles", self.cycles, 1..=100)?;
        check::in_range("schedule.cycle_factor", self.cycle_factor, 0.1..=10.0)?;
        check::in_range("schedule.last", self.last, 0.0..=1.0)
    }

    /// Returns the share of the highest rate; `progress` is 0 to 1.
    pub(super) fn share(self, progress: f64) -> f64 {
        let lengths = || (0..self.cycles).map(|cycle| self.cycle_factor.powi(cycle as i32));
        let total: f64 = lengths().sum();
        let mut start = 0.0;
        let mut within = 1.0;
        for length in lengths().map(|length| length / total) {
            // The end of a cycle is the start of the next.
            if progress < start + length - 1e-12 {
                within = (progress - start) / length;
                break;
            }
            start += length;
        }
        self.last + (1.0 - self.last) * (0.5 + 0.5 * (PI * within).cos())
    }
}
