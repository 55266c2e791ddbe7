//! Steps a circuit through time.
//!
//! The nodal DK method: capacitors by the trapezoidal rule, all that is linear folded into a few small matrices once, so that a
//! step solves for the ports of the nonlinear parts alone (Yeh, Abel & Smith, "Automated physical modeling of nonlinear audio
//! circuits for real-time audio effects", IEEE Trans. Audio, Speech and Language Processing 18(4), 2010). Newton's method starts
//! from the last sample's voltages.

use anyhow::{Context, ensure};
use num_complex::Complex;

use super::device::{Device, PORTS, Slopes};
use super::matrix::{FEW, inverse, solve};
use super::netlist::{Netlist, stamp};

/// A step has converged when no voltage moves by more, volts.
const TOLERANCE_V: f64 = 1e-9;
/// Most iterations of a step; three or four are usual.
const ITERATIONS: usize = 100;
/// Steps in which the supplies are brought up to find the operating point.
const RAMP: usize = 40;

/// A voltage of the circuit by what it comes from.
#[derive(Clone, Debug)]
struct Probe {
    /// By each capacitor's state.
    memory: Vec<f64>,
    /// By the input's voltage.
    input: f64,
    /// By the supplies.
    constant: f64,
    /// By each port's current.
    ports: [f64; FEW],
}

impl Probe {
    fn linear(&self, memory: &[f64], input: f64) -> f64 {
        let remembered: f64 = self.memory.iter().zip(memory).map(|(a, b)| a * b).sum();
        remembered + self.input * input + self.constant
    }

    fn with(&self, linear: f64, currents: &[f64; FEW]) -> f64 {
        linear + self.ports.iter().zip(currents).map(|(a, b)| a * b).sum::<f64>()
    }
}

/// The circuit with each of its capacitors replaced by what it is in one step.
#[derive(Clone, Debug)]
struct Network {
    devices: Vec<Device>,
    ports: Vec<Probe>,
    capacitors: Vec<Probe>,
    output: Probe,
}

impl Network {
    fn new(netlist: &Netlist, conductance: impl Fn(f64) -> f64) -> anyhow::Result<Self> {
        let ports: Vec<_> = netlist.ports().collect();
        ensure!(ports.len() <= FEW, "there are more than {FEW} ports of nonlinear parts");
        let inverse = inverse(netlist.matrix(|farads| Complex::from(conductance(farads))));
        let inverse = inverse.context("its equations have no single solution")?;
        let probe = |seen: Vec<f64>| {
            // The row of the inverse that makes this voltage of a right side.
            let row: Vec<f64> = (0..seen.len())
                .map(|column| seen.iter().zip(&inverse).map(|(a, row)| a * row[column].re).sum())
                .collect();
            let of = |right: Vec<f64>| row.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>();
            let mut by_port = [0.0; FEW];
            for (by, &ends) in by_port.iter_mut().zip(&ports) {
                // What enters a device leaves the rest of the circuit.
                *by = -of(netlist.between(ends));
            }
            Probe {
                memory: netlist.capacitors.iter().map(|&(ends, _)| of(netlist.between(ends))).collect(),
                input: of(netlist.of_input()),
                constant: of(netlist.of_supplies()),
                ports: by_port,
            }
        };
        Ok(Self {
            devices: netlist.devices.iter().map(|(device, _)| *device).collect(),
            ports: ports.iter().map(|&ends| probe(netlist.between(ends))).collect(),
            capacitors: netlist.capacitors.iter().map(|&(ends, _)| probe(netlist.between(ends))).collect(),
            output: probe(netlist.between([netlist.output, 0])),
        })
    }

