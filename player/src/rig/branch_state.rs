//! Two branches of a rig as saved in projects and presets.

use ondes_engine::rig::branches::{BranchSettings, HALF_DB};
use serde::{Deserialize, Serialize};

use crate::parameter_values::nearest;

/// Range of the level of a branch, dB.
pub const LEVELS_DB: [f32; 2] = [-60.0, 6.0];
/// Longest delay of a branch, ms.
pub const MAX_DELAY_MS: f32 = 100.0;

/// One of two branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Branch {
    /// The first branch.
    A,
    /// The second branch.
    B,
}

/// Settings of a branch at the mix. All fields are optional in a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BranchState {
    /// Level, dB, within [`LEVELS_DB`]; by default half of the sum of two equal branches.
    #[serde(deserialize_with = "nearest")]
    pub level: f32,
    /// Place, −1 left to 1 right.
    #[serde(deserialize_with = "nearest")]
    pub pan: f32,
    /// True if its polarity is inverted.
    pub inverted: bool,
    /// Delay, ms, up to [`MAX_DELAY_MS`].
    #[serde(deserialize_with = "nearest")]
    pub delay: f32,
}

impl Default for BranchState {
    fn default() -> Self {
        Self {
            level: HALF_DB,
            pan: 0.0,
            inverted: false,
            delay: 0.0,
        }
    }
}

impl BranchState {
    /// Returns the state with values in range.
    #[must_use]
    pub fn valid(self) -> Self {
        let default = Self::default();
        let valid = |value: f32, default: f32, [least, largest]: [f32; 2]| match value.is_nan() {
            true => default,
            false => value.clamp(least, largest),
        };
        Self {
            level: valid(self.level, default.level, LEVELS_DB),
            pan: valid(self.pan, default.pan, [-1.0, 1.0]),
            delay: valid(self.delay, default.delay, [0.0, MAX_DELAY_MS]),
            ..self
        }
    }

    pub(super) fn apply(self, settings: &BranchSettings) {
        let Self {
            level,
            pan,
            inverted,
            delay,
        } = self.valid();
        settings.set(level, pan, inverted, delay);
    }
}

/// Returns whether both branches are mixed by default.
pub(crate) fn are_default(branches: &[BranchState; 2]) -> bool {
    *branches == [BranchState::default(); 2]
}
