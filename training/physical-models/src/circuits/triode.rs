//! First stage of a valve amplifier: half a 12AX7, driven hard, into the tone stack of American
//! amplifiers from 1963 on.
//!
//! Treble at 6, middle at 5, bass at 4, and a volume control all the way up.

use super::circuit::Circuit;
use super::device::Device;
use super::netlist::{GROUND, Netlist};

/// Positions of the three knobs, 0 to 1.
const TREBLE: f64 = 0.6;
const MIDDLE: f64 = 0.5;
const BASS: f64 = 0.4;

pub(super) fn circuit() -> Circuit {
    let (mut net, input, output) = Netlist::new();
    let supply = net.supply(300.0);
    let (grid, cathode, plate) = (net.node(), net.node(), net.node());
    net.resistor(input, grid, 68e3);
    net.resistor(grid, GROUND, 1e6);
    net.resistor(cathode, GROUND, 1.5e3);
    net.capacitor(cathode, GROUND, 25e-6);
    net.resistor(supply, plate, 100e3);
    // Electrode and wiring capacitances.
    net.capacitor(grid, plate, 2.0e-12);
    net.capacitor(grid, cathode, 2.3e-12);
    net.device(Device::Triode, &[[grid, cathode], [plate, cathode]]);
    let (slope, treble, bass, middle) = (net.node(), net.node(), net.node(), net.node());
    net.capacitor(plate, treble, 250e-12);
    net.resistor(plate, slope, 100e3);
    net.capacitor(slope, bass, 100e-9);
    net.capacitor(slope, middle, 47e-9);
    net.potentiometer(treble, output, bass, 250e3, TREBLE);
    net.resistor(bass, middle, (250e3 * BASS).max(1.0));
    net.resistor(middle, GROUND, (10e3 * MIDDLE).max(1.0));
    net.resistor(output, GROUND, 1e6);
    Circuit {
        name: "triode",
        description: "a triode stage driven hard, with a tone stack",
        netlist: net,
        input_volts: 6.0,
        output_volts: 80.0,
    }
}
