//! Treble booster after the grey boxes of 1966: one germanium transistor behind a small capacitor.
//!
//! Component values as widely published; later ones switch to a larger capacitor for the full range,
//! here a knob goes from one to the other. The transistor is PNP; since parts are NPN, both voltages
//! are inverted.

use super::circuit::{Circuit, Knob};
use super::device::Device;
use super::netlist::{GROUND, Netlist};
use super::taper::{audible, audio};
use super::two_transistors::SOURCE_OHMS;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "treble-booster",
    title: "Treble booster",
    description: "A treble booster with one germanium transistor.",
    kind: "pedal",
    tone: "overdrive",
    knobs: &[
        Knob {
            name: "Boost",
            default: 0.9,
            description: "Output level.",
        },
        Knob {
            name: "Range",
            default: 0.0,
            description: "From treble only to the full range.",
        },
    ],
    input_volts: -1.0,
    output_volts: -7.0,
    stages: |[boost, range, ..]| {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(9.0);
        let (pickup, base, emitter) = (net.node(), net.node(), net.node());
        let (collector, wiper, middle) = (net.node(), net.node(), net.node());
        net.resistor(input, pickup, SOURCE_OHMS);
        net.capacitor(pickup, base, 4.7e-9);
        net.resistor(pickup, middle, (1e6 * audio(1.0 - range)).max(1.0));
        net.capacitor(middle, base, 100e-9);
        net.resistor(supply, base, 470e3);
        net.resistor(base, GROUND, 68e3);
        net.resistor(emitter, GROUND, 3.9e3);
        net.capacitor(emitter, GROUND, 47e-6);
        // Like OC44.
        let transistor = Device::Npn {
            saturation_a: 2.0e-6,
            gain: [100.0, 4.0],
        };
        net.device(transistor, &[[base, emitter], [base, collector]]);
        net.capacitor(base, collector, 10e-12);
        // The wiper at the collector gives the full level.
        net.potentiometer(collector, wiper, supply, 10e3, audible(boost));
        net.capacitor(wiper, output, 10e-9);
        net.resistor(output, GROUND, 1e6);
        vec![net]
    },
};
