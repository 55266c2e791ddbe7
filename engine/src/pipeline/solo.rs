//! A model that one session plays, at its own pace: what a render steps, and what a knob's name is good for.

use super::controls::controls;
use super::cue::{Action, ControlId, Cue};
use super::ensemble::Ensemble;
use super::options::{PipelineError, PipelineOptions};
use super::playable::{Playable, Start, Turn};
use crate::instrument::{Event, QueueFull};
use crate::model::{Control, Model};

/// A model made playable, at a host's rate, mono, for one session.
///
/// After [`Pipeline::new`] only [`Pipeline::set_control`]'s errors allocate.
pub struct Pipeline {
    controls: Vec<Control>,
    ensemble: Ensemble,
    start: Start,
}

impl Pipeline {
    /// Makes a model playable.
    ///
    /// # Errors
    /// [`PipelineError`] when the model cannot be played or the rate cannot be bridged.
    pub fn new(model: &Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let ensemble = Ensemble::new(model, &PipelineOptions { seats: 1, ..*options })?;
        let start = Start { at: 0, seed: options.seed, transpose: options.transpose };
        Ok(Self { controls: controls(model.header()), ensemble, start })
    }

    /// Begins anew, as if it had just been made: what it has played, counted and been told is forgotten. Allocates nothing.
    pub fn restart(&mut self) {
        self.ensemble.open(0, &self.start);
    }

    /// Host samples from an event or a sound at the input to what it makes at the output.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.ensemble.latency_samples()
    }

    /// Host samples that still sound after the last voice, or after the sound at the input has ended.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        self.ensemble.tail_samples()
    }

    /// What computes the network, such as `native avx2`.
    #[must_use]
    pub fn executor(&self) -> String {
        self.ensemble.executor()
    }

    /// Voices that sounded in the last hop.
    #[must_use]
    pub fn sounding(&self) -> usize {
        self.ensemble.sounding(0)
    }

    /// Notes that found no voice, even by stealing.
    #[must_use]
    pub fn notes_dropped(&self) -> u64 {
        self.ensemble.notes_dropped(0)
    }

    /// Samples that were not there when they were asked for; always 0 unless there is a mistake in the latency.
    #[must_use]
    pub fn samples_missing(&self) -> u64 {
        self.ensemble.samples_missing(0)
    }

    /// The latents that a codec decoded last, bent; empty for other kinds.
    #[must_use]
    pub fn latents(&self) -> &[f32] {
        self.ensemble.latents(0)
    }

    /// Bytes of weights, states and buffers of the executors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ensemble.bytes()
    }

    /// Turns a knob from the next frame on; smoothed, unless nothing was played yet. Knobs about how notes are played act on
    /// later notes.
    ///
    /// # Errors
    /// When there is no such knob, it does not go there, or too many turns of it wait for their frame.
    pub fn set_control(&mut self, name: &str, value: f32) -> Result<(), PipelineError> {
        let Some(control) = self.controls.iter().find(|control| control.name == name) else {
            let known: Vec<&str> = self.controls.iter().map(|control| control.name.as_str()).collect();
            return Err(PipelineError::UnknownControl { name: name.into(), known: known.join(", ") });
        };
        if !(control.min..=control.max).contains(&value) {
            return Err(PipelineError::ControlRange {
                name: name.into(),
                value,
                min: control.min,
                max: control.max,
                unit: control.unit.clone(),
            });
        }
        let action = Action::Control { id: ControlId::of(name), value };
        Ok(self.ensemble.handle(0, Cue { at: self.ensemble.now(0), action })?)
    }

    /// Takes in something that a player does, at host samples since the start, in the order of time. It may be given before
    /// its time; what lies in the past happens as soon as it can.
    ///
    /// # Errors
    /// [`QueueFull`] when too many events wait: play some samples first.
    pub fn handle(&mut self, event: Event) -> Result<(), QueueFull> {
        let cue = Cue { at: event.at, action: Action::Play(event.kind) };
        self.ensemble.handle(0, cue).map_err(|_| QueueFull(event))
    }

    /// Plays on: `output.len()` samples of any number. The input is as long, or empty where it drives nothing.
    ///
    /// # Panics
    /// When there is an input of another length.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert!(input.is_empty() || input.len() == output.len(), "input and output must be equally long");
        self.ensemble.process(&mut [Turn { seat: 0, input, output, mute: false }]);
    }
}
