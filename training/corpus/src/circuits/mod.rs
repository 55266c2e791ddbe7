//! Circuits of our own, as devices to capture: what a bundled capture has learnt must be something that anyone can measure again.
//!
//! A circuit is a list of parts ([`netlist`]) that a solver ([`solver`]) steps at eight times the sample rate ([`oversample`]),
//! with its valves, diodes and transistors from [`device`]. Read [`overdrive`], [`triode`] and [`fuzz`] for the circuits: one
//! file for each, knobs included. All is deterministic and in double precision.

pub mod device;
pub mod fuzz;
pub mod matrix;
pub mod netlist;
pub mod overdrive;
pub mod oversample;
pub mod solver;
#[cfg(test)]
mod tests;
pub mod triode;

use anyhow::{Context, ensure};

use netlist::Netlist;
use oversample::Oversampler;
use solver::Simulation;

/// Steps of the solver per sample.
pub const OVERSAMPLING: usize = 8;

/// A circuit with its knobs set.
pub struct Circuit {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// Its parts.
    pub netlist: Netlist,
    /// Volts at the input for a sample of 1.
    pub input_volts: f64,
    /// Volts at the output that make a sample of 1; negative where the recording is to be turned over.
    pub output_volts: f64,
}

/// The circuits that there are.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["overdrive", "triode", "fuzz"]
}

/// The circuit of that name.
///
/// # Errors
/// When there is none.
pub fn circuit(name: &str) -> anyhow::Result<Circuit> {
    let make: fn() -> Circuit = match name {
        "overdrive" => overdrive::circuit,
        "triode" => triode::circuit,
        "fuzz" => fuzz::circuit,
        _ => anyhow::bail!("there is no circuit `{name}`; there are {}", names().join(", ")),
    };
    Ok(make())
}

impl Circuit {
    /// What comes out when `dry` goes in, as long as it and in time with it, at `rate_hz`.
    ///
    /// # Errors
    /// When the circuit has no operating point, or a step did not converge.
    pub fn play(&self, dry: &[f32], rate_hz: f64) -> anyhow::Result<Vec<f32>> {
        self.play_oversampled(dry, rate_hz, OVERSAMPLING)
    }

    /// The same with that many steps per sample.
    ///
    /// # Errors
    /// As [`Circuit::play`].
    pub fn play_oversampled(&self, dry: &[f32], rate_hz: f64, factor: usize) -> anyhow::Result<Vec<f32>> {
        let oversampler = Oversampler::new(factor);
        let mut simulation =
            Simulation::new(&self.netlist, rate_hz * factor as f64).context("the circuit cannot be solved")?;
        let scale = self.input_volts;
        let mut fast = oversampler.up(dry);
        for sample in &mut fast {
            *sample = simulation.step(*sample * scale) / self.output_volts;
        }
        ensure!(simulation.strays() == 0, "{} steps of the solver did not converge", simulation.strays());
        Ok(oversampler.down(&fast, dry.len()))
    }
}
