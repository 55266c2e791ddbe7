//! Overdrive with diodes in the feedback of an op-amp, and an active tone control.
//!
//! The op-amps are ideal: with diodes in the feedback they stay clear of their supplies.

use super::device::Device;
use super::netlist::{GROUND, Netlist};

/// Values of the parts, ohms and farads.
pub(super) struct SoftClip {
    pub input_farads: f64,
    pub bias_ohms: f64,
    /// Resistance of the feedback, the drive knob included.
    pub feedback_ohms: f64,
    pub feedback_farads: f64,
    /// Diodes in series in either direction.
    pub in_series: [f64; 2],
    /// From the clipper to the tone control, whose low-pass has this capacitance and leakage.
    pub tone_ohms: f64,
    pub tone_farads: f64,
    pub tone_leak_ohms: f64,
    /// Feedback of the tone control's op-amp.
    pub tone_feedback_ohms: f64,
    pub tone_pot_ohms: f64,
    /// From the wiper of the tone control to ground.
    pub wiper_ohms: f64,
    pub wiper_farads: f64,
}

impl SoftClip {
    /// Returns the parts, with the tone control at a position from 0 (dark) to 1 (bright).
    pub fn netlist(&self, tone: f64) -> Netlist {
        let (mut net, input, output) = Netlist::new();
        // Voltages are relative to the bias at half the supply, which acts as ground.
        let (plus, minus, clipped) = (net.node(), net.node(), net.node());
        net.capacitor(input, plus, self.input_farads);
        net.resistor(plus, GROUND, self.bias_ohms);
        net.op_amp(plus, minus, clipped);
        let below = net.node();
        net.resistor(minus, below, 4.7e3);
        net.capacitor(below, GROUND, 47e-9);
        net.resistor(minus, clipped, self.feedback_ohms);
        net.capacitor(minus, clipped, self.feedback_farads);
        net.device(Device::silicon_diodes(self.in_series), &[[clipped, minus]]);
        let (tone_plus, tone_minus, toned) = (net.node(), net.node(), net.node());
        net.resistor(clipped, tone_plus, self.tone_ohms);
        net.capacitor(tone_plus, GROUND, self.tone_farads);
        net.resistor(tone_plus, GROUND, self.tone_leak_ohms);
        net.op_amp(tone_plus, tone_minus, toned);
        net.resistor(tone_minus, toned, self.tone_feedback_ohms);
        let (wiper, foot) = (net.node(), net.node());
        net.potentiometer(tone_minus, wiper, tone_plus, self.tone_pot_ohms, tone);
        net.resistor(wiper, foot, self.wiper_ohms);
        net.capacitor(foot, GROUND, self.wiper_farads);
        let coupled = net.node();
        net.resistor(toned, coupled, 1e3);
        net.capacitor(coupled, output, 1e-6);
        net.resistor(output, GROUND, 100e3);
        net
    }
}
