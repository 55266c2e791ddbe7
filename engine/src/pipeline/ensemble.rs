//! An instrument that is played in several sessions at once: by notes, or by the pitch and loudness of a sound.

use std::sync::Arc;

use ondes_kernels::Kernels;

use super::controls::Knob;
use super::cue::{Cue, CueFull};
use super::part::{CHUNK, Part};
use super::playable::{Followed, Playable, Start, Turn};
use super::synthesis::{Synthesis, further_ports};
use crate::dsp::resample::ResampleError;
use crate::model::{Fault, Kind, Model, Op};

/// What drives an instrument.
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
        }
    }
}

/// Why a model cannot be played like this.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// Only instruments are played by notes, pitch and loudness.
    #[error("the model is of kind {0}, only instruments can be played")]
    Kind(&'static str),
    /// The model's methods do not make an instrument.
    #[error(transparent)]
    Model(#[from] Fault),
    /// How it is to be played makes no sense.
    #[error(transparent)]
    Performance(#[from] crate::instrument::PerformanceError),
    /// The host's rate cannot be bridged.
    #[error(transparent)]
    Rate(#[from] ResampleError),
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

/// An instrument made playable, at a host's rate, mono, for [`PipelineOptions::seats`] sessions.
pub struct Ensemble {
    parts: Vec<Part>,
    synthesis: Synthesis,
    /// Seats with a hop to make.
    ready: Vec<usize>,
    tail: usize,
}

impl Ensemble {
    /// Makes an instrument playable.
    ///
    /// # Errors
    /// [`PipelineError`] when the model is no instrument or the rate cannot be bridged.
    ///
    /// # Panics
    /// When there are no seats.
    pub fn new(model: &Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        assert!(options.seats > 0, "somebody must play");
        let header = model.header();
        if header.kind != Kind::Instrument {
            return Err(PipelineError::Kind(header.kind.name()));
        }
        let synth = model.method("synth")?;
        let ports = further_ports(synth);
        let knobs: Arc<[Knob]> = Knob::all(header, &ports).into();
        let part = |_| Part::new(header, synth, &ports, &knobs, options);
        let parts: Vec<Part> = (0..options.seats).map(part).collect::<Result<_, _>>()?;
        let taps = header.method("room").map_or(0, |room| {
            let taps = room.nodes.iter().map(|node| if let Op::Convolve { taps } = node.op { taps } else { 0 });
            taps.sum()
        });
        let mut synthesis = Synthesis::new(model, options.kernels, options.seats, parts[0].slots())?;
        (0..options.seats).for_each(|seat| synthesis.open(seat, options.seed));
        let tail = parts[0].to_host_samples(taps);
        Ok(Self { parts, synthesis, ready: Vec::with_capacity(options.seats), tail })
    }

    /// What computes the network, such as `native avx2`.
    #[must_use]
    pub fn executor(&self) -> String {
        self.synthesis.name()
    }

    /// Bytes of weights, states and buffers of the executors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.synthesis.bytes()
    }

    pub(super) fn part(&self, seat: usize) -> &Part {
        &self.parts[seat]
    }

    #[cfg(test)]
    pub(super) fn part_mut(&mut self, seat: usize) -> &mut Part {
        &mut self.parts[seat]
    }
}

impl Playable for Ensemble {
    fn seats(&self) -> usize {
        self.parts.len()
    }

    fn latency_samples(&self) -> usize {
        self.parts[0].latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.tail
    }

    fn open(&mut self, seat: usize, start: &Start) {
        self.parts[seat].open(start);
        self.synthesis.open(seat, start.seed);
    }

    fn handle(&mut self, seat: usize, cue: Cue) -> Result<(), CueFull> {
        self.parts[seat].handle(cue)
    }

    fn followed(&self, seat: usize) -> Option<Followed> {
        self.parts[seat].followed()
    }

    fn process(&mut self, turns: &mut [Turn<'_>]) {
        let longest = turns.iter().map(|turn| turn.output.len()).max().unwrap_or(0);
        for start in (0..longest).step_by(CHUNK) {
            let piece = |turn: &Turn<'_>| start.min(turn.output.len())..(start + CHUNK).min(turn.output.len());
            for turn in turns.iter().filter(|turn| !piece(turn).is_empty()) {
                let input = if turn.input.is_empty() { &[] } else { &turn.input[piece(turn)] };
                self.parts[turn.seat].take(input, piece(turn).len(), turn.mute);
            }
            loop {
                self.ready.clear();
                let playing = turns.iter().filter(|turn| !piece(turn).is_empty()).map(|turn| turn.seat);
                self.ready.extend(playing.filter(|&seat| self.parts[seat].next()));
                if self.ready.is_empty() {
                    break;
                }
                self.synthesis.hop(&mut self.parts, &self.ready);
                self.ready.iter().for_each(|&seat| self.parts[seat].deliver());
            }
            for turn in turns.iter_mut() {
                let piece = piece(turn);
                if !piece.is_empty() {
                    self.parts[turn.seat].give(&mut turn.output[piece]);
                }
            }
        }
    }
}
