//! Loss of quality by compression, relative to the original's own error.
//!
//! Instruments are compared with recordings by the spectral distance of [`crate::evaluate`], captures with a recording
//! of the device by the error-to-signal ratio of [`crate::capture::measure`]. Without recordings, the compressed model
//! is compared with the original, relative to the error on the original's card. For the error-to-signal ratio both are
//! equivalent, since uncorrelated errors add up; spectral distances add up to less, so the loss is overestimated.
//!
//! Each variant of a model is measured against the original variant; the largest loss counts.

use std::sync::Arc;

use anyhow::Context;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Measure, Model};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_kernels::FlushToZero;
use tch::{Device, Tensor};

use crate::capture::measure::{ESR, compare, esr};
use crate::capture::pair::Pair;
use crate::dataset::Features;
use crate::evaluate::{SPECTRAL_DISTANCE, replay};
use crate::loss::SpectralDistance;
use crate::variants;

/// Error-to-signal ratio assumed for captures whose card has none; hard to hear.
const DEFAULT_ESR: f64 = 0.01;
/// Spectral distance assumed for instruments whose card has none; that of a good one.
const DEFAULT_DISTANCE: f64 = 0.3;
/// Length of a test note, seconds.
const NOTE_SECONDS: f64 = 0.5;
/// Number of test notes.
const NOTES: u32 = 24;
/// Samples per call of the pipeline.
const BLOCK: usize = 256;

/// Sound that the loss is measured on.
pub enum CalibrationSound {
    /// Recordings that an instrument resynthesises.
    Recordings(Vec<Features>),
    /// Input and output of a captured device.
    Pair(Box<Pair>),
    /// Inputs of an effect, at the model's sample rate.
    Sounds(Vec<Vec<f32>>),
    /// Notes over the whole range of an instrument.
    Notes,
}

/// Original model and the sound to measure the loss on.
pub struct CompressionLoss {
    sound: Arc<CalibrationSound>,
    distance: SpectralDistance,
    /// Output of the original.
    original: Vec<Vec<f32>>,
    /// Error of the original.
    error: f64,
    /// The error is a spectral distance rather than an error-to-signal ratio.
    spectral: bool,
    /// Losses of the model's variants.
    variants: Vec<Self>,
}

impl CompressionLoss {
    /// Renders the original.
    ///
    /// # Errors
    /// Returns an error if it cannot be played on this sound.
    pub fn new(model: &Model, sound: impl Into<Arc<CalibrationSound>>) -> anyhow::Result<Self> {
        let sound = sound.into();
        let variants =
            variants(model)?.iter().map(|variant| Self::new(variant, sound.clone())).collect::<Result<_, _>>()?;
        let spectral = model.header().kind == Kind::Instrument;
        let distance = SpectralDistance::new(Device::Cpu);
        let mut loss = Self { sound, distance, original: Vec::new(), error: 1.0, spectral, variants };
        loss.original = loss.sounds(model)?;
        let (name, default) = if spectral { (SPECTRAL_DISTANCE, DEFAULT_DISTANCE) } else { (ESR, DEFAULT_ESR) };
        let card_error = model.header().card.quality.iter().find(|measure| measure.name == name);
        let card_error = card_error.map(|measure| measure.value).filter(|&error| error > 0.0);
        loss.error = match &*loss.sound {
            CalibrationSound::Recordings(files) => loss.distance_from(files, &loss.original),
            CalibrationSound::Pair(pair) => compare(model, pair)?.held_out.value.max(1e-6),
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => card_error.unwrap_or(default),
        };
        Ok(loss)
    }

