//! What is lost by compressing a model, as a share of what it gets wrong anyway.
//!
//! An instrument is held against recordings that it replays, by the spectral distance of [`crate::evaluate`]; a capture against
//! a recording of its device, by the error-to-signal ratio of [`crate::capture::measure`]. Where there are none, the compressed
//! model is held against the original, and its distance from that is taken as a share of the original's own error as its card
//! tells it. For the error-to-signal ratio that is the same, since errors that know nothing of one another add up; spectral
//! distances add up to less, so there the loss is overestimated.
//!
//! A model that holds smaller sizes of itself is measured in all of them, each against its own original: what counts is the size
//! that loses most.

use std::sync::Arc;

use anyhow::Context;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Measure, Model};
use ondes_engine::pipeline::{Pipeline, PipelineOptions, ControlSource};
use ondes_kernels::FlushToZero;
use tch::{Device, Tensor};

use crate::capture::measure::{ESR, compare, esr};
use crate::capture::pair::Pair;
use crate::dataset::Features;
use crate::evaluate::{SPECTRAL_DISTANCE, replay};
use crate::loss::SpectralDistance;
use crate::variants;

/// An error that is hard to hear, for captures whose card tells none.
const USUAL_ESR: f64 = 0.01;
/// That of a good instrument, for those whose card tells none.
const USUAL_DISTANCE: f64 = 0.3;
/// Notes that an instrument is played with when there is nothing to replay, seconds each.
const NOTE_SECONDS: f64 = 0.5;
/// How many of them.
const NOTES: u32 = 24;
/// Samples at a time.
const BLOCK: usize = 256;

/// What models are measured on.
pub enum Material {
    /// Recordings for an instrument to replay.
    Recordings(Vec<Features>),
    /// What was played into a device, and what came out of it.
    Pair(Box<Pair>),
    /// Sounds to go through the model, at its rate.
    Sounds(Vec<Vec<f32>>),
    /// Notes all over an instrument's range.
    Notes,
}

/// A model, and the material that others are held against it with.
pub struct Yardstick {
    material: Arc<Material>,
    distance: SpectralDistance,
    /// What the original makes of the material.
    original: Vec<Vec<f32>>,
    /// The original's own error.
    error: f64,
    /// Whether it is a spectral distance.
    spectral: bool,
    /// One for each of the model's smaller sizes.
    smaller: Vec<Self>,
}

impl Yardstick {
    /// Plays the original.
    ///
    /// # Errors
    /// When it cannot be played so.
    pub fn new(model: &Model, material: impl Into<Arc<Material>>) -> anyhow::Result<Self> {
        let material = material.into();
        let smaller = sizes(model)?.iter().map(|size| Self::new(size, material.clone())).collect::<Result<_, _>>()?;
        let spectral = model.header().kind == Kind::Instrument;
        let distance = SpectralDistance::new(Device::Cpu);
        let mut yardstick = Self { material, distance, original: Vec::new(), error: 1.0, spectral, smaller };
        yardstick.original = yardstick.sounds(model)?;
        let (name, usual) = if spectral { (SPECTRAL_DISTANCE, USUAL_DISTANCE) } else { (ESR, USUAL_ESR) };
        let known = model.header().card.quality.iter().find(|measure| measure.name == name);
        let known = known.map(|measure| measure.value).filter(|&error| error > 0.0);
        yardstick.error = match &*yardstick.material {
            Material::Recordings(files) => yardstick.distance_from(files, &yardstick.original),
            Material::Pair(pair) => compare(model, pair)?.held_out.value.max(1e-6),
            Material::Sounds(_) | Material::Notes => known.unwrap_or(usual),
        };
        Ok(yardstick)
    }

