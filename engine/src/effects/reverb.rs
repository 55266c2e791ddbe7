//! Reverb.

use super::{Effect, EffectKind, EffectParameter};
use crate::dsp::reverb::{DEFAULT_TIME_S, Reverb, TIME_RANGE_S};

pub(super) static KIND: EffectKind = EffectKind {
    id: "reverb",
    name: "Reverb",
    description: "Adds a room around the sound.",
    parameters: &[
        EffectParameter::new("amount", "Amount", "", [0.0, 1.0], 0.3),
        EffectParameter::new("time", "Time", " s", TIME_RANGE_S, DEFAULT_TIME_S).logarithmic(),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Room(Reverb::new(sample_rate))),
};

struct Room(Reverb);

impl Effect for Room {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        if let &[amount, time] = values {
            self.0.set(amount, time);
        }
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        self.0.process(left, right);
    }

    fn tail_samples(&self) -> usize {
        self.0.tail_samples()
    }
}
