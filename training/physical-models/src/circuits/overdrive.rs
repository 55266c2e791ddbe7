//! Diode overdrive after the green pedals of 1979: an op-amp with diodes in its feedback, then a
//! tone control.
//!
//! Component values as widely published; drive at 0.6, tone at 0.55. The op-amps are ideal: with
//! diodes in the feedback they stay clear of their supplies.

use super::circuit::Circuit;
use super::device::Device;
use super::netlist::{GROUND, Netlist};

/// Position of the drive knob, 0 to 1.
const DRIVE: f64 = 0.6;
/// Position of the tone knob, 0 (dark) to 1 (bright).
const TONE: f64 = 0.55;

pub(super) fn circuit() -> Circuit {
    let (mut net, input, output) = Netlist::new();
    // Voltages are relative to the bias at half the supply, which acts as ground.
    let (plus, minus, clipped) = (net.node(), net.node(), net.node());
    net.capacitor(input, plus, 1e-6);
    net.resistor(plus, GROUND, 10e3);
    net.op_amp(plus, minus, clipped);
    let below = net.node();
    net.resistor(minus, below, 4.7e3);
    net.capacitor(below, GROUND, 47e-9);
    net.resistor(minus, clipped, 51e3 + DRIVE * 500e3);
    net.capacitor(minus, clipped, 51e-12);
    // 1N914.
    net.device(
        Device::Diodes {
            saturation_a: 2.52e-9,
            ideality: 1.752,
            in_series: [1.0, 1.0],
        },
        &[[clipped, minus]],
    );
    let (tone_plus, tone_minus, toned) = (net.node(), net.node(), net.node());
    net.resistor(clipped, tone_plus, 1e3);
    net.capacitor(tone_plus, GROUND, 220e-9);
    net.resistor(tone_plus, GROUND, 10e3);
    net.op_amp(tone_plus, tone_minus, toned);
    net.resistor(tone_minus, toned, 1e3);
    let (wiper, foot) = (net.node(), net.node());
    net.potentiometer(tone_minus, wiper, tone_plus, 20e3, TONE);
    net.resistor(wiper, foot, 220.0);
    net.capacitor(foot, GROUND, 220e-9);
    let coupled = net.node();
    net.resistor(toned, coupled, 1e3);
    net.capacitor(coupled, output, 1e-6);
    net.resistor(output, GROUND, 100e3);
    Circuit {
        name: "overdrive",
        description: "a diode overdrive pedal, drive 6, tone 5.5",
        netlist: net,
        input_volts: 1.0,
        output_volts: 2.0,
    }
}
