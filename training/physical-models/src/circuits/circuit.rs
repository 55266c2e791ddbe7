//! Circuit with knobs.

use anyhow::{Context, ensure};

use super::netlist::Netlist;
use super::oversample::Oversampler;
use super::solver::Simulation;

/// Solver steps per sample.
const OVERSAMPLING: usize = 8;

/// Most knobs of a circuit.
pub const MAX_KNOBS: usize = 4;

/// Positions of the knobs of a circuit, 0 to 1, in their order; those beyond its knobs are unused.
pub type Positions = [f64; MAX_KNOBS];

/// Number that a knob at position 1 shows.
pub const SCALE: f64 = 10.0;

/// Knob of a circuit.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Name.
    pub name: &'static str,
    /// Default position, 0 to 1.
    pub default: f64,
    /// Description, one sentence.
    pub description: &'static str,
}

/// Circuit with knobs.
#[derive(Clone, Copy, Debug)]
pub struct Circuit {
    /// Name on the command line.
    pub name: &'static str,
    /// Name on the card of a capture.
    pub title: &'static str,
    /// Description, one sentence.
    pub description: &'static str,
    /// Kind of device, as on the card of a capture.
    pub kind: &'static str,
    /// Character of the sound, as on the card of a capture.
    pub tone: &'static str,
    /// Knobs.
    pub knobs: &'static [Knob],
    /// Input voltage of a sample of 1; negative if its transistors are PNP, which the parts are not.
    pub input_volts: f64,
    /// Output voltage of a sample of 1; negative to invert the polarity.
    pub output_volts: f64,
    /// Builds its parts: netlists that are solved one after the other, each driven by the output of
    /// the one before.
    pub(super) stages: fn(Positions) -> Vec<Netlist>,
}

impl Circuit {
    /// Returns the default positions of the knobs.
    #[must_use]
    pub fn defaults(&self) -> Positions {
        let mut positions = [0.0; MAX_KNOBS];
        for (position, knob) in positions.iter_mut().zip(self.knobs) {
            *position = knob.default;
        }
        positions
    }

    /// Returns the default positions, changed by settings: names of knobs, in any case, with numbers
    /// from 0 to [`SCALE`].
    ///
    /// # Errors
    /// Returns an error that lists the knobs if none has that name, or the range if one is outside.
    ///
    /// ```
    /// let circuit = ondes_physical_models::circuits::circuit("overdrive")?;
    /// assert_eq!(circuit.positions([("tone", 10.0)])?[..2], [0.6, 1.0]);
    /// # anyhow::Ok(())
    /// ```
    pub fn positions<'a>(
        &self,
        settings: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> anyhow::Result<Positions> {
        let mut positions = self.defaults();
        for (name, number) in settings {
            let knob = self
                .knobs
                .iter()
                .position(|knob| knob.name.eq_ignore_ascii_case(name));
            let knob = knob.with_context(|| {
                let names: Vec<_> = self.knobs.iter().map(|knob| knob.name).collect();
                format!(
                    "{} has no knob {name:?}; available: {}",
                    self.name,
                    names.join(", ")
                )
            })?;
            ensure!(
                (0.0..=SCALE).contains(&number),
                "knob {} cannot be at {number}; use 0 to {SCALE}",
                self.knobs[knob].name
            );
            positions[knob] = number / SCALE;
        }
        Ok(positions)
    }

    /// Returns the names of the knobs with the numbers that they show at these positions, to three
    /// places.
    pub fn shown(&self, positions: Positions) -> impl Iterator<Item = (&'static str, f64)> {
        self.knobs
            .iter()
            .zip(positions)
            .map(|(knob, position)| (knob.name, (1e3 * SCALE * position).round() / 1e3))
    }

    /// Returns the parts with the knobs at these positions: netlists that are solved one after the
    /// other.
    #[must_use]
    pub fn stages(&self, positions: Positions) -> Vec<Netlist> {
        (self.stages)(positions)
    }

    /// Processes a sound at `rate_hz`; the result has its length and no delay.
    ///
    /// # Errors
    /// Returns an error if the circuit has no operating point or a step does not converge.
    pub fn play(
        &self,
        positions: Positions,
        dry: &[f32],
        rate_hz: f64,
    ) -> anyhow::Result<Vec<f32>> {
        self.play_oversampled(positions, dry, rate_hz, OVERSAMPLING)
    }

    /// Processes a sound with `factor` solver steps per sample.
    ///
    /// # Errors
    /// As [`Circuit::play`].
    pub fn play_oversampled(
        &self,
        positions: Positions,
        dry: &[f32],
        rate_hz: f64,
        factor: usize,
    ) -> anyhow::Result<Vec<f32>> {
        let oversampler = Oversampler::new(factor);
        let mut fast = oversampler.up(dry);
        fast.iter_mut()
            .for_each(|sample| *sample *= self.input_volts);
        for netlist in self.stages(positions) {
            let mut simulation = Simulation::new(&netlist, rate_hz * factor as f64)
                .context("the circuit cannot be solved")?;
            for sample in &mut fast {
                *sample = simulation.step(*sample);
            }
            let unconverged = simulation.unconverged_steps();
            ensure!(
                unconverged == 0,
                "{unconverged} steps of the solver did not converge"
            );
        }
        fast.iter_mut()
            .for_each(|sample| *sample /= self.output_volts);
        Ok(oversampler.down(&fast, dry.len()))
    }
}
