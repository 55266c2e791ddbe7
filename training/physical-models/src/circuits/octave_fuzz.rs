//! Fuzz with an octave above, after the pedals of 1967 on: a silicon fuzz drives a transistor with
//! equal resistors at collector and emitter, and two germanium diodes join both halves, which
//! doubles the frequency.
//!
//! The second half has a knob of its own, which the originals have as a switch; values of the second
//! stage are typical ones.

use super::circuit::{Circuit, Knob};
use super::device::Device;
use super::fuzz::SILICON;
use super::netlist::{GROUND, Netlist};

pub(super) const CIRCUIT: Circuit = Circuit {
    name: "octave-fuzz",
    title: "Octave fuzz",
    description: "A silicon fuzz with an octave above.",
    kind: "pedal",
    tone: "fuzz",
    knobs: &[
        Knob {
            name: "Fuzz",
            default: 0.7,
            description: "Gain before the octave.",
        },
        Knob {
            name: "Octave",
            default: 1.0,
            description: "Level of the inverted half; both in balance give the octave.",
        },
    ],
    input_volts: 1.0,
    output_volts: 1.05,
    stages: |[fuzz, octave, ..]| vec![SILICON.netlist(fuzz), rectifier(octave)],
};

/// Returns the phase splitter and the diodes; the output of the fuzz is about half a volt.
fn rectifier(octave: f64) -> Netlist {
    let (mut net, input, output) = Netlist::new();
    let supply = net.supply(9.0);
    let (base, collector, emitter) = (net.node(), net.node(), net.node());
    let (boosted, inverse) = (net.node(), net.node());
    // The fuzz reaches half a volt only; a buffer raises it above the diodes' threshold.
    net.op_amp(input, inverse, boosted);
    net.resistor(boosted, inverse, 47e3);
    net.resistor(inverse, GROUND, 22e3);
    net.capacitor(boosted, base, 100e-9);
    net.resistor(supply, base, 220e3);
    net.resistor(base, GROUND, 120e3);
    net.resistor(supply, collector, 4.7e3);
    net.resistor(emitter, GROUND, 4.7e3);
    let transistor = Device::Npn {
        saturation_a: 2.0e-14,
        gain: [250.0, 3.0],
    };
    net.device(transistor, &[[base, emitter], [base, collector]]);
    net.capacitor(base, collector, 22e-12);
    let joined = net.node();
    for (half, level) in [(emitter, 1.0), (collector, octave)] {
        let (coupled, wiper) = (net.node(), net.node());
        net.capacitor(half, coupled, 1e-6);
        net.potentiometer(coupled, wiper, GROUND, 22e3, level);
        net.device(Device::germanium_diode(), &[[wiper, joined]]);
    }
    net.resistor(joined, GROUND, 22e3);
    net.capacitor(joined, GROUND, 1e-9);
    net.capacitor(joined, output, 100e-9);
    net.resistor(output, GROUND, 100e3);
    net
}
