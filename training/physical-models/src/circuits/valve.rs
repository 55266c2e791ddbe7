//! Stages of valve amplifiers that several circuits share.

use super::device::{Device, Pentode};
use super::netlist::{GROUND, Netlist, Node};

/// Half a 12AX7 with its cathode at ground for the signal.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    pub plate_ohms: f64,
    pub cathode_ohms: f64,
    /// Across the cathode resistor, farads; 0 for none.
    pub cathode_farads: f64,
}

/// First stage of most amplifiers.
pub(super) const FIRST_STAGE: Stage = Stage {
    plate_ohms: 100e3,
    cathode_ohms: 1.5e3,
    cathode_farads: 25e-6,
};

impl Stage {
    /// Connects the stage to its grid; returns the plate.
    pub fn connect(self, net: &mut Netlist, supply: Node, grid: Node) -> Node {
        let (cathode, plate) = (net.node(), net.node());
        net.resistor(cathode, GROUND, self.cathode_ohms);
        if self.cathode_farads > 0.0 {
            net.capacitor(cathode, GROUND, self.cathode_farads);
        }
        net.resistor(supply, plate, self.plate_ohms);
        // Electrode and wiring capacitances.
        net.capacitor(grid, plate, 2.0e-12);
        net.capacitor(grid, cathode, 2.3e-12);
        net.device(Device::Triode, &[[grid, cathode], [plate, cathode]]);
        plate
    }

    /// Returns the stage at the input of an amplifier, up to its plate, with the coupling capacitor
    /// and the resistance that load it. The netlist that follows begins with the same two.
    pub fn at_input(self, supply_v: f64, [farads, ohms]: [f64; 2]) -> Netlist {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(supply_v);
        let grid = net.node();
        // Two jacks' 68 kΩ in parallel.
        net.resistor(input, grid, 34e3);
        net.resistor(grid, GROUND, 1e6);
        let plate = self.connect(&mut net, supply, grid);
        load(&mut net, plate, output, [farads, ohms]);
        net
    }

    /// Returns a stage within an amplifier, from the plate before it to its own. Two resistors divide
    /// the signal, the upper with a capacitor across it.
    pub fn between(self, supply_v: f64, divider: Divider, coupling: [f64; 2]) -> Netlist {
        let (mut net, input, output) = Netlist::new();
        let supply = net.supply(supply_v);
        let grid = divider.connect(&mut net, input);
        let plate = self.connect(&mut net, supply, grid);
        load(&mut net, plate, output, coupling);
        net
    }
}

/// Loads a plate with a coupling capacitor and a resistance; `output` follows the plate.
fn load(net: &mut Netlist, plate: Node, output: Node, [farads, ohms]: [f64; 2]) {
    let coupled = net.node();
    net.capacitor(plate, coupled, farads);
    net.resistor(coupled, GROUND, ohms);
    net.op_amp(plate, output, output);
}

/// Coupling capacitor and two resistors between a plate and the next grid.
#[derive(Clone, Copy)]
pub(super) struct Divider {
    pub coupling_farads: f64,
    /// From the capacitor to the grid.
    pub upper_ohms: f64,
    /// Across the upper resistor.
    pub bright_farads: f64,
    /// From the grid to ground.
    pub lower_ohms: f64,
}

impl Divider {
    /// Returns a gain knob: a potentiometer with this share of its track below the wiper.
    pub fn gain(coupling_farads: f64, bright_farads: f64, ohms: f64, share: f64) -> Self {
        Self {
            coupling_farads,
            upper_ohms: (ohms * (1.0 - share)).max(1.0),
            bright_farads,
            lower_ohms: ohms * share,
        }
    }

    /// Connects the divider to the plate before it; returns the grid.
    pub fn connect(self, net: &mut Netlist, plate: Node) -> Node {
        let (coupled, grid) = (net.node(), net.node());
        net.capacitor(plate, coupled, self.coupling_farads);
        net.resistor(coupled, grid, self.upper_ohms);
        net.capacitor(coupled, grid, self.bright_farads);
        net.resistor(grid, GROUND, self.lower_ohms);
        grid
    }
}

/// Connects a cathode follower to the plate before it; returns its cathode.
pub(super) fn follower(net: &mut Netlist, supply: Node, plate: Node, ohms: f64) -> Node {
    let cathode = net.node();
    net.resistor(cathode, GROUND, ohms);
    net.device(Device::Triode, &[[plate, cathode], [supply, cathode]]);
    cathode
}

/// Tone stack with three knobs in a row, from treble to ground.
#[derive(Clone, Copy)]
pub(super) struct ToneStack {
    pub treble_farads: f64,
    pub bass_farads: f64,
    pub middle_farads: f64,
    pub slope_ohms: f64,
    pub treble_ohms: f64,
    pub bass_ohms: f64,
    pub middle_ohms: f64,
    /// The middle capacitor ends at the wiper of the middle knob instead of its upper end.
    pub at_wiper: bool,
}

/// Tone stack of American amplifiers from 1963 on.
pub(super) const AMERICAN_STACK: ToneStack = ToneStack {
    treble_farads: 250e-12,
    bass_farads: 100e-9,
    middle_farads: 47e-9,
    slope_ohms: 100e3,
    treble_ohms: 250e3,
    bass_ohms: 250e3,
    middle_ohms: 10e3,
    at_wiper: false,
};

