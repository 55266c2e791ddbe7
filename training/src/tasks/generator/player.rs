//! Playback of a generator for measurements.

use ondes_engine::dsp::onsets::onsets;
use ondes_engine::model::Model;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};

use super::conditions::{Condition, PathInfo, styles};
use super::inspect;
use crate::data::Features;
use crate::tasks::control::control;

/// Plays a piece as long as a recording, with the knobs at the values measured in it.
///
/// # Errors
/// Returns an error if the model is no generator.
pub(crate) fn play_like(model: &Model, file: &Features, name: &str) -> anyhow::Result<Vec<f32>> {
    let player = Player::new(model)?;
    let named = PathInfo::new(name, &styles(std::iter::once(name)));
    player.play(file.seconds(), &player.measured_settings(file, named), 0)
}

/// Plays a generator.
pub(super) struct Player<'a> {
    pub model: &'a Model,
    pub conditions: Vec<Condition>,
    /// Hz.
    pub sample_rate: f64,
}

impl<'a> Player<'a> {
    pub fn new(model: &'a Model) -> anyhow::Result<Self> {
        let conditions = inspect::conditions(model)?;
        Ok(Self {
            model,
            conditions,
            sample_rate: f64::from(model.header().sample_rate),
        })
    }

    /// Returns the values of the knobs that were measured in a recording, clamped to their ranges.
    pub fn measured_settings(&self, file: &Features, named: PathInfo) -> Vec<(&'static str, f32)> {
        let set = |condition: &Condition| {
            let value = match condition {
                Condition::Bars => named.tempo?,
                _ => {
                    let measured = condition.measure(file, named, 0);
                    measured.iter().sum::<f32>() / measured.len() as f32
                }
            };
            let knob = control(self.model, condition.control())?;
            Some((condition.control(), knob.clamp(value)))
        };
        self.conditions.iter().filter_map(set).collect()
    }

    /// Plays a piece.
    pub fn play(
        &self,
        seconds: f64,
        settings: &[(&str, f32)],
        seed: u64,
    ) -> anyhow::Result<Vec<f32>> {
        play(
            self.model,
            &vec![0.0; (seconds * self.sample_rate) as usize],
            settings,
            seed,
        )
    }
}

/// Plays a model with an input; the output is aligned with it and has its length.
pub(super) fn play(
    model: &Model,
    input: &[f32],
    settings: &[(&str, f32)],
    seed: u64,
) -> anyhow::Result<Vec<f32>> {
    let sample_rate = model.header().sample_rate;
    let mut pipeline = Pipeline::new(
        model,
        &PipelineOptions {
            sample_rate,
            seed,
            ..Default::default()
        },
    )?;
    for (control, value) in settings {
        pipeline.set_control(control, *value)?;
    }
    let latency = pipeline.latency_samples();
    let input: Vec<f32> = input
        .iter()
        .copied()
        .chain(std::iter::repeat_n(0.0, latency))
        .collect();
    let mut sound = vec![0.0; input.len()];
    pipeline.process(&input, &mut sound);
    Ok(sound.split_off(latency))
}

/// Returns the times at which sounds begin, seconds.
pub(super) fn onset_times(sound: &[f32], sample_rate: f64) -> Vec<f64> {
    onsets(sound, sample_rate)
        .into_iter()
        .map(|sample| sample as f64 / sample_rate)
        .collect()
}
