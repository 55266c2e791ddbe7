//! Fuzz of two transistors after the round pedals of 1966.
//!
//! The second transistor feeds back to the base of the first, which sets the bias of both. The
//! guitar's pickup loads the circuit and is part of its sound; here it is a resistor.

use super::device::Device;
use super::netlist::{GROUND, Netlist};

/// Resistance of the pickup and its cable, ohms.
pub(super) const SOURCE_OHMS: f64 = 20e3;

/// Parts that differ between the fuzzes.
pub(super) struct TwoTransistors {
    pub transistors: [Device; 2],
    /// Junction and wiring capacitance of each between base and collector, farads. It keeps radio
    /// out.
    pub farads: [f64; 2],
    /// From the supply to the output's tap, ohms.
    pub tap_ohms: f64,
}

impl TwoTransistors {
    /// Returns the parts, with the fuzz knob at a position from 0 to 1.
    pub fn netlist(&self, fuzz: f64) -> Netlist {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(9.0);
        let (pickup, first_base, first_collector) = (net.node(), net.node(), net.node());
        net.resistor(input, pickup, SOURCE_OHMS);
        net.capacitor(pickup, first_base, 2.2e-6);
        net.resistor(supply, first_collector, 33e3);
        net.device(
            self.transistors[0],
            &[[first_base, GROUND], [first_base, first_collector]],
        );
        net.capacitor(first_base, first_collector, self.farads[0]);
        let (second_collector, emitter, wiper, tap) =
            (net.node(), net.node(), net.node(), net.node());
        net.resistor(supply, tap, self.tap_ohms);
        net.resistor(tap, second_collector, 8.2e3);
        net.device(
            self.transistors[1],
            &[
                [first_collector, emitter],
                [first_collector, second_collector],
            ],
        );
        net.capacitor(first_collector, second_collector, self.farads[1]);
        net.resistor(emitter, first_base, 100e3);
        net.potentiometer(emitter, wiper, GROUND, 1e3, fuzz);
        net.capacitor(wiper, GROUND, 20e-6);
        net.capacitor(tap, output, 10e-9);
        net.resistor(output, GROUND, 500e3);
        net
    }
}
