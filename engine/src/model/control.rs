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

    /// Returns the range of a knob that turns the control, with its default in the middle.
    #[must_use]
    pub fn knob_range(&self) -> KnobRange {
        KnobRange {
            min: self.min,
            centre: self.default,
            max: self.max,
            curve: self.curve,
        }
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

/// Range of a knob that has a value of its own in the middle; either half covers the way to one end,
/// so that a knob that is centred changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnobRange {
    /// Smallest value.
    pub min: f32,
    /// Value in the middle, at [`CENTRE`](Self::CENTRE); in range.
    pub centre: f32,
    /// Largest value.
    pub max: f32,
    /// Mapping from the position of a knob.
    pub curve: Curve,
}

impl KnobRange {
    /// Position of the middle.
    pub const CENTRE: f32 = 0.5;

    /// Returns the same range with another value in the middle, the nearest in range.
    #[must_use]
    pub fn centred_at(self, value: f32) -> Self {
        Self {
            centre: value.clamp(self.min, self.max),
            ..self
        }
    }

    /// Returns the value at a position, 0 … 1; in the middle for NaN and infinities. Steps are not
    /// rounded.
    #[must_use]
    pub fn value(&self, position: f32) -> f32 {
        let position = if position.is_finite() {
            position.clamp(0.0, 1.0)
        } else {
            Self::CENTRE
        };
        let (from, to, part) = if position < Self::CENTRE {
            (self.min, self.centre, position / Self::CENTRE)
        } else {
            (
                self.centre,
                self.max,
                (position - Self::CENTRE) / (1.0 - Self::CENTRE),
            )
        };
        // Both ends are met exactly.
        match (part, self.curve) {
            (0.0, _) => from,
            (1.0, _) => to,
            (_, Curve::Linear | Curve::Steps) => from + part * (to - from),
            (_, Curve::Logarithmic) => from * (to / from).powf(part),
        }
    }

    /// Returns the position for a value; the nearest end if it is out of range.
    #[must_use]
    pub fn position(&self, value: f32) -> f32 {
        let (from, to, start) = if value < self.centre {
            (self.min, self.centre, 0.0)
        } else {
            (self.centre, self.max, Self::CENTRE)
        };
        let part = match self.curve {
            _ if from == to => 0.0,
            Curve::Linear | Curve::Steps => (value - from) / (to - from),
            Curve::Logarithmic => (value.max(f32::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        let part = if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        };
        start + Self::CENTRE * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: f32, centre: f32, max: f32, curve: Curve) -> KnobRange {
        KnobRange {
            min,
            centre,
            max,
            curve,
        }
    }

    #[test]
    fn goes_from_end_to_end_through_the_middle() {
        for range in [
            range(0.5, 90.0, 5000.0, Curve::Logarithmic),
            range(-24.0, 0.0, 24.0, Curve::Linear),
        ] {
            let at = [0.0, KnobRange::CENTRE, 1.0].map(|position| range.value(position));
            assert_eq!(at, [range.min, range.centre, range.max]);
            for step in 0..=20 {
                let position = step as f32 / 20.0;
                assert!(
                    (range.position(range.value(position)) - position).abs() < 1e-4,
                    "{range:?} {position}"
                );
            }
            assert_eq!(range.value(f32::NAN), range.centre);
            assert_eq!((range.position(-1e9), range.position(1e9)), (0.0, 1.0));
        }
    }

    #[test]
    fn it_rests_where_another_knob_stands() {
        let range = range(-4.0, 1.0, 4.0, Curve::Linear).centred_at(-2.0);
        let at = [0.0, 0.5, 0.75, 1.0].map(|position| range.value(position));
        assert_eq!(at, [-4.0, -2.0, 1.0, 4.0]);
        assert_eq!(range.centred_at(9.0).value(KnobRange::CENTRE), 4.0);
    }

    #[test]
    fn a_middle_at_an_end_stays_there() {
        let range = range(0.0, 0.0, 200.0, Curve::Linear);
        let at = [0.0, 0.3, 0.5, 0.75].map(|position| range.value(position));
        assert_eq!(at, [0.0, 0.0, 0.0, 100.0]);
    }
}