/// Tone stack of British amplifiers from 1965 on.
pub(super) const BRITISH_STACK: ToneStack = ToneStack {
    treble_farads: 470e-12,
    bass_farads: 22e-9,
    middle_farads: 22e-9,
    slope_ohms: 33e3,
    treble_ohms: 220e3,
    bass_ohms: 1e6,
    middle_ohms: 25e3,
    at_wiper: true,
};

impl ToneStack {
    /// Connects the stack; the shares of the tracks are those of treble, middle and bass.
    pub fn connect(
        &self,
        net: &mut Netlist,
        source: Node,
        output: Node,
        [treble_share, middle_share, bass_share]: [f64; 3],
    ) {
        let (slope, treble, bass, middle) = (net.node(), net.node(), net.node(), net.node());
        net.capacitor(source, treble, self.treble_farads);
        net.resistor(source, slope, self.slope_ohms);
        net.capacitor(slope, bass, self.bass_farads);
        net.capacitor(slope, middle, self.middle_farads);
        net.potentiometer(treble, output, bass, self.treble_ohms, treble_share);
        let upper = (self.bass_ohms * bass_share).max(1.0);
        if self.at_wiper {
            let joint = net.node();
            net.resistor(bass, joint, upper);
            net.potentiometer(joint, middle, GROUND, self.middle_ohms, middle_share);
        } else {
            net.resistor(bass, middle, upper);
            net.resistor(middle, GROUND, (self.middle_ohms * middle_share).max(1.0));
        }
    }
}

/// 6L6GC, parameters by Koren; the screen voltage is that of the data sheet.
pub(super) const BEAM_6L6: Pentode = Pentode {
    mu: 8.7,
    exponent: 1.35,
    kg1: 1460.0,
    kp: 48.0,
    knee_v: 12.0,
    screen_v: 250.0,
};
/// EL34, likewise.
pub(super) const EL34: Pentode = Pentode {
    mu: 11.0,
    exponent: 1.35,
    kg1: 650.0,
    kp: 60.0,
    knee_v: 24.0,
    screen_v: 250.0,
};
/// EL84, parameters for Koren's formula as they circulate, near the data sheet.
pub(super) const EL84: Pentode = Pentode {
    mu: 21.29,
    exponent: 1.24,
    kg1: 401.7,
    kp: 111.04,
    knee_v: 17.9,
    screen_v: 250.0,
};

/// Push-pull power stage with fixed bias, output transformer and a resistor as its load.
///
/// The phase splitter is ideal, but for the resistance at its plates, so that grids that draw current
/// shift the bias. There is no feedback around the stage.
#[derive(Clone, Copy)]
pub(super) struct PowerStage {
    pub valve: Pentode,
    pub supply_v: f64,
    /// Voltage of the grids at rest, volts.
    pub bias_v: f64,
    /// Load from plate to plate, ohms.
    pub load_ohms: f64,
    /// Gain of the phase splitter to either grid.
    pub splitter_gain: f64,
}

/// Resistance at the plates of the phase splitter, ohms.
const SPLITTER_OHMS: f64 = 47e3;
/// Treble that the output transformer passes, Hz.
const TRANSFORMER_HZ: f64 = 15e3;

impl PowerStage {
    /// Returns the parts; `cut_ohms` in series with 4.7 nF between both halves takes treble away.
    pub fn netlist(&self, cut_ohms: Option<f64>) -> Netlist {
        let (mut net, input, output) = Netlist::new();
        let (supply, bias) = (net.supply(self.supply_v), net.supply(self.bias_v));
        let (foot, in_phase, summing, inverted) = (net.node(), net.node(), net.node(), net.node());
        net.op_amp(input, foot, in_phase);
        net.resistor(in_phase, foot, 1e3 * (self.splitter_gain - 1.0));
        net.resistor(foot, GROUND, 1e3);
        net.op_amp(GROUND, summing, inverted);
        net.resistor(in_phase, summing, 10e3);
        net.resistor(inverted, summing, 10e3);
        let half = |net: &mut Netlist, source: Node| {
            let (splitter, coupled, grid, plate) = (net.node(), net.node(), net.node(), net.node());
            net.resistor(source, splitter, SPLITTER_OHMS);
            net.capacitor(splitter, coupled, 22e-9);
            net.resistor(coupled, bias, 220e3);
            net.resistor(coupled, grid, 5.6e3);
            net.capacitor(grid, GROUND, 15e-12);
            net.device(
                Device::Pentode(self.valve),
                &[[grid, GROUND], [plate, GROUND]],
            );
            (splitter, plate)
        };
        let (first, second) = (half(&mut net, in_phase), half(&mut net, inverted));
        if let Some(ohms) = cut_ohms {
            let cut = net.node();
            net.resistor(first.0, cut, ohms);
            net.capacitor(cut, second.0, 4.7e-9);
        }
        net.tapped_winding(first.1, supply, second.1);
        net.resistor(first.1, second.1, self.load_ohms);
        let farads = 1.0 / (std::f64::consts::TAU * TRANSFORMER_HZ * self.load_ohms);
        net.capacitor(first.1, second.1, farads);
        // The transformer's primary passes from about 40 Hz on.
        net.capacitor(second.1, output, 100e-9);
        net.resistor(output, GROUND, 39e3);
        net
    }
}
