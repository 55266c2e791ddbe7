//! Amplifier at the edge of break-up after the British ones of 1963 with a top boost: a triode, a
//! cathode follower into a tone stack without middle, then EL84 in push-pull.
//!
//! Component values as widely published; the power stage has fixed bias. Volume and Bass have audio
//! tapers.

use super::circuit::{Circuit, Knob};
use super::device::Pentode;
use super::netlist::{GROUND, Netlist};
use super::taper::{audible, audio};
use super::valve::{Divider, EL84, FIRST_STAGE, PowerStage, Stage, ToneStack, follower};

const POWER: PowerStage = PowerStage {
    valve: Pentode {
        screen_v: 310.0,
        ..EL84
    },
    supply_v: 320.0,
    bias_v: -11.5,
    load_ohms: 8e3,
    splitter_gain: 6.0,
};

/// Tone stack whose middle is a fixed resistor.
const STACK: ToneStack = ToneStack {
    treble_farads: 50e-12,
    bass_farads: 22e-9,
    middle_farads: 22e-9,
    slope_ohms: 100e3,
    treble_ohms: 1e6,
    bass_ohms: 1e6,
    middle_ohms: 10e3,
    at_wiper: false,
};

/// Loss between the tone stack and the phase splitter.
const MIXER_OHMS: f64 = 220e3;
/// Volume control, and its coupling capacitor.
const VOLUME_OHMS: f64 = 500e3;
const COUPLING_FARADS: f64 = 47e-9;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "breakup",
    title: "Edge of break-up",
    description: "A British amplifier that begins to distort where it is played loud.",
    kind: "amp",
    tone: "overdrive",
    knobs: &[
        Knob {
            name: "Volume",
            default: 0.4,
            description: "Level into the second valve and the power stage.",
        },
        Knob {
            name: "Bass",
            default: 0.5,
            description: "Level of the bass.",
        },
        Knob {
            name: "Treble",
            default: 0.5,
            description: "Level of the treble.",
        },
        Knob {
            name: "Cut",
            default: 0.3,
            description: "Takes treble away in the power stage.",
        },
    ],
    input_volts: 1.0,
    output_volts: 510.0,
    stages: |[volume, bass, treble, cut]| {
        let first = FIRST_STAGE.at_input(290.0, [COUPLING_FARADS, VOLUME_OHMS]);
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(290.0);
        let gain = Divider::gain(COUPLING_FARADS, 100e-12, VOLUME_OHMS, audible(volume));
        let grid = gain.connect(&mut net, input);
        let stage = Stage {
            cathode_farads: 0.0,
            ..FIRST_STAGE
        };
        let plate = stage.connect(&mut net, supply, grid);
        let cathode = follower(&mut net, supply, plate, 56e3);
        let toned = net.node();
        STACK.connect(&mut net, cathode, toned, [treble, 1.0, audio(bass)]);
        net.resistor(toned, output, MIXER_OHMS);
        net.resistor(output, GROUND, 1e6);
        let cut_ohms = 250e3 * (1.0 - cut) + 1e3;
        vec![first, net, POWER.netlist(Some(cut_ohms))]
    },
};
