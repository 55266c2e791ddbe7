//! Circuit with its knobs set.

use anyhow::{Context, ensure};

use super::netlist::Netlist;
use super::oversample::Oversampler;
use super::solver::Simulation;

/// Solver steps per sample.
const OVERSAMPLING: usize = 8;

/// Circuit with its knobs set.
pub struct Circuit {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub description: &'static str,
    /// Its parts.
    pub netlist: Netlist,
    /// Input voltage of a sample of 1.
    pub input_volts: f64,
    /// Output voltage of a sample of 1; negative to invert the polarity.
    pub output_volts: f64,
}

impl Circuit {
    /// Processes a sound at `rate_hz`; the result has its length and no delay.
    ///
    /// # Errors
    /// Returns an error if the circuit has no operating point or a step does not converge.
    pub fn play(&self, dry: &[f32], rate_hz: f64) -> anyhow::Result<Vec<f32>> {
        self.play_oversampled(dry, rate_hz, OVERSAMPLING)
    }

    /// Processes a sound with `factor` solver steps per sample.
    ///
    /// # Errors
    /// As [`Circuit::play`].
    pub fn play_oversampled(
        &self,
        dry: &[f32],
        rate_hz: f64,
        factor: usize,
    ) -> anyhow::Result<Vec<f32>> {
        let oversampler = Oversampler::new(factor);
        let mut simulation = Simulation::new(&self.netlist, rate_hz * factor as f64)
            .context("the circuit cannot be solved")?;
        let scale = self.input_volts;
        let mut fast = oversampler.up(dry);
        for sample in &mut fast {
            *sample = simulation.step(*sample * scale) / self.output_volts;
        }
        let unconverged = simulation.unconverged_steps();
        ensure!(
            unconverged == 0,
            "{unconverged} steps of the solver did not converge"
        );
        Ok(oversampler.down(&fast, dry.len()))
    }
}
