//! Two-transistor fuzz with silicon transistors, as the later ones of the round pedals.

use super::circuit::{Circuit, Knob};
use super::device::Device;
use super::two_transistors::TwoTransistors;

/// Transistors like BC108, with the current gains usual for this circuit.
pub(super) const SILICON: TwoTransistors = TwoTransistors {
    transistors: [
        Device::Npn {
            saturation_a: 2.0e-14,
            gain: [180.0, 3.0],
        },
        Device::Npn {
            saturation_a: 2.0e-14,
            gain: [250.0, 3.0],
        },
    ],
    farads: [22e-12, 10e-12],
    tap_ohms: 470.0,
};

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "fuzz",
    title: "Fuzz",
    description: "A fuzz with two silicon transistors.",
    kind: "pedal",
    tone: "fuzz",
    knobs: &[Knob {
        name: "Fuzz",
        default: 0.85,
        description: "Gain of the second transistor.",
    }],
    input_volts: 0.5,
    output_volts: 0.5,
    stages: |[fuzz, ..]| vec![SILICON.netlist(fuzz)],
};
