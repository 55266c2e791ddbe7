//! A model that plays in a callback of ours, with something to do all the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ondes_engine::instrument::EventKind;
use ondes_engine::model::{Kind, Model};
use ondes_engine::pipeline::{Action, PipelineOptions, Source};
use ondes_engine::realtime::{BlockCue, Driver, Patch, Remote, Session, Setup, Status};

use crate::interrupt;

/// Sound that is played before anything is measured, seconds: caches, the clock of the CPU, and the model's memory.
const WARM_S: f64 = 0.5;
/// Notes of a chord, at most.
const MOST_NOTES: u8 = 4;
/// Time between two chords, seconds.
const CHORD_S: f64 = 1.0;
/// The sweep goes from here to there in [`SWEEP_S`], Hz.
const SWEEP_HZ: (f64, f64) = (55.0, 7_040.0);
const SWEEP_S: f64 = 4.0;
/// Amplitudes of sweep and noise.
const SWEEP: f32 = 0.25;
const NOISE: f32 = 0.05;

/// A session that is about to play.
pub struct Trial {
    session: Session,
    /// Keeps what the session plays.
    remote: Remote,
    setup: Setup,
    /// Keys of a chord; none for what hears a sound.
    chord: Vec<u8>,
}

/// What was measured.
pub struct Measured {
    /// Time that each block took, seconds; one at least.
    pub blocks_s: Vec<f64>,
    /// From what is played to what is heard.
    pub latency_samples: usize,
}

impl Trial {
    /// Makes a model ready, in a size from 0 to 1.
    ///
    /// # Errors
    /// Why it cannot be played.
    pub fn new(model: &Arc<Model>, setup: Setup, size: f32) -> Result<Self, String> {
        let header = model.header();
        let mut chord = Vec::new();
        if header.kind == Kind::Instrument {
            let performance = header.performance.unwrap_or_default();
            let notes = performance.polyphony.clamp(1, MOST_NOTES);
            let (low, high) = (performance.pitch_low, performance.pitch_high);
            // Across all that it has learnt.
            let key = |note: u8| low + (high - low) * (f32::from(note) + 0.5) / f32::from(notes);
            chord = (0..notes).map(|note| key(note).round().clamp(0.0, 127.0) as u8).collect();
        }
        let source = if chord.is_empty() { Source::Sound } else { Source::Notes };
        let options = PipelineOptions { source, size, ..PipelineOptions::default() };
        let patch = Patch::new(model.clone(), options).map_err(|error| error.to_string())?;
        let remote = Remote::new();
        remote.set_driver(Driver::Inline);
        remote.load(Box::new(move || Ok(Arc::new(patch))), &[]);
        while remote.status() == Status::Loading {
            std::thread::sleep(Duration::from_millis(1));
        }
        let session = remote.activate(setup).map_err(|error| error.to_string())?;
        match remote.status() {
            Status::Failed(reason) => Err(reason),
            _ => Ok(Self { session, remote, setup, chord }),
        }
    }

    /// What plays it.
    pub fn source(&self) -> Source {
        if self.chord.is_empty() { Source::Sound } else { Source::Notes }
    }

    /// What it plays, for a person.
    pub fn what(&self) -> String {
        match self.chord.len() {
            0 => "a sweep with noise".into(),
            1 => "one held note".into(),
            notes => format!("{notes} held notes"),
        }
    }

    /// Plays, and measures so many seconds of sound.
    ///
    /// # Errors
    /// When somebody interrupts, or the model's code breaks down.
    pub fn run(mut self, seconds: f64) -> anyhow::Result<Measured> {
        interrupt::listen();
        let Setup { sample_rate, max_block } = self.setup;
        let count = |seconds: f64| ((seconds * f64::from(sample_rate) / max_block as f64).ceil() as usize).max(1);
        let (warm, measured) = (count(WARM_S), count(seconds));
        let mut sound = Sound::new(sample_rate);
        let (mut input, mut output) = (vec![0.0; max_block], vec![0.0; max_block]);
        let mut cues = Vec::with_capacity(2 * self.chord.len());
        let mut next_chord = 0.0;
        let mut blocks_s = Vec::with_capacity(measured);
        for block in 0..warm + measured {
            interrupt::check()?;
            cues.clear();
            if self.chord.is_empty() {
                input.fill_with(|| sound.next());
            } else if (block * max_block) as f64 / f64::from(sample_rate) >= next_chord {
                let strike = |on: bool| {
                    self.chord.iter().map(move |&key| match on {
                        true => EventKind::NoteOn { channel: 0, key, velocity: 0.8 },
                        false => EventKind::NoteOff { channel: 0, key, velocity: 0.5 },
                    })
                };
                let played = strike(false).chain(strike(true));
                cues.extend(played.map(|kind| BlockCue { offset: 0, action: Action::Play(kind) }));
                next_chord += CHORD_S;
            }
            let heard: &[&[f32]] = if self.chord.is_empty() { &[&input] } else { &[] };
            let begun = Instant::now();
            self.session.process(&cues, heard, &mut [&mut output]);
            let taken = begun.elapsed();
            if block >= warm {
                blocks_s.push(taken.as_secs_f64());
            }
        }
        if let Status::Failed(reason) = self.remote.status() {
            anyhow::bail!("{reason}");
        }
        Ok(Measured { blocks_s, latency_samples: self.session.latency_samples() })
    }
}

/// A sweep over seven octaves, up and up again, and noise; always the same.
struct Sound {
    sample_rate: f64,
    /// Periods.
    phase: f64,
    /// Seconds.
    time: f64,
    state: u32,
}

impl Sound {
    fn new(sample_rate: u32) -> Self {
        Self { sample_rate: sample_rate.into(), phase: 0.0, time: 0.0, state: 1 }
    }

    fn next(&mut self) -> f32 {
        let (low, high) = SWEEP_HZ;
        let frequency = low * (high / low).powf((self.time / SWEEP_S).fract());
        self.phase = (self.phase + frequency / self.sample_rate).fract();
        self.time += 1.0 / self.sample_rate;
        // The generator of Numerical Recipes; the upper bits are the random ones.
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (self.state >> 8) as f32 / (1 << 23) as f32 - 1.0;
        SWEEP * (std::f64::consts::TAU * self.phase).sin() as f32 + NOISE * noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_is_always_the_same_and_never_silent() {
        let take = || {
            let mut sound = Sound::new(48_000);
            (0..200_000).map(|_| sound.next()).collect::<Vec<f32>>()
        };
        let sound = take();
        assert_eq!(sound, take());
        assert!(sound.iter().all(|sample| sample.abs() <= SWEEP + NOISE));
        assert!(sound.chunks(2_000).all(|piece| piece.iter().any(|sample| sample.abs() > 0.5 * SWEEP)));
    }
}
