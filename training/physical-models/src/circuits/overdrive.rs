//! Diode overdrive after the green pedals of 1979: an op-amp with diodes in its feedback, then a
//! tone control.
//!
//! Component values as widely published.

use super::circuit::{Circuit, Knob};
use super::soft_clip::SoftClip;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "overdrive",
    title: "Overdrive",
    description: "A diode overdrive pedal that clips both halves alike, with a hump in the middle.",
    kind: "pedal",
    tone: "overdrive",
    knobs: &[
        Knob {
            name: "Drive",
            default: 0.6,
            description: "Gain into the diodes.",
        },
        Knob {
            name: "Tone",
            default: 0.55,
            description: "From dark to bright.",
        },
    ],
    input_volts: 1.0,
    output_volts: 2.0,
    stages: |[drive, tone, ..]| {
        let parts = SoftClip {
            input_farads: 1e-6,
            bias_ohms: 10e3,
            feedback_ohms: 51e3 + drive * 500e3,
            feedback_farads: 51e-12,
            in_series: [1.0, 1.0],
            tone_ohms: 1e3,
            tone_farads: 220e-9,
            tone_leak_ohms: 10e3,
            tone_feedback_ohms: 1e3,
            tone_pot_ohms: 20e3,
            wiper_ohms: 220.0,
            wiper_farads: 220e-9,
        };
        vec![parts.netlist(tone)]
    },
};