    /// Finds the ports' voltages, from those that are given; gives their currents and whether it was found.
    fn settle(&self, volts: &mut [f64; FEW], linear: &[f64; FEW]) -> ([f64; FEW], bool) {
        let count = self.ports.len();
        for _ in 0..ITERATIONS {
            let (currents, slopes) = self.currents(volts);
            let mut step = [0.0; FEW];
            let mut matrix = [[0.0; FEW]; FEW];
            for row in 0..count {
                step[row] = self.ports[row].with(linear[row], &currents) - volts[row];
                for column in 0..count {
                    let by_voltage: f64 =
                        (0..count).map(|port| self.ports[row].ports[port] * slopes[port][column]).sum();
                    matrix[row][column] = f64::from(u8::from(row == column)) - by_voltage;
                }
            }
            solve(&mut matrix, &mut step, count);
            let mut furthest = 0.0_f64;
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
                    volts[first + port] = limited[port];
                    furthest = furthest.max((to[port] - from[port]).abs());
                }
                first += ports;
            }
            if furthest < TOLERANCE_V {
                return (self.currents(volts).0, true);
            }
        }
        (self.currents(volts).0, false)
    }

    /// Currents of all ports and their slopes.
    fn currents(&self, volts: &[f64; FEW]) -> ([f64; FEW], [[f64; FEW]; FEW]) {
        let (mut currents, mut slopes) = ([0.0; FEW], [[0.0; FEW]; FEW]);
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

/// Where a circuit rests.
#[derive(Clone, Debug)]
pub struct OperatingPoint {
    /// Voltage of each device's ports, in order, volts.
    pub ports: Vec<f64>,
    /// Voltage of each capacitor, volts.
    pub capacitors: Vec<f64>,
    /// Voltage of the output, volts.
    pub output: f64,
    volts: [f64; FEW],
}

/// Finds where a circuit rests without a signal.
///
/// # Errors
/// When it has no such point, or none is found.
pub fn operating_point(netlist: &Netlist) -> anyhow::Result<OperatingPoint> {
    let network = Network::new(netlist, |_| 0.0)?;
    let memory = vec![0.0; netlist.capacitors.len()];
    let mut volts = [0.0; FEW];
    let mut currents = [0.0; FEW];
    for step in 1..=RAMP {
        let share = step as f64 / RAMP as f64;
        let mut linear = [0.0; FEW];
        for (linear, port) in linear.iter_mut().zip(&network.ports) {
            *linear = port.constant * share;
        }
        let found;
        (currents, found) = network.settle(&mut volts, &linear);
        ensure!(found || step < RAMP, "its operating point was not found");
    }
    let seen = |probe: &Probe| probe.with(probe.linear(&memory, 0.0), &currents);
    Ok(OperatingPoint {
        ports: volts[..network.ports.len()].to_vec(),
        capacitors: network.capacitors.iter().map(seen).collect(),
        output: seen(&network.output),
        volts,
    })
}

/// Gain from input to output of the circuit made linear around its operating point.
///
/// # Errors
/// As [`operating_point`].
pub fn small_signal_gain(netlist: &Netlist, hz: f64) -> anyhow::Result<Complex<f64>> {
    let point = operating_point(netlist)?;
    let mut matrix = netlist.matrix(|farads| Complex::new(0.0, std::f64::consts::TAU * hz * farads));
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
                // A current between one pair of nodes that the voltage between another pair steers.
                let (into, of) = (netlist.between(ends), netlist.between(seen));
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
    Ok(row.iter().zip(netlist.of_input()).map(|(a, b)| a * b).sum())
}

/// A circuit in time.
#[derive(Clone, Debug)]
pub struct Simulation {
    network: Network,
    /// Twice each capacitor's conductance in the trapezoidal rule, siemens.
    doubled: Vec<f64>,
    /// Each capacitor's source in the trapezoidal rule, amperes.
    memory: Vec<f64>,
    volts: [f64; FEW],
    rest: f64,
    strays: usize,
}

impl Simulation {
    /// A circuit at rest, to be stepped at that rate.
    ///
    /// # Errors
    /// As [`operating_point`].
    pub fn new(netlist: &Netlist, rate_hz: f64) -> anyhow::Result<Self> {
        let point = operating_point(netlist)?;
        let conductance = |farads: f64| 2.0 * farads * rate_hz;
        let network = Network::new(netlist, conductance)?;
        let own: Vec<f64> = netlist.capacitors.iter().map(|&(_, farads)| conductance(farads)).collect();
        Ok(Self {
            network,
            // No current flows through a capacitor at rest.
            memory: own.iter().zip(&point.capacitors).map(|(g, volts)| g * volts).collect(),
            doubled: own.iter().map(|g| 2.0 * g).collect(),
            volts: point.volts,
            rest: point.output,
            strays: 0,
        })
    }

    /// Steps with that voltage at the input; gives how far the output is from where it rests, volts.
    pub fn step(&mut self, input: f64) -> f64 {
        let mut linear = [0.0; FEW];
        for (linear, port) in linear.iter_mut().zip(&self.network.ports) {
            *linear = port.linear(&self.memory, input);
        }
        let before = self.volts;
        let (mut currents, found) = self.network.settle(&mut self.volts, &linear);
        if !found {
            self.strays += 1;
            self.volts = before;
            currents = self.network.currents(&before).0;
        }
        let output = &self.network.output;
        let heard = output.with(output.linear(&self.memory, input), &currents);
        let charge =
            |(probe, doubled): (&Probe, &f64)| doubled * probe.with(probe.linear(&self.memory, input), &currents);
        let charges: Vec<f64> = self.network.capacitors.iter().zip(&self.doubled).map(charge).collect();
        for (memory, charge) in self.memory.iter_mut().zip(charges) {
            *memory = charge - *memory;
        }
        heard - self.rest
    }

    /// Steps that did not converge.
    #[must_use]
    pub fn strays(&self) -> usize {
        self.strays
    }
}
