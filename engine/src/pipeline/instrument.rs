//! An instrument that is played: by notes, or by the pitch and loudness of a sound.

use ondes_kernels::Kernels;

use super::controls::{INSTRUMENT_CONTROLS, Target};
use super::rates::{Inside, Rates};
use super::synthesis::Synthesis;
use crate::dsp::analysis::Analysis;
use crate::dsp::resample::ResampleError;
use crate::instrument::{Event, Performance, QueueFull, VoiceFrame, Voices};
use crate::model::{Fault, Kind, Model};

/// Host samples that are worked on at a time; longer blocks are taken in pieces.
const CHUNK: usize = 1024;

/// What drives an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Notes: [`Pipeline::handle`].
    Notes,
    /// The pitch and loudness of the input.
    Sound,
}

/// How a pipeline is set up.
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

/// A model made playable, at a host's rate, mono.
///
/// After [`Pipeline::new`] only [`Pipeline::set_control`]'s errors allocate.
pub struct Pipeline {
    controls: Vec<crate::model::Control>,
    performance: Performance,
    /// For each input port of `synth` its name: a control of that name feeds it.
    ports: Vec<String>,
    player: Player,
    voices: Voices,
    frames: Vec<VoiceFrame>,
    synthesis: Synthesis,
    rates: Rates,
    ratio: Ratio,
    hop: usize,
    /// One hop at the model's rate.
    sound: Vec<f32>,
    /// Control frames made so far; frame `i` is that of sample `i · hop` at the model's rate.
    made: u64,
    /// Host samples played so far.
    played: u64,
    sounding: usize,
    missing: u64,
    room_taps: usize,
}

/// What turns time into control frames.
enum Player {
    Notes,
    Sound { analysis: Box<Analysis>, transpose: f32, begun: bool },
}

/// Host and model rate, Hz.
#[derive(Clone, Copy)]
struct Ratio {
    host: u64,
    model: u64,
}

impl Pipeline {
    /// Makes an instrument playable.
    ///
    /// # Errors
    /// [`PipelineError`] when the model is no instrument or the rate cannot be bridged.
    pub fn new(model: &Model, options: &PipelineOptions) -> Result<Self, PipelineError> {
        let header = model.header();
        if header.kind != Kind::Instrument {
            return Err(PipelineError::Kind(header.kind.name()));
        }
        let performance = header.performance.unwrap_or_default();
        performance.validate()?;
        let synth = model.method("synth")?;
        let hop = synth.block;
        let rate = f64::from(header.sample_rate);
        let polyphony = options.voices.unwrap_or(usize::from(performance.polyphony));
        let hop_samples = u32::try_from(hop).unwrap_or(u32::MAX);
        let mut voices = Voices::new(&performance, polyphony, rate, hop_samples, options.seed);
        voices.set_transposition(options.transpose);
        let (player, slots, lookahead) = match options.source {
            Source::Notes => (Player::Notes, voices.slots(), 0),
            Source::Sound => {
                let analysis = Box::new(Analysis::new(rate, hop));
                let lookahead = analysis.latency();
                (Player::Sound { analysis, transpose: options.transpose, begun: false }, 1, lookahead)
            }
        };
        let inside = Inside { lookahead, delay: synth.latency_samples() };
        let with_input = options.source == Source::Sound;
        let rates = Rates::new(options.sample_rate, header.sample_rate, inside, with_input, hop, CHUNK)?;
        let room_taps = header.method("room").map_or(0, |room| {
            let taps = room.nodes.iter().map(|node| match node.op {
                crate::model::Op::Convolve { taps } => taps,
                _ => 0,
            });
            taps.sum()
        });
        Ok(Self {
            controls: header.controls.clone(),
            performance,
            ports: synth.inputs.iter().map(|port| port.name.clone()).collect(),
            player,
            voices,
            frames: vec![VoiceFrame::SILENT; slots],
            synthesis: Synthesis::new(model, options.kernels, slots, options.seed)?,
            rates,
            ratio: Ratio { host: options.sample_rate.into(), model: header.sample_rate.into() },
            hop,
            sound: vec![0.0; hop],
            made: 0,
            played: 0,
            sounding: 0,
            missing: 0,
            room_taps,
        })
    }

