//! A model that plays in a callback of ours, with something to do all the time, and how long each block takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::executor::Backend;
use crate::instrument::EventKind;
use crate::model::{Kind, Model};
use crate::pipeline::{Action, PipelineOptions, Source};
use crate::realtime::{BlockCue, Driver, Patch, Remote, Session, Setup, Status};

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
    sound: Sound,
    /// Blocks that were played.
    played: usize,
    /// When the next chord comes, seconds.
    next_chord: f64,
    /// `[frame]`
    input: Vec<f32>,
    output: Vec<f32>,
    cues: Vec<BlockCue>,
}

impl Trial {
    /// Makes a model ready, with those options but for what drives it.
    ///
    /// # Errors
    /// Why it cannot be played.
    pub fn new(model: &Arc<Model>, setup: Setup, options: &PipelineOptions) -> Result<Self, String> {
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
        let options = PipelineOptions { source, ..*options };
        let patch = Patch::new(model.clone(), options).map_err(|error| error.to_string())?;
        let remote = Remote::new();
        // What may wait has no place in a callback, and is measured as if it had.
        let on_torch = model.program().is_some() || options.wish.executor == Backend::Torch;
        remote.set_driver(if on_torch { Driver::Offline } else { Driver::Inline });
        remote.load(Box::new(move || Ok(Arc::new(patch))), &[]);
        while remote.status() == Status::Loading {
            std::thread::sleep(Duration::from_millis(1));
        }
        let session = remote.activate(setup).map_err(|error| error.to_string())?;
        if let Status::Failed(reason) = remote.status() {
            return Err(reason);
        }
        let Setup { sample_rate, max_block } = setup;
        Ok(Self {
            session,
            remote,
            setup,
            sound: Sound::new(sample_rate),
            played: 0,
            next_chord: 0.0,
            input: vec![0.0; max_block],
            output: vec![0.0; max_block],
            cues: Vec::with_capacity(2 * chord.len()),
            chord,
        })
    }

    /// What plays it.
    #[must_use]
    pub fn source(&self) -> Source {
        if self.chord.is_empty() { Source::Sound } else { Source::Notes }
    }

    /// What it plays, for a person.
    #[must_use]
    pub fn what(&self) -> String {
        match self.chord.len() {
            0 => "a sweep with noise".into(),
            1 => "one held note".into(),
            notes => format!("{notes} held notes"),
        }
    }

    /// Blocks that last so many seconds together, one at least.
    #[must_use]
    pub fn blocks(&self, seconds: f64) -> usize {
        let Setup { sample_rate, max_block } = self.setup;
        ((seconds * f64::from(sample_rate) / max_block as f64).ceil() as usize).max(1)
    }

    /// From what is played to what is heard.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.session.latency_samples()
    }

    /// Plays a block; gives the time that it took.
    pub fn block(&mut self) -> Duration {
        let Setup { sample_rate, max_block } = self.setup;
        self.cues.clear();
        if self.chord.is_empty() {
            self.input.fill_with(|| self.sound.next());
        } else if (self.played * max_block) as f64 / f64::from(sample_rate) >= self.next_chord {
            let strike = |on: bool| {
                self.chord.iter().map(move |&key| match on {
                    true => EventKind::NoteOn { channel: 0, key, velocity: 0.8 },
                    false => EventKind::NoteOff { channel: 0, key, velocity: 0.5 },
                })
            };
            let played = strike(false).chain(strike(true));
            self.cues.extend(played.map(|kind| BlockCue { offset: 0, action: Action::Play(kind) }));
            self.next_chord += CHORD_S;
        }
        self.played += 1;
        let heard: &[&[f32]] = if self.chord.is_empty() { &[&self.input] } else { &[] };
        let begun = Instant::now();
        self.session.process(&self.cues, heard, &mut [&mut self.output]);
        begun.elapsed()
    }

    /// What there is to say of the model, in one line: that its device failed and another plays it, for one.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        self.remote.notice()
    }

    /// Makes sure that all that was played was played.
    ///
    /// # Errors
    /// Why the model broke down.
    pub fn check(&self) -> Result<(), String> {
        match self.remote.status() {
            Status::Failed(reason) => Err(reason),
            _ => Ok(()),
        }
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
