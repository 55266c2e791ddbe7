//! Two-transistor fuzz with germanium transistors, as the first of the round pedals: softer, and
//! lopsided.
//!
//! The transistors are PNP; since parts are NPN, both voltages are inverted.

use super::circuit::{Circuit, Knob};
use super::device::Device;
use super::two_transistors::TwoTransistors;

/// Transistors like AC128, with the current gains that are chosen for this circuit.
const GERMANIUM: TwoTransistors = TwoTransistors {
    transistors: [
        Device::Npn {
            saturation_a: 1.0e-6,
            gain: [70.0, 4.0],
        },
        Device::Npn {
            saturation_a: 1.0e-6,
            gain: [120.0, 4.0],
        },
    ],
    farads: [100e-12, 100e-12],
    tap_ohms: 470.0,
};

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "germanium-fuzz",
    title: "Germanium fuzz",
    description: "A fuzz with two germanium transistors, softer than that with silicon.",
    kind: "pedal",
    tone: "fuzz",
    knobs: &[Knob {
        name: "Fuzz",
        default: 0.8,
        description: "Gain of the second transistor.",
    }],
    input_volts: -1.0,
    output_volts: -0.5,
    stages: |[fuzz, ..]| vec![GERMANIUM.netlist(fuzz)],
};
