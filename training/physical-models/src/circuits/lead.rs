//! Lead amplifier after the hot-rodded ones of the 1980s: four triodes in a row, the third of which
//! is biased cold, and a cathode follower into the tone stack.
//!
//! Component values typical of published ones. The power stage, which such amplifiers keep clean, is
//! left out. Gain and Bass have audio tapers.

use super::circuit::{Circuit, Knob};
use super::netlist::{GROUND, Netlist};
use super::taper::{audible, audio};
use super::valve::{BRITISH_STACK, Divider, Stage, follower};

const FIRST: Stage = Stage {
    plate_ohms: 220e3,
    cathode_ohms: 1.8e3,
    cathode_farads: 1e-6,
};
const SECOND: Stage = Stage {
    plate_ohms: 100e3,
    cathode_ohms: 1.8e3,
    cathode_farads: 1e-6,
};
/// Cuts one half off: its large resistor lets little current flow.
const COLD: Stage = Stage {
    plate_ohms: 100e3,
    cathode_ohms: 39e3,
    cathode_farads: 0.0,
};
const FOURTH: Stage = Stage {
    plate_ohms: 220e3,
    cathode_ohms: 1.8e3,
    cathode_farads: 0.0,
};
/// Between the second and the third valve, and the third and the fourth.
const DIVIDER: Divider = Divider {
    coupling_farads: 22e-9,
    upper_ohms: 470e3,
    bright_farads: 470e-12,
    lower_ohms: 220e3,
};
const DIVIDER_LOAD: [f64; 2] = [22e-9, 690e3];
const SUPPLY_V: f64 = 300.0;
/// Gain control, and its coupling capacitor.
const GAIN_OHMS: f64 = 1e6;
const COUPLING_FARADS: f64 = 22e-9;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "lead",
    title: "Lead amplifier",
    description: "A high-gain amplifier with a long sustain.",
    kind: "amp",
    tone: "hi_gain",
    knobs: &[
        Knob {
            name: "Gain",
            default: 0.6,
            description: "Level into the second valve.",
        },
        Knob {
            name: "Bass",
            default: 0.5,
            description: "Level of the bass.",
        },
        Knob {
            name: "Middle",
            default: 0.5,
            description: "Level of the middle.",
        },
        Knob {
            name: "Treble",
            default: 0.5,
            description: "Level of the treble.",
        },
    ],
    input_volts: 1.0,
    output_volts: 100.0,
    stages: |[gain, bass, middle, treble]| {
        let gain = Divider::gain(COUPLING_FARADS, 1e-9, GAIN_OHMS, audible(gain));
        let (mut last, input, output) = Netlist::new();
        let supply = last.supply(SUPPLY_V);
        let grid = DIVIDER.connect(&mut last, input);
        let plate = FOURTH.connect(&mut last, supply, grid);
        let cathode = follower(&mut last, supply, plate, 100e3);
        let shares = [treble, middle, audio(bass)];
        BRITISH_STACK.connect(&mut last, cathode, output, shares);
        last.resistor(output, GROUND, 1e6);
        vec![
            FIRST.at_input(SUPPLY_V, [COUPLING_FARADS, GAIN_OHMS]),
            SECOND.between(SUPPLY_V, gain, DIVIDER_LOAD),
            COLD.between(SUPPLY_V, DIVIDER, DIVIDER_LOAD),
            last,
        ]
    },
};
