//! A circuit as a list of parts between numbered nodes, and its equations.
//!
//! Modified nodal analysis (Ho, Ruehli & Brennan, "The modified nodal approach to network analysis", IEEE Trans. Circuits and
//! Systems 22(6), 1975): the unknowns are the voltages of all nodes and the currents of sources and op-amps.

use num_complex::Complex;

use super::device::Device;
use super::matrix::{Matrix, zeros};

/// A node; 0 is ground.
pub type Node = usize;

/// Ground.
pub const GROUND: Node = 0;

/// Leak of every node to ground, siemens: a node that only capacitors reach has a voltage at rest all the same.
const LEAK_S: f64 = 1e-12;

/// A part of two ends, from the first to the second.
type Ends = [Node; 2];

/// The parts of a circuit.
#[derive(Clone, Debug, Default)]
pub struct Netlist {
    nodes: usize,
    resistors: Vec<(Ends, f64)>,
    pub(super) capacitors: Vec<(Ends, f64)>,
    supplies: Vec<(Node, f64)>,
    op_amps: Vec<[Node; 3]>,
    pub(super) devices: Vec<(Device, Vec<Ends>)>,
    input: Node,
    pub(super) output: Node,
}

impl Netlist {
    /// A circuit whose signal comes in as the voltage of the first returned node and is heard at the second.
    pub fn new() -> (Self, Node, Node) {
        let mut netlist = Self::default();
        netlist.input = netlist.node();
        netlist.output = netlist.node();
        let (input, output) = (netlist.input, netlist.output);
        (netlist, input, output)
    }

    /// Another node.
    pub fn node(&mut self) -> Node {
        self.nodes += 1;
        self.nodes
    }

    /// A node at that voltage.
    pub fn supply(&mut self, volts: f64) -> Node {
        let node = self.node();
        self.supplies.push((node, volts));
        node
    }

    /// A resistor.
    pub fn resistor(&mut self, a: Node, b: Node, ohms: f64) {
        self.resistors.push(([a, b], ohms));
    }

    /// A capacitor.
    pub fn capacitor(&mut self, a: Node, b: Node, farads: f64) {
        self.capacitors.push(([a, b], farads));
    }

    /// A potentiometer from `a` to `b` whose wiper is `turn` of the way from `b` to `a`, 0 to 1; a hundredth of an ohm is left
    /// at either end.
    pub fn potentiometer(&mut self, a: Node, wiper: Node, b: Node, ohms: f64, turn: f64) {
        self.resistor(a, wiper, (ohms * (1.0 - turn)).max(0.01));
        self.resistor(wiper, b, (ohms * turn).max(0.01));
    }

    /// An ideal op-amp: no current flows into its inputs, and its output keeps them at one voltage.
    pub fn op_amp(&mut self, plus: Node, minus: Node, output: Node) {
        self.op_amps.push([plus, minus, output]);
    }

    /// A nonlinear part, with the ends of each of its ports.
    ///
    /// # Panics
    /// When it has another number of ports.
    pub fn device(&mut self, device: Device, ports: &[Ends]) {
        assert_eq!(device.ports(), ports.len(), "each port has its ends");
        self.devices.push((device, ports.to_vec()));
    }

    /// The ends of all ports of all devices, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = Ends> + '_ {
        self.devices.iter().flat_map(|(_, ports)| ports.iter().copied())
    }

    /// Number of unknowns.
    pub(super) fn size(&self) -> usize {
        self.nodes + self.supplies.len() + 1 + self.op_amps.len()
    }

    /// The matrix of the linear parts, where a capacitor conducts as `admittance` says of its farads.
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
        let sources = std::iter::once(self.input).chain(self.supplies.iter().map(|&(node, _)| node));
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
        matrix
    }

    /// The right side for one volt at the input.
    pub(super) fn of_input(&self) -> Vec<f64> {
        let mut right = vec![0.0; self.size()];
        right[self.nodes] = 1.0;
        right
    }

    /// The right side of the supplies.
    pub(super) fn of_supplies(&self) -> Vec<f64> {
        let mut right = vec![0.0; self.size()];
        for (index, &(_, volts)) in self.supplies.iter().enumerate() {
            right[self.nodes + 1 + index] = volts;
        }
        right
    }

    /// The right side of one ampere that enters at the first end and leaves at the second; by the same numbers the unknowns
    /// make the voltage between the two.
    pub(super) fn between(&self, [a, b]: Ends) -> Vec<f64> {
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
