//! Time-domain simulation of a circuit.
//!
//! Nodal DK method: capacitors by the trapezoidal rule, everything linear folded into a few small
//! matrices once, so that a step solves for the ports of the nonlinear parts only (Yeh, Abel &
//! Smith, "Automated physical modeling of nonlinear audio circuits for real-time audio effects",
//! IEEE Trans. Audio, Speech and Language Processing 18(4), 2010). Newton's method starts from the
//! voltages of the last sample.

use anyhow::{Context, ensure};
use num_complex::Complex;

use super::device::{Device, PORTS, Slopes};
use super::matrix::{MAX_UNKNOWNS as MAX_PORTS, inverse, solve};
use super::netlist::{Netlist, stamp};

/// Largest voltage change of the last iteration, volts. Newton's method squares the error, so that what
/// is left is far smaller.
const TOLERANCE_V: f64 = 1e-6;
/// Most iterations per step; three or four are usual. A valve's grid that is driven far into cut-off
/// moves by a volt in each.
const ITERATIONS: usize = 400;
/// Longest steps of Newton's method, volts, that are tried in turn until one converges. The first
/// nearly always does, but may jump back and forth over the bend of a valve that is driven hard.
const LONGEST_STEPS_V: [f64; 3] = [f64::INFINITY, 20.0, 2.0];
/// Steps in which the supplies are raised to find the operating point.
const RAMP_STEPS: usize = 40;

/// Voltage of the circuit as a linear combination of its sources.
#[derive(Clone, Debug)]
struct Probe {
    /// Coefficient of each capacitor's state.
    memory: Vec<f64>,
    /// Coefficient of the input voltage.
    input: f64,
    /// Contribution of the supplies, volts.
    constant: f64,
    /// Coefficient of each port's current.
    ports: [f64; MAX_PORTS],
}

impl Probe {
    fn linear(&self, memory: &[f64], input: f64) -> f64 {
        let remembered: f64 = self.memory.iter().zip(memory).map(|(a, b)| a * b).sum();
        remembered + self.input * input + self.constant
    }

    fn with(&self, linear: f64, currents: &[f64; MAX_PORTS]) -> f64 {
        linear
            + self
                .ports
                .iter()
                .zip(currents)
                .map(|(a, b)| a * b)
                .sum::<f64>()
    }
}

/// Circuit whose capacitors are replaced by their equivalents for one step.
#[derive(Clone, Debug)]
struct DiscretizedCircuit {
    devices: Vec<Device>,
    ports: Vec<Probe>,
    capacitors: Vec<Probe>,
    output: Probe,
}

impl DiscretizedCircuit {
    fn new(netlist: &Netlist, conductance: impl Fn(f64) -> f64) -> anyhow::Result<Self> {
        let ports: Vec<_> = netlist.ports().collect();
        ensure!(
            ports.len() <= MAX_PORTS,
            "there are more than {MAX_PORTS} ports of nonlinear parts"
        );
        let inverse = inverse(netlist.matrix(|farads| Complex::from(conductance(farads))));
        let inverse = inverse.context("its equations have no single solution")?;
        let probe = |seen: Vec<f64>| {
            // Row of the inverse matrix that maps a right-hand side to this voltage.
            let row: Vec<f64> = (0..seen.len())
                .map(|column| {
                    seen.iter()
                        .zip(&inverse)
                        .map(|(a, row)| a * row[column].re)
                        .sum()
                })
                .collect();
            let of = |right: Vec<f64>| row.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>();
            let mut by_port = [0.0; MAX_PORTS];
            for (by, &ends) in by_port.iter_mut().zip(&ports) {
                // Current into a device leaves the rest of the circuit.
                *by = -of(netlist.incidence(ends));
            }
            Probe {
                memory: netlist
                    .capacitors
                    .iter()
                    .map(|&(ends, _)| of(netlist.incidence(ends)))
                    .collect(),
                input: of(netlist.input_source()),
                constant: of(netlist.supply_sources()),
                ports: by_port,
            }
        };
        Ok(Self {
            devices: netlist.devices.iter().map(|(device, _)| *device).collect(),
            ports: ports
                .iter()
                .map(|&ends| probe(netlist.incidence(ends)))
                .collect(),
            capacitors: netlist
                .capacitors
                .iter()
                .map(|&(ends, _)| probe(netlist.incidence(ends)))
                .collect(),
            output: probe(netlist.incidence([netlist.output, 0])),
        })
    }

