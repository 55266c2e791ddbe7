//! Circuit as a list of parts between numbered nodes, and its equations.
//!
//! Modified nodal analysis (Ho, Ruehli & Brennan, "The modified nodal approach to network
//! analysis", IEEE Trans. Circuits and Systems 22(6), 1975): the unknowns are the voltages of all
//! nodes and the currents of sources, op-amps and transformers.

use num_complex::Complex;

use super::device::Device;
use super::matrix::{Matrix, zeros};

/// Node number; 0 is ground.
pub type Node = usize;

/// The ground node.
pub const GROUND: Node = 0;

/// Leakage of every node to ground, siemens. Gives nodes between capacitors a defined voltage at
/// rest.
const LEAK_S: f64 = 1e-12;

/// Both ends of a part.
type Ends = [Node; 2];

/// Parts of a circuit.
#[derive(Clone, Debug, Default)]
pub struct Netlist {
    nodes: usize,
    resistors: Vec<(Ends, f64)>,
    pub(super) capacitors: Vec<(Ends, f64)>,
    supplies: Vec<(Node, f64)>,
    op_amps: Vec<[Node; 3]>,
    transformers: Vec<[Node; 3]>,
    pub(super) devices: Vec<(Device, Vec<Ends>)>,
    input: Node,
    pub(super) output: Node,
}

impl Netlist {
    /// Creates an empty circuit; returns it with its input and output nodes.
    pub fn new() -> (Self, Node, Node) {
        let mut netlist = Self::default();
        netlist.input = netlist.node();
        netlist.output = netlist.node();
        let (input, output) = (netlist.input, netlist.output);
        (netlist, input, output)
    }

    /// Adds a node.
    pub fn node(&mut self) -> Node {
        self.nodes += 1;
        self.nodes
    }

    /// Adds a node at a fixed voltage.
    pub fn supply(&mut self, volts: f64) -> Node {
        let node = self.node();
        self.supplies.push((node, volts));
        node
    }

    /// Adds a resistor.
    pub fn resistor(&mut self, a: Node, b: Node, ohms: f64) {
        self.resistors.push(([a, b], ohms));
    }

    /// Adds a capacitor.
    pub fn capacitor(&mut self, a: Node, b: Node, farads: f64) {
        self.capacitors.push(([a, b], farads));
    }

    /// Adds a potentiometer from `a` to `b` whose wiper is `turn` of the way from `b` to `a`, 0 to
    /// 1. At least 0.01 Ω remains at either end.
    pub fn potentiometer(&mut self, a: Node, wiper: Node, b: Node, ohms: f64, turn: f64) {
        self.resistor(a, wiper, (ohms * (1.0 - turn)).max(0.01));
        self.resistor(wiper, b, (ohms * turn).max(0.01));
    }

    /// Adds an ideal op-amp: its inputs draw no current, and its output keeps them at the same
    /// voltage.
    pub fn op_amp(&mut self, plus: Node, minus: Node, output: Node) {
        self.op_amps.push([plus, minus, output]);
    }

    /// Adds an ideal winding from `a` to `b` with a centre tap: as much as one end is above the tap,
    /// the other is below it.
    pub fn tapped_winding(&mut self, a: Node, tap: Node, b: Node) {
        self.transformers.push([a, tap, b]);
    }

    /// Adds a nonlinear part with the ends of each of its ports.
    ///
    /// # Panics
    /// Panics if the number of ports is wrong.
    pub fn device(&mut self, device: Device, ports: &[Ends]) {
        assert_eq!(device.ports(), ports.len(), "each port has its ends");
        self.devices.push((device, ports.to_vec()));
    }

    /// Returns the ends of all ports of all devices, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = Ends> + '_ {
        self.devices
            .iter()
            .flat_map(|(_, ports)| ports.iter().copied())
    }

    /// Returns the number of unknowns.
    pub(super) fn size(&self) -> usize {
        self.nodes + self.supplies.len() + 1 + self.op_amps.len() + self.transformers.len()
    }

    /// Returns the matrix of the linear parts; `admittance` maps the farads of a capacitor to
    /// siemens.
    pub(super) fn matrix(&self, admittance: impl Fn(f64) -> Complex<f64>) -> Matrix {
        let mut matrix = zeros(self.size());
        for node in 1..=self.nodes {
            matrix[node - 1][node - 1] += LEAK_S;
        }
        for &(ends, ohms) in &self.resistors {
            stamp(&mut matrix, ends, Complex::from(1.0 / ohms));
        }
        for &(ends, farads) in &self.capacitors {
            stamp(&mut matrix, ends, admittance(farads));
        }
        let sources =
            std::iter::once(self.input).chain(self.supplies.iter().map(|&(node, _)| node));
        let one = Complex::from(1.0);
        let mut row = self.nodes;
        for node in sources {
            matrix[row][node - 1] += one;
            matrix[node - 1][row] += one;
            row += 1;
        }
        for &[plus, minus, output] in &self.op_amps {
            for (node, sign) in [(plus, one), (minus, -one)] {
                if node != GROUND {
                    matrix[row][node - 1] += sign;
                }
            }
            matrix[output - 1][row] += one;
            row += 1;
        }
        for &[a, tap, b] in &self.transformers {
            for (node, turns) in [(a, one), (tap, -2.0 * one), (b, one)] {
                if node != GROUND {
                    matrix[row][node - 1] += turns;
                    matrix[node - 1][row] += turns;
                }
            }
            row += 1;
        }
        matrix
    }

    /// Returns the right-hand side for one volt at the input.
    pub(super) fn input_source(&self) -> Vec<f64> {
        let mut right = vec![0.0; self.size()];
        right[self.nodes] = 1.0;
        right
    }

    /// Returns the right-hand side of the supplies.
    pub(super) fn supply_sources(&self) -> Vec<f64> {
        let mut right = vec![0.0; self.size()];
        for (index, &(_, volts)) in self.supplies.iter().enumerate() {
            right[self.nodes + 1 + index] = volts;
        }
        right
    }

    /// Returns the right-hand side of one ampere that flows in at the first end and out at the
    /// second. Its product with the unknowns is the voltage between the two.
    pub(super) fn incidence(&self, [a, b]: Ends) -> Vec<f64> {
        let mut right = vec![0.0; self.size()];
        for (node, sign) in [(a, 1.0), (b, -1.0)] {
            if node != GROUND {
                right[node - 1] += sign;
            }
        }
        right
    }
}

/// Adds an admittance between two nodes.
pub(super) fn stamp(matrix: &mut Matrix, [a, b]: Ends, admittance: Complex<f64>) {
    for (row, column, sign) in [(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)] {
        if row != GROUND && column != GROUND {
            matrix[row - 1][column - 1] += admittance * sign;
        }
    }
}
