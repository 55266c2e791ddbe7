//! Macros: eight knobs that can be bound to any control of the model.

use ondes_engine::model::{Control, Curve};
use ondes_engine::pipeline::ControlId;

/// Number of macros.
pub const MACRO_COUNT: usize = 8;

/// Position at which a macro leaves its control at the default.
pub const MACRO_CENTRE: f32 = 0.5;

/// Name of the control for the release time of notes, ms.
pub const RELEASE_CONTROL: ControlId = ControlId::new("release");

/// Range of the control that a macro turns. The centre position is the control's default; either
/// half covers the way to one end, so that centred macros suit every model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacroRange {
    /// The control.
    pub id: ControlId,
    min: f32,
    default: f32,
    max: f32,
    curve: Curve,
}

/// Controls of a model, as the audio thread sets them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlMapping {
    /// Ranges of the macros; `None` for a macro that is not bound.
    pub macros: [Option<MacroRange>; MACRO_COUNT],
    /// Values of the latent knobs that were turned. A macro that turns the same control takes
    /// precedence.
    pub latents: Vec<(ControlId, f32)>,
    /// Number by which [`Session::active_model`](ondes_engine::realtime::Session::active_model)
    /// identifies the model.
    pub model: u64,
}

impl MacroRange {
    /// Returns the range of a control.
    #[must_use]
    pub fn new(control: &Control) -> Self {
        let Control {
            min,
            default,
            max,
            curve,
            ..
        } = *control;
        Self {
            id: ControlId::new(&control.name),
            min,
            default,
            max,
            curve,
        }
    }

    /// Returns the same range with another value at the centre; used if the control also has a knob
    /// of its own.
    #[must_use]
    pub fn centred_at(self, value: f32) -> Self {
        Self {
            default: value.clamp(self.min, self.max),
            ..self
        }
    }

    /// Returns the control's value, in its unit, for a macro position (0 … 1).
    #[must_use]
    pub fn value(&self, position: f32) -> f32 {
        let position = if position.is_finite() {
            position.clamp(0.0, 1.0)
        } else {
            MACRO_CENTRE
        };
        let (from, to, part) = if position < MACRO_CENTRE {
            (self.min, self.default, position / MACRO_CENTRE)
        } else {
            (
                self.default,
                self.max,
                (position - MACRO_CENTRE) / (1.0 - MACRO_CENTRE),
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

    /// Returns the macro position for a value; the nearest end if it is out of range.
    #[must_use]
    pub fn position(&self, value: f32) -> f32 {
        let (from, to, start) = if value < self.default {
            (self.min, self.default, 0.0)
        } else {
            (self.default, self.max, MACRO_CENTRE)
        };
        let part = match self.curve {
            _ if from == to => 0.0,
            Curve::Linear | Curve::Steps => (value - from) / (to - from),
            Curve::Logarithmic => (value.max(f32::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        start
            + MACRO_CENTRE
                * if part.is_finite() {
                    part.clamp(0.0, 1.0)
                } else {
                    0.0
                }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travel(min: f32, default: f32, max: f32, curve: Curve) -> MacroRange {
        MacroRange {
            id: ControlId::new("x"),
            min,
            default,
            max,
            curve,
        }
    }

    #[test]
    fn goes_from_end_to_end_through_the_default() {
        for travel in [
            travel(0.5, 90.0, 5000.0, Curve::Logarithmic),
            travel(-24.0, 0.0, 24.0, Curve::Linear),
        ] {
            let at = [
                travel.value(0.0),
                travel.value(MACRO_CENTRE),
                travel.value(1.0),
            ];
            assert_eq!(at, [travel.min, travel.default, travel.max]);
            for step in 0..=20 {
                let position = step as f32 / 20.0;
                assert!(
                    (travel.position(travel.value(position)) - position).abs() < 1e-4,
                    "{travel:?} {position}"
                );
            }
            assert_eq!(travel.value(f32::NAN), travel.default);
            assert_eq!((travel.position(-1e9), travel.position(1e9)), (0.0, 1.0));
        }
    }

    #[test]
    fn it_rests_where_another_knob_stands() {
        let travel = travel(-4.0, 1.0, 4.0, Curve::Linear).centred_at(-2.0);
        assert_eq!(
            [
                travel.value(0.0),
                travel.value(MACRO_CENTRE),
                travel.value(0.75),
                travel.value(1.0)
            ],
            [-4.0, -2.0, 1.0, 4.0]
        );
        assert_eq!(travel.centred_at(9.0).value(MACRO_CENTRE), 4.0);
    }

    #[test]
    fn a_default_at_an_end_stays_there() {
        let travel = travel(0.0, 0.0, 200.0, Curve::Linear);
        assert_eq!(
            [
                travel.value(0.0),
                travel.value(0.3),
                travel.value(MACRO_CENTRE)
            ],
            [0.0; 3]
        );
        assert_eq!(travel.value(0.75), 100.0);
    }
}