    /// Host samples from an event or a sound at the input to what it makes at the output.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.rates.latency
    }

    /// Host samples that the room still sounds after the last voice.
    #[must_use]
    pub fn tail_samples(&self) -> usize {
        (self.room_taps as u64 * self.ratio.host).div_ceil(self.ratio.model) as usize
    }

    /// What computes the network, such as `native avx2`.
    #[must_use]
    pub fn executor(&self) -> String {
        self.synthesis.name()
    }

    /// Voices that sounded in the last hop.
    #[must_use]
    pub fn sounding(&self) -> usize {
        self.sounding
    }

    /// Notes that found no voice, even by stealing.
    #[must_use]
    pub fn notes_dropped(&self) -> u64 {
        self.voices.notes_dropped()
    }

    /// Samples that were not there when they were asked for; always 0 unless there is a mistake in the latency.
    #[must_use]
    pub fn samples_missing(&self) -> u64 {
        self.missing
    }

    /// Bytes of weights, states and buffers of the executors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.synthesis.bytes()
    }

    /// Turns a knob; smoothed, unless nothing was played yet. Knobs about how notes are played act on later notes.
    ///
    /// # Errors
    /// When there is no such knob or it does not go there.
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
        let at_once = self.played == 0;
        if let Some(port) = self.ports.iter().position(|port| port == name) {
            let fed = self.synthesis.port_controls.iter_mut().find(|(fed, _)| *fed == port);
            if let Some((_, control)) = fed {
                control.set(value, at_once);
            }
        }
        if let Some(control) = INSTRUMENT_CONTROLS.iter().find(|control| control.name == name) {
            match control.target {
                Target::Room => self.synthesis.room_amount.set(value, at_once),
                Target::Brightness => self.synthesis.brightness.set(value, at_once),
                Target::Performance(field) => {
                    *field(&mut self.performance) = value;
                    self.voices.set_performance(&self.performance);
                }
            }
        }
        Ok(())
    }

    /// Takes in something that a player does, at host samples since the start, in the order of time. It may be given before
    /// its time; what lies in the past happens as soon as it can.
    ///
    /// # Errors
    /// [`QueueFull`] when too many events wait: play some samples first.
    pub fn handle(&mut self, event: Event) -> Result<(), QueueFull> {
        // Rounded up: frames made so far lie before the host's present sample, so no event can miss the frame it belongs to.
        let at = (u128::from(event.at) * u128::from(self.ratio.model)).div_ceil(u128::from(self.ratio.host)) as u64;
        self.voices.handle(&Event { at, kind: event.kind }).map_err(|_| QueueFull(event))
    }

    /// Plays on: `output.len()` samples of any number. The input is as long, or empty where it drives nothing.
    ///
    /// # Panics
    /// When there is an input of another length.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert!(input.is_empty() || input.len() == output.len(), "input and output must be equally long");
        for (index, out) in output.chunks_mut(CHUNK).enumerate() {
            let heard = if input.is_empty() { &[] } else { &input[index * CHUNK..][..out.len()] };
            self.played += out.len() as u64;
            match &self.player {
                Player::Notes => self.play_notes(),
                Player::Sound { .. } => self.follow(heard, out.len()),
            }
            self.missing += self.rates.to_host.pull(out) as u64;
        }
    }

    /// Makes all frames whose instant lies before the samples played so far: all events up to there are known.
    fn play_notes(&mut self) {
        while self.made * self.hop as u64 * self.ratio.host < self.played * self.ratio.model {
            self.sounding = self.voices.frame(self.made * self.hop as u64, &mut self.frames);
            self.synthesis.hop(&self.frames, &mut self.sound);
            self.rates.to_host.push(&self.sound);
            self.made += 1;
        }
    }

    /// Makes a frame for each that the analysis of the input completes; no input counts as silence.
    fn follow(&mut self, heard: &[f32], length: usize) {
        const SILENCE: [f32; CHUNK] = [0.0; CHUNK];
        let heard = if heard.is_empty() { &SILENCE[..length] } else { heard };
        let Self { player, synthesis, rates, frames, sound, made, sounding, .. } = self;
        let Player::Sound { analysis, transpose, begun } = player else { return };
        let Rates { to_model, to_host, .. } = rates;
        to_model.push(heard, |samples| {
            analysis.push(samples, |frame| {
                frames[0] = VoiceFrame {
                    sounding: true,
                    restarted: !*begun,
                    pitch: frame.pitch.semitones + *transpose,
                    loudness: frame.loudness,
                    gain: 1.0,
                };
                *begun = true;
                synthesis.hop(frames, sound);
                to_host.push(sound);
                *made += 1;
                *sounding = 1;
            });
        });
    }
}
