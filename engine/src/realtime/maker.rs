//! What a loader makes lanes from: a model that was read and checked, and how it is to be played.

use std::sync::Arc;

use crate::instrument::EventKind;
use crate::model::Model;
use crate::pipeline::{
    Action, Ensemble, PipelineError, PipelineOptions, Playable, Source, Start, hears, measured_latency,
};

/// Makes a model playable, as often and at whatever rate it is asked to. Called on the loader's thread.
pub trait Maker: Send + Sync {
    /// The model, at a rate in Hz, with room for so many sessions or fewer.
    ///
    /// # Errors
    /// One line that says why it cannot be played.
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String>;

    /// Sessions whose makers have the same name may share one playable; without a name each has its own.
    fn name(&self) -> Option<String>;

    /// Whether the input drives the model.
    fn hears(&self) -> bool;

    /// Seed and transposition to begin with.
    fn start(&self) -> Start;

    /// What makes the model work hardest: given before its cost is measured.
    fn hardest(&self) -> Vec<Action>;

    /// The same model in its next smaller size, if it has one.
    fn smaller(&self) -> Option<Arc<dyn Maker>> {
        None
    }

    /// The size that it makes, by the name of the variant; none for the whole.
    fn variant(&self) -> Option<String> {
        None
    }

    /// How much work it is to play, to compare sizes with.
    fn work(&self) -> f64 {
        1.0
    }

    /// The latency as an impulse finds it, host samples, without that of a worker; none where it cannot be told.
    fn measured_latency(&self, sample_rate: u32) -> Option<usize>;
}

/// A model and how it is played.
#[derive(Clone)]
pub struct Patch {
    model: Arc<Model>,
    options: PipelineOptions,
}

impl Patch {
    /// A model to be played with those options; their rate and seats do not matter here.
    ///
    /// # Errors
    /// [`PipelineError`] when the model cannot be played.
    pub fn new(model: Arc<Model>, options: PipelineOptions) -> Result<Self, PipelineError> {
        // Made once at the model's own rate, so that what is wrong with it is known now.
        Ensemble::new(&model, &PipelineOptions { sample_rate: model.header().sample_rate, seats: 1, ..options })?;
        Ok(Self { model, options })
    }
}

impl Maker for Patch {
    fn make(&self, sample_rate: u32, seats: usize) -> Result<Box<dyn Playable>, String> {
        let options = PipelineOptions { sample_rate, seats, ..self.options };
        match Ensemble::new(&self.model, &options) {
            Ok(ensemble) => Ok(Box::new(ensemble)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn name(&self) -> Option<String> {
        let PipelineOptions { voices, kernels, oversampling, size, wish, .. } = self.options;
        let source = if self.hears() { Source::Sound } else { Source::Notes };
        let (hash, kernels) = (self.model.content_hash(), kernels.name());
        // Sizes that take the same variant are the same.
        let variant = self.model.header().variant(size).map(|variant| &variant.method);
        let computed = format!("{kernels} {wish}");
        Some(format!("{hash} {source:?} {voices:?} {oversampling} {variant:?} {computed}"))
    }

    fn hears(&self) -> bool {
        hears(self.model.header().kind, &self.options)
    }

    fn smaller(&self) -> Option<Arc<dyn Maker>> {
        let header = self.model.header();
        let same = |size: &f32| header.variant(*size) == header.variant(self.options.size);
        let size = header.sizes().into_iter().skip_while(|size| !same(size)).nth(1)?;
        // A variant was checked with the whole.
        Some(Arc::new(Self { options: PipelineOptions { size, ..self.options }, model: self.model.clone() }))
    }

    fn variant(&self) -> Option<String> {
        self.model.header().variant(self.options.size).map(|variant| variant.name.clone())
    }

    fn work(&self) -> f64 {
        let header = self.model.header();
        let whole = header.whole().unwrap_or_default();
        let method = header.variant(self.options.size).map_or(whole, |variant| &variant.method);
        header.method(method).map_or(1.0, |method| method.multiply_adds_per_second(header.sample_rate))
    }

    fn start(&self) -> Start {
        Start { at: 0, seed: self.options.seed, transpose: self.options.transpose }
    }

    fn hardest(&self) -> Vec<Action> {
        let performance = self.model.header().performance.unwrap_or_default();
        let voices = self.options.voices.unwrap_or(performance.polyphony.into()).min(64) as u8;
        let low = performance.pitch_low as u8;
        let note = |voice| Action::Play(EventKind::NoteOn { channel: 0, key: (low + voice) & 127, velocity: 0.8 });
        if self.hears() { Vec::new() } else { (0..voices).map(note).collect() }
    }

    fn measured_latency(&self, sample_rate: u32) -> Option<usize> {
        measured_latency(&self.model, &PipelineOptions { sample_rate, ..self.options })
    }
}

/// No model: silence without delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence;

impl Playable for Silence {
    fn seats(&self) -> usize {
        1
    }

    fn latency_samples(&self) -> usize {
        0
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, _seat: usize, _start: &Start) {}

    fn handle(&mut self, _seat: usize, _cue: crate::pipeline::Cue) -> Result<(), crate::pipeline::CueFull> {
        Ok(())
    }

    fn process(&mut self, turns: &mut [crate::pipeline::Turn<'_>]) {
        turns.iter_mut().for_each(|turn| turn.output.fill(0.0));
    }
}

impl Maker for Silence {
    fn make(&self, _sample_rate: u32, _seats: usize) -> Result<Box<dyn Playable>, String> {
        Ok(Box::new(Self))
    }

    fn name(&self) -> Option<String> {
        None
    }

    fn hears(&self) -> bool {
        false
    }

    fn start(&self) -> Start {
        Start::default()
    }

    fn hardest(&self) -> Vec<Action> {
        Vec::new()
    }

    fn measured_latency(&self, _sample_rate: u32) -> Option<usize> {
        Some(0)
    }
}
