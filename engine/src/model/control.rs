//! Controls: the named, ranged, automatable inputs of a model.

use serde::{Deserialize, Serialize};

/// How a knob's travel maps onto the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// Equal travel, equal difference.
    #[default]
    Linear,
    /// Equal travel, equal ratio; the range must be above zero.
    Logarithmic,
}

/// A named, ranged, automatable input of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Name to address and to show it by, unique within the model.
    pub name: String,
    /// Unit to show, may be empty.
    #[serde(default)]
    pub unit: String,
    /// Smallest value.
    pub min: f32,
    /// Largest value.
    pub max: f32,
    /// Value when nobody has touched it.
    pub default: f32,
    /// Travel of a knob.
    #[serde(default)]
    pub curve: Curve,
    /// One sentence on what it does.
    #[serde(default)]
    pub description: String,
}

impl Control {
    /// Whether the range is ordered and finite, and holds the default.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let finite = [self.min, self.max, self.default].iter().all(|value| value.is_finite());
        let ordered = self.min < self.max && (self.min..=self.max).contains(&self.default);
        finite && ordered && (self.curve == Curve::Linear || self.min > 0.0)
    }

    /// The nearest value in the range; the default for a NaN.
    #[must_use]
    pub fn clamp(&self, value: f32) -> f32 {
        if value.is_nan() { self.default } else { value.clamp(self.min, self.max) }
    }
}