    /// Describes the measure in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let against = match &*self.sound {
            CalibrationSound::Recordings(_) => "to the recordings, that of the original",
            CalibrationSound::Pair(_) => "to the device, that of the original",
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => "to the original, whose error is",
        };
        format!("{} {against} {:.5}", if self.spectral { SPECTRAL_DISTANCE } else { ESR }, self.error)
    }

    /// Returns the increase of the error relative to the original's: 0.05 is 5 % more.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn loss(&self, model: &Model) -> anyhow::Result<f64> {
        let mut largest = self.base_loss(model)?;
        for (variant_loss, variant) in self.variants.iter().zip(variants(model)?) {
            let loss = variant_loss.loss(&variant)?;
            // NaN counts as the largest loss.
            largest = if loss > largest || loss.is_nan() { loss } else { largest };
        }
        Ok(largest)
    }

    fn base_loss(&self, model: &Model) -> anyhow::Result<f64> {
        match &*self.sound {
            CalibrationSound::Recordings(files) => {
                Ok(self.distance_from(files, &self.sounds(model)?) / self.error - 1.0)
            }
            CalibrationSound::Pair(pair) => Ok(compare(model, pair)?.held_out.value / self.error - 1.0),
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => {
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

    /// Returns the signal-to-noise ratio of a model's output against the original's, dB; infinite if they are equal.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn snr_db(&self, model: &Model) -> anyhow::Result<f64> {
        let sounds = self.sounds(model)?;
        let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|x| x * x).sum::<f64>();
        let pairs = || sounds.iter().flatten().zip(self.original.iter().flatten());
        let signal = power(&mut pairs().map(|(_, y)| f64::from(*y)));
        let noise = power(&mut pairs().map(|(x, y)| f64::from(*x) - f64::from(*y)));
        let mut lowest = 10.0 * (signal / noise).log10();
        for (variant_loss, variant) in self.variants.iter().zip(variants(model)?) {
            lowest = lowest.min(variant_loss.snr_db(&variant)?);
        }
        Ok(lowest)
    }

    /// Returns the loss as a measure for the card.
    #[must_use]
    pub fn measure(loss: f64) -> Measure {
        let value = (1e4 * loss).round() / 1e2;
        Measure { name: "loss by compression".into(), unit: "%".into(), value, baseline: None }
    }

    fn sounds(&self, model: &Model) -> anyhow::Result<Vec<Vec<f32>>> {
        let _flush = FlushToZero::on();
        match &*self.sound {
            CalibrationSound::Recordings(files) => files.iter().map(|file| replay(model, file)).collect(),
            CalibrationSound::Pair(pair) => Ok(vec![process(model, &pair.dry)?]),
            CalibrationSound::Sounds(sounds) => sounds.iter().map(|sound| process(model, sound)).collect(),
            CalibrationSound::Notes => Ok(vec![notes(model)?]),
        }
    }

    fn between(&self, sound: &[f32], target: &[f32]) -> f64 {
        let row = |samples: &[f32]| Tensor::from_slice(samples).view([1, -1]);
        tch::no_grad(|| self.distance.between(&row(sound), &row(target)).double_value(&[]))
    }

    /// Returns the mean spectral distance over files, weighted by length.
    fn distance_from(&self, files: &[Features], sounds: &[Vec<f32>]) -> f64 {
        let pairs = files.iter().zip(sounds);
        let sum: f64 = pairs.map(|(file, sound)| self.between(sound, file.audio()) * sound.len() as f64).sum();
        sum / sounds.iter().map(|sound| sound.len() as f64).sum::<f64>().max(1.0)
    }
}

/// Returns the variants of a model as models.
fn variants(model: &Model) -> anyhow::Result<Vec<Model>> {
    model.header().variants.iter().map(|variant| variants::extract(model, variant)).collect()
}

fn pipeline(model: &Model, source: ControlSource) -> anyhow::Result<Pipeline> {
    let sample_rate = model.header().sample_rate;
    Pipeline::new(model, &PipelineOptions { sample_rate, source, ..PipelineOptions::default() })
        .context("it cannot be played")
}

/// Renders a sound through a model, at the model's sample rate.
fn process(model: &Model, sound: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut pipeline = pipeline(model, ControlSource::AudioInput)?;
    let mut out = vec![0.0; sound.len()];
    for (x, y) in sound.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        pipeline.process(x, y);
    }
    Ok(out)
}

/// Renders notes over the whole range of an instrument, soft and loud.
fn notes(model: &Model) -> anyhow::Result<Vec<f32>> {
    let mut pipeline = pipeline(model, ControlSource::Notes)?;
    let performance = model.header().performance.unwrap_or_default();
    let step = (NOTE_SECONDS * f64::from(model.header().sample_rate)) as usize;
    let mut out = vec![0.0; step * NOTES as usize];
    let range = performance.pitch_high - performance.pitch_low;
    for (note, out) in out.chunks_mut(step).enumerate() {
        // Leaps through the range that use each pitch and each velocity once.
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
