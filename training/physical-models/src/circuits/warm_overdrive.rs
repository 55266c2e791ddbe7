//! Asymmetric overdrive after the yellow pedals of 1981: as [`super::overdrive`], but with two diodes
//! one way and one the other, which adds even harmonics, and with more bass and a softer tone control.
//!
//! Component values as widely published. The drive knob has an audio taper.

use super::circuit::{Circuit, Knob};
use super::soft_clip::SoftClip;
use super::taper::audio;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "warm-overdrive",
    title: "Warm overdrive",
    description: "A diode overdrive pedal that clips one half later than the other.",
    kind: "pedal",
    tone: "overdrive",
    knobs: &[
        Knob {
            name: "Drive",
            default: 0.5,
            description: "Gain into the diodes.",
        },
        Knob {
            name: "Tone",
            default: 0.5,
            description: "From dark to bright.",
        },
    ],
    input_volts: 1.0,
    output_volts: 2.6,
    stages: |[drive, tone, ..]| {
        let parts = SoftClip {
            input_farads: 18e-9,
            bias_ohms: 470e3,
            feedback_ohms: 33e3 + audio(drive) * 1e6,
            feedback_farads: 47e-12,
            in_series: [2.0, 1.0],
            tone_ohms: 10e3,
            tone_farads: 18e-9,
            tone_leak_ohms: 1e6,
            tone_feedback_ohms: 10e3,
            tone_pot_ohms: 20e3,
            wiper_ohms: 470.0,
            wiper_farads: 27e-9,
        };
        vec![parts.netlist(tone)]
    },
};
