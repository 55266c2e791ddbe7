//! Controls: the named, ranged, automatable inputs of a model.

use serde::{Deserialize, Serialize};

/// Mapping from a knob's position to a value in the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// Equal steps of the knob are equal differences.
    #[default]
    Linear,
    /// Equal steps of the knob are equal ratios; the range must be above zero.
    Logarithmic,
    /// Whole numbers only, such as a count or a switch from 0 to 1. Changes are not smoothed.
    Steps,
}

/// Named, ranged, automatable input of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Name, for display and addressing; unique within the model.
    pub name: String,
    /// Unit for display; may be empty.
    #[serde(default)]
    pub unit: String,
    /// Smallest value.
    pub min: f32,
    /// Largest value.
    pub max: f32,
    /// Default value.
    pub default: f32,
    /// Mapping from the position of a knob.
    #[serde(default)]
    pub curve: Curve,
    /// Description of one sentence.
    #[serde(default)]
    pub description: String,
}

impl Control {
    /// Returns a control with a linear curve; `range` is its smallest and its largest value.
    #[must_use]
    pub fn linear(
        name: impl Into<String>,
        unit: impl Into<String>,
        range: (f32, f32),
        default: f32,
        description: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            min: range.0,
            max: range.1,
            default,
            curve: Curve::Linear,
            description: description.into(),
        }
    }

    /// Returns the control with whole numbers only.
    #[must_use]
    pub fn in_steps(self) -> Self {
        Self {
            curve: Curve::Steps,
            ..self
        }
    }

    /// Returns whether the range is finite, ordered and contains the default.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let finite = [self.min, self.max, self.default]
            .iter()
            .all(|value| value.is_finite());
        let ordered = self.min < self.max && (self.min..=self.max).contains(&self.default);
        let fits = match self.curve {
            Curve::Linear => true,
            Curve::Logarithmic => self.min > 0.0,
            Curve::Steps => [self.min, self.max, self.default]
                .iter()
                .all(|value| value.fract() == 0.0),
        };
        finite && ordered && fits
    }

    /// Clamps a value to the range, and rounds it if the control has steps; NaN becomes the
    /// default.
    #[must_use]
    pub fn clamp(&self, value: f32) -> f32 {
        let value = if value.is_nan() {
            self.default
        } else {
            value.clamp(self.min, self.max)
        };
        if self.curve == Curve::Steps {
            value.round()
        } else {
            value
        }
    }
}