    /// Solves for the port voltages, starting from `volts`; returns the port currents and whether
    /// the iteration converged.
    fn solve_ports(
        &self,
        volts: &mut [f64; MAX_PORTS],
        linear: &[f64; MAX_PORTS],
    ) -> ([f64; MAX_PORTS], bool) {
        let before = *volts;
        for longest_v in LONGEST_STEPS_V {
            *volts = before;
            if self.iterate(volts, linear, longest_v) {
                return (self.currents(volts).0, true);
            }
        }
        (self.currents(volts).0, false)
    }

    /// Iterates with steps of at most `longest_v` volts; returns whether that converged.
    fn iterate(
        &self,
        volts: &mut [f64; MAX_PORTS],
        linear: &[f64; MAX_PORTS],
        longest_v: f64,
    ) -> bool {
        let count = self.ports.len();
        for _ in 0..ITERATIONS {
            let (currents, slopes) = self.currents(volts);
            let mut step = [0.0; MAX_PORTS];
            let mut matrix = [[0.0; MAX_PORTS]; MAX_PORTS];
            for row in 0..count {
                step[row] = self.ports[row].with(linear[row], &currents) - volts[row];
                for column in 0..count {
                    let by_voltage: f64 = (0..count)
                        .map(|port| self.ports[row].ports[port] * slopes[port][column])
                        .sum();
                    matrix[row][column] = f64::from(u8::from(row == column)) - by_voltage;
                }
            }
            solve(&mut matrix, &mut step, count);
            let mut largest_step = 0.0_f64;
            let mut first = 0;
            for device in &self.devices {
                let ports = device.ports();
                let (mut from, mut to) = ([0.0; PORTS], [0.0; PORTS]);
                from[..ports].copy_from_slice(&volts[first..first + ports]);
                for port in 0..ports {
                    to[port] = from[port] + step[first + port];
                }
                let limited = device.limited(from, to);
                for port in 0..ports {
                    volts[first + port] =
                        limited[port].clamp(from[port] - longest_v, from[port] + longest_v);
                    largest_step = largest_step.max((to[port] - from[port]).abs());
                }
                first += ports;
            }
            if largest_step < TOLERANCE_V {
                return true;
            }
        }
        false
    }

    /// Returns the currents of all ports and their derivatives.
    fn currents(
        &self,
        volts: &[f64; MAX_PORTS],
    ) -> ([f64; MAX_PORTS], [[f64; MAX_PORTS]; MAX_PORTS]) {
        let (mut currents, mut slopes) = ([0.0; MAX_PORTS], [[0.0; MAX_PORTS]; MAX_PORTS]);
        let mut first = 0;
        for device in &self.devices {
            let ports = device.ports();
            let mut own = [0.0; PORTS];
            own[..ports].copy_from_slice(&volts[first..first + ports]);
            let (current, slope): ([f64; PORTS], Slopes) = device.currents(own);
            for row in 0..ports {
                currents[first + row] = current[row];
                slopes[first + row][first..first + ports].copy_from_slice(&slope[row][..ports]);
            }
            first += ports;
        }
        (currents, slopes)
    }
}

/// State of a circuit without a signal.
#[derive(Clone, Debug)]
pub struct OperatingPoint {
    /// Voltage of each device port, in order, volts.
    pub ports: Vec<f64>,
    /// Voltage of each capacitor, volts.
    pub capacitors: Vec<f64>,
    /// Voltage of the output, volts.
    pub output: f64,
    volts: [f64; MAX_PORTS],
}

/// Finds the operating point of a circuit.
///
/// # Errors
/// Returns an error if there is none, or the iteration does not converge.
pub fn operating_point(netlist: &Netlist) -> anyhow::Result<OperatingPoint> {
    let network = DiscretizedCircuit::new(netlist, |_| 0.0)?;
    let memory = vec![0.0; netlist.capacitors.len()];
    let mut volts = [0.0; MAX_PORTS];
    let mut currents = [0.0; MAX_PORTS];
    for step in 1..=RAMP_STEPS {
        let share = step as f64 / RAMP_STEPS as f64;
        let mut linear = [0.0; MAX_PORTS];
        for (linear, port) in linear.iter_mut().zip(&network.ports) {
            *linear = port.constant * share;
        }
        let found;
        (currents, found) = network.solve_ports(&mut volts, &linear);
        ensure!(
            found || step < RAMP_STEPS,
            "its operating point was not found"
        );
    }
    let seen = |probe: &Probe| probe.with(probe.linear(&memory, 0.0), &currents);
    Ok(OperatingPoint {
        ports: volts[..network.ports.len()].to_vec(),
        capacitors: network.capacitors.iter().map(seen).collect(),
        output: seen(&network.output),
        volts,
    })
}

