//! Noise gate.

use super::{Effect, EffectKind, EffectParameter};
use crate::dsp::noise_gate::NoiseGate;

pub(super) static KIND: EffectKind = EffectKind {
    id: "gate",
    name: "Gate",
    description: "Silences what is quieter than a threshold, such as the hum between two notes.",
    parameters: &[EffectParameter::new(
        "threshold",
        "Threshold",
        " dB",
        [-90.0, -20.0],
        -60.0,
    )],
    mix: 1.0,
    new: |sample_rate| Box::new(Gate(NoiseGate::new(sample_rate))),
};

struct Gate(NoiseGate);

impl Effect for Gate {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        self.0.set(values.first().copied());
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        self.0.process(&mut [left, right]);
    }

    fn tail_samples(&self) -> usize {
        0
    }
}
