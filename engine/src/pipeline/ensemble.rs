//! A model that is played in several sessions at once, of whatever kind it is.

use super::batch::Inspect;
use super::codec;
use super::cue::{Cue, CueFull};
use super::effect;
use super::instrument;
use super::options::{PipelineError, PipelineOptions};
use super::playable::{Followed, Playable, Start, Turn};
use crate::model::{Kind, Model};

/// A model made playable, at a host's rate, mono, for [`PipelineOptions::seats`] sessions.
pub struct Ensemble(Box<dyn Inspect>);

impl Ensemble {
    /// Makes a model playable, as its kind says.
    ///
    /// # Errors
    /// [`PipelineError`] when the model cannot be played or the rate cannot be bridged.
    ///
    /// # Panics
    /// When there are no seats.
    pub fn new(model: &Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        assert!(options.seats > 0, "somebody must play");
        Ok(Self(match model.header().kind {
            Kind::Instrument => Box::new(instrument::make(model, options)?),
            Kind::Effect => Box::new(effect::make(model, options)?),
            Kind::Codec | Kind::Generator => Box::new(codec::make(model, options)?),
        }))
    }

    /// What computes the network, such as `native avx2`.
    #[must_use]
    pub fn executor(&self) -> String {
        self.0.executor()
    }

    /// Bytes of weights, states and buffers of the executors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    pub(super) fn now(&self, seat: usize) -> u64 {
        self.0.now(seat)
    }

    pub(super) fn samples_missing(&self, seat: usize) -> u64 {
        self.0.samples_missing(seat)
    }

    pub(super) fn sounding(&self, seat: usize) -> usize {
        self.0.sounding(seat)
    }

    pub(super) fn notes_dropped(&self, seat: usize) -> u64 {
        self.0.notes_dropped(seat)
    }
}

impl Playable for Ensemble {
    fn seats(&self) -> usize {
        self.0.seats()
    }

    fn latency_samples(&self) -> usize {
        self.0.latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.0.tail_samples()
    }

    fn may_allocate(&self) -> bool {
        self.0.may_allocate()
    }

    fn open(&mut self, seat: usize, start: &Start) {
        self.0.open(seat, start);
    }

    fn handle(&mut self, seat: usize, cue: Cue) -> Result<(), CueFull> {
        self.0.handle(seat, cue)
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        self.0.process(turns);
    }

    fn followed(&self, seat: usize) -> Option<Followed> {
        self.0.followed(seat)
    }

    fn latents(&self, seat: usize) -> &[f32] {
        self.0.latents(seat)
    }
}
