//! Macros: eight knobs that turn whatever controls a model has.

use ondes_engine::model::card::Levels;
use ondes_engine::model::{Control, Curve};
use ondes_engine::pipeline::ControlId;

/// How many there are.
pub const MACROS: usize = 8;

/// Where a macro leaves its control as the model's maker set it.
pub const REST: f32 = 0.5;

/// The control that says how long notes ring when their keys are up, in ms.
pub const RELEASE: ControlId = ControlId::of("release");

/// What one macro turns. At rest, in the middle, the control is at its default; from there it goes to either end, so that
/// macros at rest suit every model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Travel {
    /// The control.
    pub id: ControlId,
    min: f32,
    default: f32,
    max: f32,
    curve: Curve,
}

/// What is turned on a model, as its player needs to know it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the macros turn; those without a control turn nothing.
    pub macros: [Option<Travel>; MACROS],
    /// Where the latents' own knobs stand, as far as they were turned. A macro that turns the same control counts more.
    pub latents: Vec<(ControlId, f32)>,
    /// What the model tells of its levels.
    pub levels: Levels,
    /// The number by which [`Session::heard`](ondes_engine::realtime::Session::heard) knows the model.
    pub model: u64,
}

impl Travel {
    /// The way through a control's range.
    #[must_use]
    pub fn through(control: &Control) -> Self {
        let Control { min, default, max, curve, .. } = *control;
        Self { id: ControlId::of(&control.name), min, default, max, curve }
    }

    /// The same, with another value in the middle: a control that has a knob of its own rests where that stands.
    #[must_use]
    pub fn resting_at(self, value: f32) -> Self {
        Self { default: value.clamp(self.min, self.max), ..self }
    }

    /// The control's value where the macro stands, 0 … 1, in the control's unit.
    #[must_use]
    pub fn value(&self, position: f32) -> f32 {
        let position = if position.is_finite() { position.clamp(0.0, 1.0) } else { REST };
        let (from, to, part) = if position < REST {
            (self.min, self.default, position / REST)
        } else {
            (self.default, self.max, (position - REST) / (1.0 - REST))
        };
        // The ends are met exactly.
        match (part, self.curve) {
            (0.0, _) => from,
            (1.0, _) => to,
            (_, Curve::Linear) => from + part * (to - from),
            (_, Curve::Logarithmic) => from * (to / from).powf(part),
        }
    }

    /// Where the macro must stand for that value; the nearest end where it is out of range.
    #[must_use]
    pub fn position(&self, value: f32) -> f32 {
        let (from, to, start) =
            if value < self.default { (self.min, self.default, 0.0) } else { (self.default, self.max, REST) };
        let part = match self.curve {
            _ if from == to => 0.0,
            Curve::Linear => (value - from) / (to - from),
            Curve::Logarithmic => (value.max(f32::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        start + REST * if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travel(min: f32, default: f32, max: f32, curve: Curve) -> Travel {
        Travel { id: ControlId::of("x"), min, default, max, curve }
    }

    #[test]
    fn goes_from_end_to_end_through_the_default() {
        for travel in [travel(0.5, 90.0, 5000.0, Curve::Logarithmic), travel(-24.0, 0.0, 24.0, Curve::Linear)] {
            let at = [travel.value(0.0), travel.value(REST), travel.value(1.0)];
            assert_eq!(at, [travel.min, travel.default, travel.max]);
            for step in 0..=20 {
                let position = step as f32 / 20.0;
                assert!((travel.position(travel.value(position)) - position).abs() < 1e-4, "{travel:?} {position}");
            }
            assert_eq!(travel.value(f32::NAN), travel.default);
            assert_eq!((travel.position(-1e9), travel.position(1e9)), (0.0, 1.0));
        }
    }

    #[test]
    fn it_rests_where_another_knob_stands() {
        let travel = travel(-4.0, 1.0, 4.0, Curve::Linear).resting_at(-2.0);
        assert_eq!(
            [travel.value(0.0), travel.value(REST), travel.value(0.75), travel.value(1.0)],
            [-4.0, -2.0, 1.0, 4.0]
        );
        assert_eq!(travel.resting_at(9.0).value(REST), 4.0);
    }

    #[test]
    fn a_default_at_an_end_stays_there() {
        let travel = travel(0.0, 0.0, 200.0, Curve::Linear);
        assert_eq!([travel.value(0.0), travel.value(0.3), travel.value(REST)], [0.0; 3]);
        assert_eq!(travel.value(0.75), 100.0);
    }
}
