//! Clean amplifier after the American ones with a black panel from 1963: two triodes around the tone
//! stack, then two 6L6 in push-pull.
//!
//! Component values as widely published. The mixer of the reverb, which loses what its valve gains,
//! is left out; Volume, Treble and Bass have audio tapers.

use super::circuit::{Circuit, Knob};
use super::device::Pentode;
use super::netlist::{GROUND, Netlist};
use super::taper::{audible, audio};
use super::valve::{AMERICAN_STACK, BEAM_6L6, FIRST_STAGE, PowerStage};

const POWER: PowerStage = PowerStage {
    valve: Pentode {
        screen_v: 410.0,
        ..BEAM_6L6
    },
    supply_v: 415.0,
    bias_v: -46.0,
    load_ohms: 4.2e3,
    splitter_gain: 4.0,
};

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "clean",
    title: "Clean amplifier",
    description: "A clean American amplifier with much treble and bass.",
    kind: "amp",
    tone: "clean",
    knobs: &[
        Knob {
            name: "Volume",
            default: 0.5,
            description: "Level into the second valve and the power stage.",
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
            default: 0.6,
            description: "Level of the treble.",
        },
    ],
    input_volts: 1.0,
    output_volts: 600.0,
    stages: |[volume, bass, middle, treble]| {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(300.0);
        let (first_grid, toned, grid) = (net.node(), net.node(), net.node());
        net.resistor(input, first_grid, 34e3);
        net.resistor(first_grid, GROUND, 1e6);
        let plate = FIRST_STAGE.connect(&mut net, supply, first_grid);
        let shares = [audio(treble), middle, audio(bass)];
        AMERICAN_STACK.connect(&mut net, plate, toned, shares);
        net.potentiometer(toned, grid, GROUND, 1e6, audible(volume));
        let plate = FIRST_STAGE.connect(&mut net, supply, grid);
        net.capacitor(plate, output, 22e-9);
        net.resistor(output, GROUND, 220e3);
        vec![net, POWER.netlist(None)]
    },
};
