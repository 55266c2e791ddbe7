//! Benchmark of a model in a session as in an audio callback, block by block, with a load at all
//! times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::controller_state::LoadStatus;
use super::driver::Driver;
use super::model_factory::{LoadError, PlayableModel};
use super::session::{BlockCommand, Session};
use super::session_controller::SessionController;
use super::setup::{Setup, SetupError};
use crate::executor::Backend;
use crate::instrument::EventKind;
use crate::model::{Kind, Model};
use crate::pipeline::{Action, ControlSource, PipelineOptions};
use crate::random::Lcg;

/// Maximum number of notes in a chord.
const MAX_NOTES: u8 = 4;
/// Interval between chords, in seconds.
const CHORD_S: f64 = 1.0;
/// Range of the sweep in Hz, and its duration in seconds.
const SWEEP_HZ: (f64, f64) = (55.0, 7_040.0);
const SWEEP_S: f64 = 4.0;
/// Amplitudes of sweep and noise.
const SWEEP: f32 = 0.25;
const NOISE: f32 = 0.05;
/// Interval at which the load status is polled.
const LOAD_POLL: Duration = Duration::from_millis(1);

/// A session that plays chords, or processes a sweep with noise, and measures each block.
pub struct RealtimeBenchmark {
    session: Session,
    /// Keeps the model that the session plays.
    controller: SessionController,
    setup: Setup,
    /// Keys of a chord; empty for models that process audio.
    chord: Vec<u8>,
    signal: TestSignal,
    blocks_played: usize,
    /// Time of the next chord, in seconds.
    next_chord: f64,
    /// `[frame]`
    input: Vec<f32>,
    output: Vec<f32>,
    commands: Vec<BlockCommand>,
}

/// Error of a benchmark; one line.
#[derive(Debug, thiserror::Error)]
pub enum BenchmarkError {
    /// The model cannot be played.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The sample rate or the block is not supported.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The model failed to load, or while it played.
    #[error("{0}")]
    Failed(String),
}

impl RealtimeBenchmark {
    /// Loads a model with these options; their control source is replaced by that of the model's
    /// kind.
    ///
    /// # Errors
    /// Returns [`BenchmarkError`] if the model cannot be played.
    pub fn new(
        model: &Arc<Model>,
        setup: Setup,
        options: &PipelineOptions,
    ) -> Result<Self, BenchmarkError> {
        let chord = chord(model);
        let source = if chord.is_empty() {
            ControlSource::AudioInput
        } else {
            ControlSource::Notes
        };
        let options = PipelineOptions { source, ..*options };
        let playable = PlayableModel::new(model.clone(), options).map_err(LoadError::from)?;
        let controller = SessionController::new();
        // libtorch may wait, which a callback must not; it is measured as if it were in one.
        let on_torch = model.program().is_some() || options.executor.backend == Backend::Torch;
        controller.set_driver(if on_torch {
            Driver::Offline
        } else {
            Driver::Inline
        });
        controller.load(Box::new(move || Ok(Arc::new(playable))), &[]);
        while controller.status() == LoadStatus::Loading {
            std::thread::sleep(LOAD_POLL);
        }
        let session = controller.activate(setup)?;
        let Setup {
            sample_rate,
            max_block,
        } = setup;
        let benchmark = Self {
            session,
            controller,
            setup,
            signal: TestSignal::new(sample_rate),
            blocks_played: 0,
            next_chord: 0.0,
            input: vec![0.0; max_block],
            output: vec![0.0; max_block],
            commands: Vec::with_capacity(2 * chord.len()),
            chord,
        };
        benchmark.check()?;
        Ok(benchmark)
    }

    /// Returns the control source: notes for instruments, audio for other models.
    #[must_use]
    pub fn source(&self) -> ControlSource {
        if self.chord.is_empty() {
            ControlSource::AudioInput
        } else {
            ControlSource::Notes
        }
    }

    /// Returns a description of the load for people, such as `4 held notes`.
    #[must_use]
    pub fn load_description(&self) -> String {
        match self.chord.len() {
            0 => "a sweep with noise".into(),
            1 => "one held note".into(),
            notes => format!("{notes} held notes"),
        }
    }