/// Returns the gain from input to output of the circuit linearised at its operating point.
///
/// # Errors
/// As [`operating_point`].
pub fn small_signal_gain(netlist: &Netlist, hz: f64) -> anyhow::Result<Complex<f64>> {
    let point = operating_point(netlist)?;
    let mut matrix =
        netlist.matrix(|farads| Complex::new(0.0, std::f64::consts::TAU * hz * farads));
    let mut first = 0;
    for (device, ports) in &netlist.devices {
        let mut volts = [0.0; PORTS];
        volts[..ports.len()].copy_from_slice(&point.volts[first..first + ports.len()]);
        let (_, slopes) = device.currents(volts);
        for (row, &ends) in ports.iter().enumerate() {
            for (column, &seen) in ports.iter().enumerate() {
                if row == column {
                    stamp(&mut matrix, ends, Complex::from(slopes[row][column]));
                    continue;
                }
                // The voltage of one port controls the current of another.
                let (into, of) = (netlist.incidence(ends), netlist.incidence(seen));
                for (values, into) in matrix.iter_mut().zip(into) {
                    for (value, of) in values.iter_mut().zip(&of) {
                        *value += slopes[row][column] * into * of;
                    }
                }
            }
        }
        first += ports.len();
    }
    let inverse = inverse(matrix).context("its equations have no single solution")?;
    let row = &inverse[netlist.output - 1];
    Ok(row
        .iter()
        .zip(netlist.input_source())
        .map(|(a, b)| a * b)
        .sum())
}

/// Running simulation of a circuit.
#[derive(Clone, Debug)]
pub struct Simulation {
    network: DiscretizedCircuit,
    /// Twice each capacitor's conductance by the trapezoidal rule, siemens.
    doubled: Vec<f64>,
    /// Current source of each capacitor by the trapezoidal rule, amperes.
    memory: Vec<f64>,
    volts: [f64; MAX_PORTS],
    rest: f64,
    unconverged_steps: usize,
}

impl Simulation {
    /// Creates a simulation at rest for a step rate in Hz.
    ///
    /// # Errors
    /// As [`operating_point`].
    pub fn new(netlist: &Netlist, rate_hz: f64) -> anyhow::Result<Self> {
        let point = operating_point(netlist)?;
        let conductance = |farads: f64| 2.0 * farads * rate_hz;
        let network = DiscretizedCircuit::new(netlist, conductance)?;
        let own: Vec<f64> = netlist
            .capacitors
            .iter()
            .map(|&(_, farads)| conductance(farads))
            .collect();
        Ok(Self {
            network,
            // No current flows through a capacitor at rest.
            memory: own
                .iter()
                .zip(&point.capacitors)
                .map(|(g, volts)| g * volts)
                .collect(),
            doubled: own.iter().map(|g| 2.0 * g).collect(),
            volts: point.volts,
            rest: point.output,
            unconverged_steps: 0,
        })
    }

    /// Advances by one step with this input voltage; returns the output relative to its rest
    /// voltage, volts.
    pub fn step(&mut self, input: f64) -> f64 {
        let mut linear = [0.0; MAX_PORTS];
        for (linear, port) in linear.iter_mut().zip(&self.network.ports) {
            *linear = port.linear(&self.memory, input);
        }
        let before = self.volts;
        let (mut currents, found) = self.network.solve_ports(&mut self.volts, &linear);
        if !found {
            self.unconverged_steps += 1;
            self.volts = before;
            currents = self.network.currents(&before).0;
        }
        let output = &self.network.output;
        let volts_out = output.with(output.linear(&self.memory, input), &currents);
        let charge = |(probe, doubled): (&Probe, &f64)| {
            doubled * probe.with(probe.linear(&self.memory, input), &currents)
        };
        let charges: Vec<f64> = self
            .network
            .capacitors
            .iter()
            .zip(&self.doubled)
            .map(charge)
            .collect();
        for (memory, charge) in self.memory.iter_mut().zip(charges) {
            *memory = charge - *memory;
        }
        volts_out - self.rest
    }

    /// Returns the number of steps that did not converge.
    #[must_use]
    pub fn unconverged_steps(&self) -> usize {
        self.unconverged_steps
    }
}
