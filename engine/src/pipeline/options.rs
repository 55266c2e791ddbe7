//! Options of a pipeline, and errors of building one.

use ondes_kernels::Kernels;

use super::playable::CommandQueueFull;
use crate::dsp::resample::{ResampleError, Resampling};
use crate::executor::{ExecutorOptions, ExecutorSelection};
use crate::model::{Header, Kind, ModelError, Variant};

/// Source of an instrument's pitch and loudness. Effects and codecs always process the audio input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlSource {
    /// MIDI notes.
    Notes,
    /// Pitch and loudness of the audio input.
    AudioInput,
}

/// Part of a stereo input that an effect or a codec processes. Instruments follow the mean, or the
/// left channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputChannels {
    /// The mean of both channels; the output is mono.
    #[default]
    Mono,
    /// The left channel; the output is mono.
    Left,
    /// Both channels; the output is stereo.
    Stereo,
}

/// Settings with which a model is made playable.
#[derive(Clone, Copy, Debug)]
pub struct PipelineOptions {
    /// Sample rate of the host, in Hz.
    pub sample_rate: u32,
    /// Method of rate conversion, where the model's sample rate is another one.
    pub resampling: Resampling,
    /// Source of an instrument's pitch and loudness.
    pub source: ControlSource,
    /// Maximum number of simultaneous notes; `None` takes the model's own.
    pub voices: Option<usize>,
    /// Shift of all pitches, in semitones.
    pub transpose: f32,
    /// Seed of the noise and of variations from note to note.
    pub seed: u64,
    /// Arithmetic of the native executor.
    pub kernels: Kernels,
    /// Part of the input that is processed.
    pub channels: InputChannels,
    /// Number of sessions, each with a slot of its own.
    pub sessions: usize,
    /// Factor by which an effect's network is oversampled: 1, 2, 4 or 8; `None` for that of the
    /// [model](Header::oversampling). Reduces aliasing at a proportional cost; other kinds ignore
    /// it.
    pub oversampling: Option<usize>,
    /// Computes the hop of a codec or a generator over all host blocks until the next one is
    /// complete. A codec gets one hop more of latency; a generator is a hop ahead, and knobs, keys
    /// and input act on it a hop later. For a single session, natively; ignored otherwise.
    pub spread: bool,
    /// Size of the variant to play, 0 to 1; 1 is the base model. Models without variants ignore it.
    pub size: f32,
    /// Executor of an effect's or a codec's network; instruments always run natively.
    pub executor: ExecutorSelection,
    /// Uses an available executor, with a [warning](crate::executor::take_warning), where the
    /// selected one cannot be had.
    pub allow_fallback: bool,
}

impl PipelineOptions {
    /// Returns the selected variant; `None` for the base model.
    pub(super) fn variant<'a>(
        &self,
        header: &'a Header,
    ) -> Result<Option<&'a Variant>, PipelineError> {
        let is_size = (0.0..=1.0).contains(&self.size);
        if is_size {
            Ok(header.variant(self.size))
        } else {
            Err(PipelineError::Size(self.size))
        }
    }

    /// Returns the factor by which a model's network is oversampled.
    pub(crate) fn factor(&self, header: &Header) -> usize {
        self.oversampling.unwrap_or(header.oversampling)
    }

    pub(super) fn executor_options(&self) -> ExecutorOptions {
        let Self {
            executor: selection,
            kernels,
            allow_fallback,
            ..
        } = *self;
        ExecutorOptions {
            selection,
            kernels,
            allow_fallback,
        }
    }

    /// Returns true if a model of that kind processes the audio input.
    pub(crate) fn uses_audio_input(&self, kind: Kind) -> bool {
        kind != Kind::Instrument || self.source == ControlSource::AudioInput
    }
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            resampling: Resampling::default(),
            source: ControlSource::Notes,
            voices: None,
            transpose: 0.0,
            seed: 0,
            kernels: Kernels::detect(),
            channels: InputChannels::default(),
            sessions: 1,
            oversampling: None,
            spread: false,
            size: 1.0,
            executor: ExecutorSelection::default(),
            allow_fallback: false,
        }
    }
}

/// Error of building or controlling a pipeline.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The model lacks a method or a port that its kind needs, or cannot be run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's performance settings are invalid.
    #[error(transparent)]
    Performance(#[from] crate::instrument::PerformanceError),
    /// The host's rate cannot be converted.
    #[error(transparent)]
    Rate(#[from] ResampleError),
    /// Unsupported oversampling factor.
    #[error("oversampling factor {0} is not supported; allowed: 1, 2, 4, 8")]
    Oversampling(usize),
    /// Size out of range.
    #[error("size {0} is out of range; allowed: 0 to 1")]
    Size(f32),
    /// Too many control changes are waiting.
    #[error(transparent)]
    CommandQueueFull(#[from] CommandQueueFull),
    /// The model has no control with that name.
    #[error("unknown control {name:?}; available: {known}")]
    UnknownControl {
        /// Name that was given.
        name: String,
        /// Names of the model's controls, separated by commas.
        known: String,
    },
    /// Value out of a control's range.
    #[error("control {name:?} goes from {min} to {max} {unit}; {value} is out of range")]
    ControlRange {
        /// Name of the control.
        name: String,
        /// Value that was given.
        value: f32,
        /// Smallest value.
        min: f32,
        /// Largest value.
        max: f32,
        /// Unit; empty for plain numbers.
        unit: String,
    },
}
