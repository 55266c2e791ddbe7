//! Two-transistor fuzz after the round pedals of 1966, with the silicon transistors of later ones.
//!
//! The second transistor feeds back to the base of the first, which sets the bias of both. The fuzz
//! knob is at 0.85. The guitar's pickup loads the circuit and is part of its sound; here it is a
//! resistor.

use super::circuit::Circuit;
use super::device::Device;
use super::netlist::{GROUND, Netlist};

/// Position of the fuzz knob, 0 to 1.
const FUZZ: f64 = 0.85;
/// Resistance of the pickup and its cable, ohms.
const SOURCE_OHMS: f64 = 20e3;
/// Transistors like BC108, with the current gains usual for this circuit.
const TRANSISTORS: [Device; 2] = [
    Device::Npn {
        saturation_a: 2.0e-14,
        gain: [180.0, 3.0],
    },
    Device::Npn {
        saturation_a: 2.0e-14,
        gain: [250.0, 3.0],
    },
];

pub(super) fn circuit() -> Circuit {
    let (mut net, input, output) = Netlist::new();
    let supply = net.supply(9.0);
    let (pickup, first_base, first_collector) = (net.node(), net.node(), net.node());
    net.resistor(input, pickup, SOURCE_OHMS);
    net.capacitor(pickup, first_base, 2.2e-6);
    net.resistor(supply, first_collector, 33e3);
    net.device(
        TRANSISTORS[0],
        &[[first_base, GROUND], [first_base, first_collector]],
    );
    // Junction and wiring capacitance, which keeps radio out.
    net.capacitor(first_base, first_collector, 22e-12);
    let (second_collector, emitter, wiper, tap) = (net.node(), net.node(), net.node(), net.node());
    net.resistor(supply, tap, 470.0);
    net.resistor(tap, second_collector, 8.2e3);
    net.device(
        TRANSISTORS[1],
        &[
            [first_collector, emitter],
            [first_collector, second_collector],
        ],
    );
    net.capacitor(first_collector, second_collector, 10e-12);
    net.resistor(emitter, first_base, 100e3);
    net.potentiometer(emitter, wiper, GROUND, 1e3, FUZZ);
    net.capacitor(wiper, GROUND, 20e-6);
    net.capacitor(tap, output, 10e-9);
    net.resistor(output, GROUND, 500e3);
    Circuit {
        name: "fuzz",
        description: "a two-transistor silicon fuzz, fuzz 8.5",
        netlist: net,
        input_volts: 0.5,
        output_volts: 0.5,
    }
}
