//! First stage of a valve amplifier: half a 12AX7, driven hard, into the tone stack of American
//! amplifiers from 1963 on.
//!
//! Component values as widely published; a volume control is all the way up. The knobs have linear
//! tapers.

use super::circuit::{Circuit, Knob};
use super::netlist::{GROUND, Netlist};
use super::valve::{AMERICAN_STACK, FIRST_STAGE};

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "triode",
    title: "Triode",
    description: "The first valve of an amplifier, driven hard, with its tone stack.",
    kind: "preamp",
    tone: "crunch",
    knobs: &[
        Knob {
            name: "Treble",
            default: 0.6,
            description: "Level of the treble.",
        },
        Knob {
            name: "Middle",
            default: 0.5,
            description: "Level of the middle.",
        },
        Knob {
            name: "Bass",
            default: 0.4,
            description: "Level of the bass.",
        },
    ],
    input_volts: 6.0,
    output_volts: 80.0,
    stages: |[treble, middle, bass, ..]| {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(300.0);
        let grid = net.node();
        net.resistor(input, grid, 68e3);
        net.resistor(grid, GROUND, 1e6);
        let plate = FIRST_STAGE.connect(&mut net, supply, grid);
        AMERICAN_STACK.connect(&mut net, plate, output, [treble, middle, bass]);
        net.resistor(output, GROUND, 1e6);
        vec![net]
    },
};
