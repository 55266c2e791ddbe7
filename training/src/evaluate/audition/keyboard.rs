//! Plays notes of an instrument as a musician would.

use std::collections::BTreeMap;

use ondes_engine::instrument::{Event, EventKind, NATURAL_VELOCITY, Performance};
use ondes_engine::model::Model;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

use super::note::Note;
use crate::data::playing::settled_db;
use crate::data::{FeatureRate, Features};

/// Plays notes of an instrument.
#[derive(Clone, Copy)]
pub(super) struct Keyboard<'a> {
    pub model: &'a Model,
    pub performance: Performance,
    pub rate: FeatureRate,
    /// The recordings have several dynamics.
    pub has_dynamics: bool,
}

impl<'a> Keyboard<'a> {
    /// Prepares a model; `has_dynamics` says whether its recordings have several.
    pub fn new(model: &'a Model, rate: FeatureRate, has_dynamics: bool) -> Self {
        Self {
            model,
            performance: model.header().performance.unwrap_or_default(),
            rate,
            has_dynamics,
        }
    }

    /// Plays the key of a pitch in semitones for a number of frames, and then for some more, with
    /// knobs at positions.
    pub fn play(
        &self,
        knobs: &BTreeMap<String, f32>,
        pitch: f32,
        velocity: f32,
        held: usize,
        after: usize,
    ) -> anyhow::Result<Vec<f32>> {
        let key = key(pitch);
        let options = PipelineOptions {
            sample_rate: self.rate.sample_rate,
            seed: u64::from(key),
            transpose: pitch - f32::from(key),
            ..Default::default()
        };
        let mut pipeline = Pipeline::new(self.model, &options)?;
        for (name, position) in knobs {
            pipeline.set_control(name, *position)?;
        }
        let mut play = |at: usize, kind| {
            pipeline.handle(Event {
                at: at as u64,
                kind,
            })
        };
        let (channel, end) = (0, held * self.rate.hop);
        play(
            0,
            EventKind::NoteOn {
                channel,
                key,
                velocity,
            },
        )?;
        play(
            end,
            EventKind::NoteOff {
                channel,
                key,
                velocity,
            },
        )?;
        let latency = pipeline.latency_samples();
        let mut sound = vec![0.0; latency + (held + after) * self.rate.hop];
        pipeline.process(&[], &mut sound);
        sound.drain(..latency);
        Ok(sound)
    }

    /// Returns the velocity of a recorded note: that of its level, or the natural one if all are alike.
    pub fn velocity_of(&self, recorded: &Note) -> f32 {
        if self.has_dynamics {
            self.velocity(recorded.measures.level_db)
        } else {
            NATURAL_VELOCITY
        }
    }

    /// Plays a recorded note.
    pub fn replay(&self, recorded: &Note) -> anyhow::Result<Option<Note>> {
        let Note {
            features,
            measures: note,
        } = recorded;
        let (onset, end) = note.held;
        let held = end - onset;
        let sound = self.play(
            &features.knobs,
            note.pitch,
            self.velocity_of(recorded),
            held,
            features.frames() - end,
        )?;
        Ok(Note::new(Features::analyse(sound, self.rate)))
    }

    /// Returns the velocity whose notes are sustained at a level, dB.
    fn velocity(&self, level_db: f32) -> f32 {
        let nearest = (1..=127_u8).map(|velocity| f32::from(velocity) / 127.0);
        let error = |velocity: f32| {
            let settled_db = settled_db(&self.performance, velocity);
            (self.performance.peak_db(velocity) + settled_db - level_db).abs()
        };
        let best = nearest.min_by(|a, b| error(*a).total_cmp(&error(*b)));
        best.unwrap_or(NATURAL_VELOCITY)
    }
}

/// Returns the key of a pitch in semitones.
pub(super) fn key(pitch: f32) -> u8 {
    pitch.round().clamp(0.0, 127.0) as u8
}
