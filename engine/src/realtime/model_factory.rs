//! Factories of playable models: a model that was read and checked, and how to play it.

use std::error::Error;
use std::sync::Arc;

use super::driver::{Driver, INLINE_SHARE};
use super::setup::Setup;
use crate::executor::Backend;
use crate::instrument::EventKind;
use crate::model::{Kind, Levels, Model};
use crate::pipeline::{
    Action, CommandQueueFull, ControlSource, InputChannels, PipelineError, PipelineOptions,
    Playable, ProcessRequest, SessionStart, TimedCommand, build_playable, codec_steps, validate,
};

/// Error of loading a model into a session; one line.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The model cannot be played like this.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The worker's latency exceeds the input that is kept for it.
    #[error("the worker latency is {latency} samples; at most {max} are possible")]
    WorkerLatency {
        /// Latency that was asked for, in host samples.
        latency: usize,
        /// Longest latency, in host samples.
        max: usize,
    },
    /// The model's code panicked.
    #[error("{0}")]
    Panicked(String),
    /// The model could not be obtained.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self::Other(reason.into())
    }
}

/// Makes a model playable at any sample rate; called on the loader's thread.
pub trait ModelFactory: Send + Sync {
    /// Builds the model for a sample rate in Hz, with slots for up to `sessions` mono sessions, or
    /// for half as many stereo ones, and at least one.
    ///
    /// # Errors
    /// Returns [`LoadError`] if the model cannot be played.
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError>;

    /// Returns a key of the playable: sessions with equal keys may share one. `None` forbids
    /// sharing.
    fn sharing_key(&self) -> Option<String>;

    /// Returns true if the model processes the audio input.
    fn uses_audio_input(&self) -> bool;

    /// Returns the channels of the input that the model processes if it is mono.
    fn channels(&self) -> InputChannels {
        InputChannels::Mono
    }

    /// Returns seed and transposition of a new session.
    fn start(&self) -> SessionStart;

    /// Returns the actions that load the model most, for measuring its cost.
    fn worst_case_load(&self) -> Vec<Action>;

    /// Returns the next smaller variant of the model.
    fn smaller(&self) -> Option<Arc<dyn ModelFactory>> {
        None
    }

    /// Returns the name of the variant; `None` for the base model.
    fn variant(&self) -> Option<String> {
        None
    }

    /// Returns the calibration levels and the loudness of the variant, as far as they are known.
    fn levels(&self) -> Levels {
        Levels::default()
    }

    /// Returns the cost of the variant relative to the others of the model.
    fn work(&self) -> f64 {
        1.0
    }

    /// Returns the model with its work [spread](PipelineOptions::spread) over host blocks, where it
    /// would make some of these blocks late otherwise.
    fn spread(&self, _driver: Driver, _setup: Setup) -> Option<Box<dyn ModelFactory>> {
        None
    }

    /// Returns true if the model is a program in a process of its own, which may be lost and is
    /// then started again.
    fn is_program(&self) -> bool {
        false
    }

    /// Returns true if the model will probably need the worker, which wants slots for several
    /// sessions. A wrong guess costs a second build, or memory.
    fn expects_worker(&self) -> bool {
        false
    }
}

/// Multiply-adds per second that a core of a current desktop CPU computes.
const CORE_SPEED: f64 = 16e9;
/// Share of a block's time that a whole hop of a codec may take in one of several blocks.
const WHOLE_HOP_SHARE: f64 = 0.5;
/// Multiply-adds per second from which a model is expected to need the worker.
const WORKER_LOAD: f64 = INLINE_SHARE * CORE_SPEED;

/// A model and the options to play it with.
#[derive(Clone)]
pub struct PlayableModel {
    model: Arc<Model>,
    options: PipelineOptions,
}

impl PlayableModel {
    /// Checks that the model can be played with these options, without building it. Their sample
    /// rate and number of sessions are replaced later.
    ///
    /// # Errors
    /// Returns [`PipelineError`] if the model lacks what its kind needs, or the options do not fit
    /// it. Errors of the executor, such as missing memory or a missing libtorch, come when the
    /// model is loaded.
    pub fn new(model: Arc<Model>, options: PipelineOptions) -> Result<Self, PipelineError> {
        validate(&model, &options)?;
        Ok(Self { model, options })
    }

    /// Returns true if both channels of the input are processed.
    fn is_stereo(&self) -> bool {
        self.options.channels == InputChannels::Stereo
            && self.model.header().kind != Kind::Instrument
    }
}

impl ModelFactory for PlayableModel {
    fn build(&self, sample_rate: u32, sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        let channels = if self.is_stereo() { 2 } else { 1 };
        let sessions = sessions.div_ceil(channels);
        let options = PipelineOptions {
            sample_rate,
            sessions,
            ..self.options
        };
        Ok(build_playable(&self.model, &options)?)
    }

