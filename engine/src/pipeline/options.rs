//! How a model is to be played, and why it cannot be.

use ondes_kernels::Kernels;

use super::cue::CueFull;
use crate::dsp::resample::ResampleError;
use crate::executor::Running;
use crate::model::{Fault, Header, Kind, Variant};
use crate::wish::Wish;

/// What drives an instrument. Models of other kinds hear the input, whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Notes.
    Notes,
    /// The pitch and loudness of the input.
    Sound,
}

/// How a model is made playable.
#[derive(Clone, Copy, Debug)]
pub struct PipelineOptions {
    /// The host's rate, Hz.
    pub sample_rate: u32,
    /// What drives the instrument.
    pub source: Source,
    /// Notes at once; by default as many as the model says.
    pub voices: Option<usize>,
    /// Shift of all pitches, semitones.
    pub transpose: f32,
    /// Seed of noise and of what varies from note to note.
    pub seed: u64,
    /// The arithmetic to use.
    pub kernels: Kernels,
    /// Sessions that there is room for.
    pub seats: usize,
    /// An effect's network at so many times its rate, 1, 2 or 4: less of its overtones folds, for as many times the work. Other
    /// kinds play as they are.
    pub oversampling: usize,
    /// Which of its variants an effect or an instrument plays, 0 to 1; at 1 the whole. What has no variants plays as it is.
    pub size: f32,
    /// What runs an effect's or a codec's network; instruments are run by our own code, whatever is said here.
    pub wish: Wish,
    /// Where libtorch is not there, or cannot do that, what can play the model does, and it is said; otherwise that is an error.
    pub lenient: bool,
}

impl PipelineOptions {
    /// The variant that plays; none where the whole does.
    pub(super) fn variant<'a>(&self, header: &'a Header) -> Result<Option<&'a Variant>, PipelineError> {
        let is_size = (0.0..=1.0).contains(&self.size);
        if is_size { Ok(header.variant(self.size)) } else { Err(PipelineError::Size(self.size)) }
    }

    /// How networks are run.
    pub(super) fn running(&self) -> Running {
        let Self { wish, kernels, lenient, .. } = *self;
        Running { wish, kernels, lenient }
    }
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            source: Source::Notes,
            voices: None,
            transpose: 0.0,
            seed: 0,
            kernels: Kernels::detect(),
            seats: 1,
            oversampling: 1,
            size: 1.0,
            wish: Wish::default(),
            lenient: false,
        }
    }
}

/// Why a model cannot be played like this.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The model's methods do not make what its kind says.
    #[error(transparent)]
    Model(#[from] Fault),
    /// How it is to be played makes no sense.
    #[error(transparent)]
    Performance(#[from] crate::instrument::PerformanceError),
    /// The host's rate cannot be bridged.
    #[error(transparent)]
    Rate(#[from] ResampleError),
    /// There are no such rates.
    #[error("the network runs at 1, 2 or 4 times its rate, not at {0} times")]
    Oversampling(usize),
    /// There is no such size.
    #[error("a size goes from 0 to 1; {0} is outside")]
    Size(f32),
    /// Knobs are turned faster than sound is made.
    #[error(transparent)]
    Cue(#[from] CueFull),
    /// There is no such knob.
    #[error("there is no control {name:?}; this model has {known}")]
    UnknownControl {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The knob does not go there.
    #[error("control {name:?} goes from {min} to {max} {unit}; {value} is outside")]
    ControlRange {
        /// The knob.
        name: String,
        /// What was asked for.
        value: f32,
        /// Its smallest value.
        min: f32,
        /// Its largest value.
        max: f32,
        /// Its unit.
        unit: String,
    },
}

/// Whether a model of that kind hears the input when it is played like this.
pub(crate) fn hears(kind: Kind, options: &PipelineOptions) -> bool {
    kind != Kind::Instrument || options.source == Source::Sound
}
