//! Decays with a single formula: steps, exponential, polynomial.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::check;

/// Multiplies the rate by a factor every so many steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Steps between two reductions.
    pub every: u64,
    /// Factor of a reduction.
    pub factor: f64,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            every: 1_000,
            factor: 0.5,
        }
    }
}

impl Step {
    pub(super) fn check(self) -> anyhow::Result<()> {
        ensure!(self.every > 0, "schedule.every must be above 0");
        check::in_range("schedule.factor", self.factor, 0.0..=1.0)
    }

    pub(super) fn share(self, since: u64) -> f64 {
        self.factor
            .powi(i32::try_from(since / self.every).unwrap_or(i32::MAX))
    }
}

/// Halves the rate over each half-life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exponential {
    /// Steps over which the rate halves.
    pub half_life: u64,
}

impl Default for Exponential {
    fn default() -> Self {
        Self { half_life: 1_000 }
    }
}

impl Exponential {
    pub(super) fn check(self) -> anyhow::Result<()> {
        ensure!(self.half_life > 0, "schedule.half_life must be above 0");
        Ok(())
    }

    pub(super) fn share(self, since: u64) -> f64 {
        (-(since as f64) / self.half_life as f64).exp2()
    }
}

/// Follows a power of the remaining share of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Polynomial {
    /// Power; 1 is a straight line.
    pub power: f64,
    /// Share of the highest rate at the end.
    pub last: f64,
}

impl Default for Polynomial {
    fn default() -> Self {
        Self {
            power: 1.0,
            last: 0.0,
        }
    }
}

impl Polynomial {
    pub(super) fn check(self) -> anyhow::Result<()> {
        check::in_range("schedule.power", self.power, 0.01..=100.0)?;
        check::in_range("schedule.last", self.last, 0.0..=1.0)
    }

    pub(super) fn share(self, progress: f64) -> f64 {
        self.last + (1.0 - self.last) * (1.0 - progress).powf(self.power)
    }
}
