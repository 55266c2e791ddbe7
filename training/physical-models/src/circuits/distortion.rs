//! Distortion after the yellow boxes of 1973: an op-amp that drives diodes to ground, with the treble
//! filter of the black ones of 1978.
//!
//! Component values as widely published. The op-amp is ideal, but for its supply; both knobs have a
//! reverse audio taper.

use super::circuit::{Circuit, Knob};
use super::device::Device;
use super::netlist::{GROUND, Netlist};
use super::taper::audio;

/// Voltage that the op-amp's output reaches with a supply of 9 V.
const SWING_V: f64 = 4.0;

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "distortion",
    title: "Distortion",
    description: "A distortion pedal with diodes to ground, which clip hard.",
    kind: "pedal",
    tone: "distortion",
    knobs: &[
        Knob {
            name: "Drive",
            default: 0.6,
            description: "Gain into the diodes.",
        },
        Knob {
            name: "Tone",
            default: 0.6,
            description: "From dark to bright.",
        },
    ],
    input_volts: 1.0,
    output_volts: 0.8,
    stages: |[drive, tone, ..]| {
        let (mut net, input, output) = Netlist::new();
        // Voltages are relative to the bias at half the supply, which acts as ground.
        let (plus, minus, amplified) = (net.node(), net.node(), net.node());
        net.capacitor(input, plus, 10e-9);
        net.resistor(plus, GROUND, 1e6);
        net.op_amp(plus, minus, amplified);
        net.resistor(minus, amplified, 1e6);
        net.capacitor(minus, amplified, 10e-12);
        net.device(Device::supply_limit(SWING_V), &[[amplified, minus]]);
        let below = net.node();
        net.resistor(minus, below, 4.7e3 + 500e3 * audio(1.0 - drive));
        net.capacitor(below, GROUND, 47e-9);
        let (coupled, clipped) = (net.node(), net.node());
        net.capacitor(amplified, coupled, 1e-6);
        net.resistor(coupled, clipped, 10e3);
        net.capacitor(clipped, GROUND, 1e-9);
        net.resistor(clipped, GROUND, 100e3);
        net.device(Device::silicon_diodes([1.0, 1.0]), &[[clipped, GROUND]]);
        let (buffered, filtered) = (net.node(), net.node());
        net.op_amp(clipped, buffered, buffered);
        net.resistor(buffered, filtered, 1.5e3 + 100e3 * audio(1.0 - tone));
        net.capacitor(filtered, GROUND, 3.3e-9);
        net.op_amp(filtered, output, output);
        vec![net]
    },
};