    /// Returns the number of blocks in `seconds`, at least 1.
    #[must_use]
    pub fn blocks(&self, seconds: f64) -> usize {
        let Setup {
            sample_rate,
            max_block,
        } = self.setup;
        ((seconds * f64::from(sample_rate) / max_block as f64).ceil() as usize).max(1)
    }

    /// Returns the latency in host samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.session.latency_samples()
    }

    /// Plays a block and returns the time that it took.
    pub fn play_block(&mut self) -> Duration {
        let Setup {
            sample_rate,
            max_block,
        } = self.setup;
        self.commands.clear();
        if self.chord.is_empty() {
            self.input.fill_with(|| self.signal.next());
        } else if (self.blocks_played * max_block) as f64 / f64::from(sample_rate)
            >= self.next_chord
        {
            let strike = |on: bool| {
                self.chord.iter().map(move |&key| match on {
                    true => EventKind::NoteOn {
                        channel: 0,
                        key,
                        velocity: 0.8,
                    },
                    false => EventKind::NoteOff {
                        channel: 0,
                        key,
                        velocity: 0.5,
                    },
                })
            };
            let events = strike(false).chain(strike(true));
            self.commands.extend(events.map(|kind| BlockCommand {
                offset: 0,
                action: Action::Play(kind),
            }));
            self.next_chord += CHORD_S;
        }
        self.blocks_played += 1;
        let input: &[&[f32]] = if self.chord.is_empty() {
            &[&self.input]
        } else {
            &[]
        };
        let start = Instant::now();
        self.session
            .process(&self.commands, input, &mut [&mut self.output]);
        start.elapsed()
    }

    /// Returns a warning about the model, one line, such as a device that failed and was replaced.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.controller.warning()
    }

    /// Checks that the model has not failed.
    ///
    /// # Errors
    /// Returns [`BenchmarkError::Failed`] with the reason.
    pub fn check(&self) -> Result<(), BenchmarkError> {
        match self.controller.status() {
            LoadStatus::Failed(reason) => Err(BenchmarkError::Failed(reason)),
            _ => Ok(()),
        }
    }
}

/// Returns the keys of a chord across the trained range of an instrument; empty for other models.
fn chord(model: &Model) -> Vec<u8> {
    let header = model.header();
    if header.kind != Kind::Instrument {
        return Vec::new();
    }
    let performance = header.performance.unwrap_or_default();
    let notes = performance.polyphony.clamp(1, MAX_NOTES);
    let (low, high) = (performance.pitch_low, performance.pitch_high);
    let key = |note: u8| low + (high - low) * (f32::from(note) + 0.5) / f32::from(notes);
    (0..notes)
        .map(|note| key(note).round().clamp(0.0, 127.0) as u8)
        .collect()
}

/// A sweep over seven octaves, up and up again, and noise; always the same.
struct TestSignal {
    sample_rate: f64,
    /// Periods.
    phase: f64,
    /// Seconds.
    time: f64,
    random: Lcg,
}

impl TestSignal {
    fn new(sample_rate: u32) -> Self {
        Self {
            sample_rate: sample_rate.into(),
            phase: 0.0,
            time: 0.0,
            random: Lcg::new(1),
        }
    }

    fn next(&mut self) -> f32 {
        let (low, high) = SWEEP_HZ;
        let frequency = low * (high / low).powf((self.time / SWEEP_S).fract());
        self.phase = (self.phase + frequency / self.sample_rate).fract();
        self.time += 1.0 / self.sample_rate;
        let noise = (self.random.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0;
        SWEEP * (std::f64::consts::TAU * self.phase).sin() as f32 + NOISE * noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_is_always_the_same_and_never_silent() {
        let take = || {
            let mut sound = TestSignal::new(48_000);
            (0..200_000).map(|_| sound.next()).collect::<Vec<f32>>()
        };
        let sound = take();
        assert_eq!(sound, take());
        assert!(sound.iter().all(|sample| sample.abs() <= SWEEP + NOISE));
        assert!(
            sound
                .chunks(2_000)
                .all(|piece| piece.iter().any(|sample| sample.abs() > 0.5 * SWEEP))
        );
    }
}
