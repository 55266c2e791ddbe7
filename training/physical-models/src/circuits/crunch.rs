//! Crunch amplifier after the British ones of 1967 without a master volume: two triodes, a cathode
//! follower into the tone stack, then two EL34 in push-pull.
//!
//! Component values as widely published, those of the bright channel. Gain and Bass have audio
//! tapers.

use super::circuit::{Circuit, Knob};
use super::device::Pentode;
use super::netlist::{GROUND, Netlist};
use super::taper::{audible, audio};
use super::valve::{BRITISH_STACK, Divider, EL34, PowerStage, Stage, follower};

const POWER: PowerStage = PowerStage {
    valve: Pentode {
        screen_v: 420.0,
        ..EL34
    },
    supply_v: 430.0,
    bias_v: -38.0,
    load_ohms: 3.4e3,
    splitter_gain: 6.0,
};

const FIRST: Stage = Stage {
    plate_ohms: 100e3,
    cathode_ohms: 2.7e3,
    cathode_farads: 0.68e-6,
};
const SECOND: Stage = Stage {
    plate_ohms: 100e3,
    cathode_ohms: 820.0,
    cathode_farads: 0.68e-6,
};
/// Gain control, and its coupling capacitor.
const GAIN_OHMS: f64 = 1e6;
const COUPLING_FARADS: f64 = 22e-9;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "crunch",
    title: "Crunch",
    description: "A British amplifier whose preamplifier and power stage distort together.",
    kind: "amp",
    tone: "crunch",
    knobs: &[
        Knob {
            name: "Gain",
            default: 0.6,
            description: "Level into the second valve.",
        },
        Knob {
            name: "Bass",
            default: 0.4,
            description: "Level of the bass.",
        },
        Knob {
            name: "Middle",
            default: 0.6,
            description: "Level of the middle.",
        },
        Knob {
            name: "Treble",
            default: 0.6,
            description: "Level of the treble.",
        },
    ],
    input_volts: 1.0,
    output_volts: 730.0,
    stages: |[gain, bass, middle, treble]| {
        let first = FIRST.at_input(300.0, [COUPLING_FARADS, GAIN_OHMS]);
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(300.0);
        let gain = Divider::gain(COUPLING_FARADS, 100e-12, GAIN_OHMS, audible(gain));
        let wiper = gain.connect(&mut net, input);
        // The mixer of two channels, of which the other is silent.
        let grid = net.node();
        net.resistor(wiper, grid, 470e3);
        net.capacitor(wiper, grid, 470e-12);
        net.resistor(grid, GROUND, 470e3);
        let plate = SECOND.connect(&mut net, supply, grid);
        let cathode = follower(&mut net, supply, plate, 100e3);
        let shares = [treble, middle, audio(bass)];
        BRITISH_STACK.connect(&mut net, cathode, output, shares);
        net.resistor(output, GROUND, 1e6);
        vec![first, net, POWER.netlist(None)]
    },
};