    fn sharing_key(&self) -> Option<String> {
        let PipelineOptions {
            voices,
            kernels,
            resampling,
            size,
            executor,
            ..
        } = self.options;
        let source = if self.uses_audio_input() {
            ControlSource::AudioInput
        } else {
            ControlSource::Notes
        };
        let (hash, kernels) = (self.model.content_hash(), kernels.name());
        let sides = if self.is_stereo() { 2 } else { 1 };
        let oversampling = self.options.factor(self.model.header());
        // Sizes that select the same variant are equal.
        let variant = self
            .model
            .header()
            .variant(size)
            .map(|variant| &variant.method);
        Some(format!(
            "{hash} {source:?} {voices:?} {oversampling} {resampling:?} {sides} {variant:?} {kernels} {executor}"
        ))
    }

    fn uses_audio_input(&self) -> bool {
        self.options.uses_audio_input(self.model.header().kind)
    }

    fn channels(&self) -> InputChannels {
        self.options.channels
    }

    fn smaller(&self) -> Option<Arc<dyn ModelFactory>> {
        let header = self.model.header();
        let same = |size: &f32| header.variant(*size) == header.variant(self.options.size);
        let size = header
            .sizes()
            .into_iter()
            .skip_while(|size| !same(size))
            .nth(1)?;
        // Variants were checked with the model.
        Some(Arc::new(Self {
            options: PipelineOptions {
                size,
                ..self.options
            },
            model: self.model.clone(),
        }))
    }

    fn variant(&self) -> Option<String> {
        self.model
            .header()
            .variant(self.options.size)
            .map(|variant| variant.name.clone())
    }

    fn levels(&self) -> Levels {
        self.model.header().levels(self.options.size)
    }

    fn work(&self) -> f64 {
        let header = self.model.header();
        let base = header.base_method_name().unwrap_or_default();
        let method = header
            .variant(self.options.size)
            .map_or(base, |variant| &variant.method);
        header.method(method).map_or(1.0, |method| {
            method.multiply_adds_per_second(header.sample_rate)
        })
    }

    fn spread(&self, driver: Driver, setup: Setup) -> Option<Box<dyn ModelFactory>> {
        let header = self.model.header();
        let (hop, work) = codec_steps(&self.model)?;
        let sides = if self.is_stereo() { 2.0 } else { 1.0 };
        // Host blocks of a hop.
        let blocks = hop as f64 * f64::from(setup.sample_rate)
            / (setup.max_block as f64 * f64::from(header.sample_rate));
        let is_needed = match (header.kind, driver) {
            // Generators of several tracks begin their hops together.
            (Kind::Generator, Driver::Inline | Driver::Auto) => true,
            (_, Driver::Inline) => sides * work * blocks > WHOLE_HOP_SHARE * CORE_SPEED,
            _ => false,
        };
        let options = PipelineOptions {
            spread: true,
            ..self.options
        };
        (is_needed && blocks > 1.0).then(|| {
            Box::new(Self {
                options,
                model: self.model.clone(),
            }) as _
        })
    }

    fn expects_worker(&self) -> bool {
        let may_allocate =
            self.model.program().is_some() || self.options.executor.backend == Backend::Torch;
        let performance = self.model.header().performance.unwrap_or_default();
        let voices = if self.model.header().kind == Kind::Instrument && !self.uses_audio_input() {
            self.options.voices.unwrap_or(performance.polyphony.into())
        } else if self.is_stereo() {
            2
        } else {
            1
        };
        may_allocate || self.work() * voices as f64 > WORKER_LOAD
    }

    fn is_program(&self) -> bool {
        self.model.program().is_some()
    }

    fn start(&self) -> SessionStart {
        SessionStart {
            at: 0,
            seed: self.options.seed,
            transpose: self.options.transpose,
        }
    }

    fn worst_case_load(&self) -> Vec<Action> {
        let performance = self.model.header().performance.unwrap_or_default();
        let voices = self
            .options
            .voices
            .unwrap_or(performance.polyphony.into())
            .min(64) as u8;
        let low = performance.pitch_low as u8;
        let note = |voice| {
            Action::Play(EventKind::NoteOn {
                channel: 0,
                key: (low + voice) & 127,
                velocity: 0.8,
            })
        };
        if self.uses_audio_input() {
            Vec::new()
        } else {
            (0..voices).map(note).collect()
        }
    }
}

/// No model: silence without delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence;

impl Playable for Silence {
    fn capacity(&self) -> usize {
        1
    }

    fn latency_samples(&self) -> usize {
        0
    }

    fn tail_samples(&self) -> usize {
        0
    }

    fn open(&mut self, _slot: usize, _start: &SessionStart) {}

    fn handle(&mut self, _slot: usize, _command: TimedCommand) -> Result<(), CommandQueueFull> {
        Ok(())
    }

    fn process(&mut self, requests: &mut [ProcessRequest<'_>]) {
        requests
            .iter_mut()
            .for_each(|request| request.output[0].fill(0.0));
    }
}

impl ModelFactory for Silence {
    fn build(&self, _sample_rate: u32, _sessions: usize) -> Result<Box<dyn Playable>, LoadError> {
        Ok(Box::new(Self))
    }

    fn sharing_key(&self) -> Option<String> {
        None
    }

    fn uses_audio_input(&self) -> bool {
        false
    }

    fn start(&self) -> SessionStart {
        SessionStart::default()
    }

    fn worst_case_load(&self) -> Vec<Action> {
        Vec::new()
    }
}