    /// What is measured, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let against = match &*self.material {
            Material::Recordings(_) => "to the recordings, that of the original",
            Material::Pair(_) => "to the device, that of the original",
            Material::Sounds(_) | Material::Notes => "to the original, whose own is",
        };
        format!("{} {against} {:.5}", if self.spectral { SPECTRAL_DISTANCE } else { ESR }, self.error)
    }

    /// How much larger the error is than the original's, as a share of that: 0.05 is 5 % more.
    ///
    /// # Errors
    /// When the model cannot be played.
    pub fn loss(&self, model: &Model) -> anyhow::Result<f64> {
        let mut most = self.loss_of_whole(model)?;
        for (yardstick, size) in self.smaller.iter().zip(sizes(model)?) {
            let loss = yardstick.loss(&size)?;
            // Not a number is too much, and stays.
            most = if loss > most || loss.is_nan() { loss } else { most };
        }
        Ok(most)
    }

    fn loss_of_whole(&self, model: &Model) -> anyhow::Result<f64> {
        match &*self.material {
            Material::Recordings(files) => Ok(self.distance_from(files, &self.sounds(model)?) / self.error - 1.0),
            Material::Pair(pair) => Ok(compare(model, pair)?.held_out.value / self.error - 1.0),
            Material::Sounds(_) | Material::Notes => {
                let sounds = self.sounds(model)?;
                let pairs = sounds.iter().zip(&self.original);
                let samples: f64 = sounds.iter().map(|sound| sound.len() as f64).sum();
                let between = |sound: &[f32], original: &[f32]| {
                    if self.spectral { self.between(sound, original) } else { esr(original, sound) }
                };
                let sum: f64 = pairs.map(|(sound, original)| between(sound, original) * sound.len() as f64).sum();
                Ok(sum / samples.max(1.0) / self.error)
            }
        }
    }

    /// How far what a model plays is above its difference from what the original plays, dB; infinite where there is none.
    ///
    /// # Errors
    /// When the model cannot be played.
    pub fn snr_db(&self, model: &Model) -> anyhow::Result<f64> {
        let sounds = self.sounds(model)?;
        let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|x| x * x).sum::<f64>();
        let pairs = || sounds.iter().flatten().zip(self.original.iter().flatten());
        let signal = power(&mut pairs().map(|(_, y)| f64::from(*y)));
        let noise = power(&mut pairs().map(|(x, y)| f64::from(*x) - f64::from(*y)));
        let mut least = 10.0 * (signal / noise).log10();
        for (yardstick, size) in self.smaller.iter().zip(sizes(model)?) {
            least = least.min(yardstick.snr_db(&size)?);
        }
        Ok(least)
    }

    /// The loss as a card tells it.
    #[must_use]
    pub fn measure(loss: f64) -> Measure {
        let value = (1e4 * loss).round() / 1e2;
        Measure { name: "loss by compression".into(), unit: "%".into(), value, baseline: None }
    }

    fn sounds(&self, model: &Model) -> anyhow::Result<Vec<Vec<f32>>> {
        let _flush = FlushToZero::on();
        match &*self.material {
            Material::Recordings(files) => files.iter().map(|file| replay(model, file)).collect(),
            Material::Pair(pair) => Ok(vec![through(model, &pair.dry)?]),
            Material::Sounds(sounds) => sounds.iter().map(|sound| through(model, sound)).collect(),
            Material::Notes => Ok(vec![notes(model)?]),
        }
    }

    fn between(&self, sound: &[f32], target: &[f32]) -> f64 {
        let row = |samples: &[f32]| Tensor::from_slice(samples).view([1, -1]);
        tch::no_grad(|| self.distance.between(&row(sound), &row(target)).double_value(&[]))
    }

    /// The mean over files, weighted by their lengths.
    fn distance_from(&self, files: &[Features], sounds: &[Vec<f32>]) -> f64 {
        let pairs = files.iter().zip(sounds);
        let sum: f64 = pairs.map(|(file, sound)| self.between(sound, file.audio()) * sound.len() as f64).sum();
        sum / sounds.iter().map(|sound| sound.len() as f64).sum::<f64>().max(1.0)
    }
}

/// The smaller sizes of a model, each as a model of its own.
fn sizes(model: &Model) -> anyhow::Result<Vec<Model>> {
    model.header().variants.iter().map(|variant| variants::take_out(model, variant)).collect()
}

fn pipeline(model: &Model, source: ControlSource) -> anyhow::Result<Pipeline> {
    let sample_rate = model.header().sample_rate;
    Pipeline::new(model, &PipelineOptions { sample_rate, source, ..PipelineOptions::default() })
        .context("it cannot be played")
}

/// What a model makes of a sound at its own rate.
fn through(model: &Model, sound: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut pipeline = pipeline(model, ControlSource::AudioInput)?;
    let mut out = vec![0.0; sound.len()];
    for (x, y) in sound.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        pipeline.process(x, y);
    }
    Ok(out)
}

/// An instrument all over its range, soft and loud.
fn notes(model: &Model) -> anyhow::Result<Vec<f32>> {
    let mut pipeline = pipeline(model, ControlSource::Notes)?;
    let performance = model.header().performance.unwrap_or_default();
    let step = (NOTE_SECONDS * f64::from(model.header().sample_rate)) as usize;
    let mut out = vec![0.0; step * NOTES as usize];
    let range = performance.pitch_high - performance.pitch_low;
    for (note, out) in out.chunks_mut(step).enumerate() {
        // Leaps through the range, each pitch and each loudness once.
        let share = |factor: u32| ((note as u32 * factor) % NOTES) as f32 / (NOTES - 1) as f32;
        let (channel, key) = (0, (performance.pitch_low + range * share(7)).round() as u8);
        let at = (note * step) as u64;
        for kind in [
            EventKind::NoteOn { channel, key, velocity: 0.2 + 0.8 * share(5) },
            EventKind::NoteOff { channel, key, velocity: 0.5 },
        ] {
            let at = if matches!(kind, EventKind::NoteOff { .. }) { at + (4 * step / 5) as u64 } else { at };
            pipeline.handle(Event { at, kind }).context("too many notes")?;
        }
        out.chunks_mut(BLOCK).for_each(|block| pipeline.process(&[], block));
    }
    Ok(out)
}
