//! Output of the original model on calibration sound, to compare compressed models with.

use std::sync::Arc;

use anyhow::Context;
use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::Model;
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_kernels::FlushToZero;

use crate::compression::variants;
use crate::data::Features;
use crate::evaluate::replay;
use crate::tasks::capture::pair::Pair;

/// Length of a test note, seconds.
const NOTE_SECONDS: f64 = 0.5;
/// Number of test notes.
const NOTES: u32 = 24;
/// Samples per call of the pipeline.
const BLOCK: usize = 256;
/// Length of a piece of an excerpt, seconds.
const PIECE_S: f64 = 1.0;
/// Fade at both ends of a piece, seconds.
const FADE_S: f64 = 0.005;

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

impl CalibrationSound {
    /// Returns pieces of the inputs of an effect, spread evenly and joined; `None` for instruments,
    /// and where that would be more than half of the sound.
    pub(super) fn excerpt(&self, sample_rate: u32, seconds: f64) -> Option<Self> {
        let whole: Vec<f32> = match self {
            Self::Pair(pair) => pair.dry.clone(),
            Self::Sounds(sounds) => sounds.concat(),
            Self::Recordings(_) | Self::Notes => return None,
        };
        let samples = |seconds: f64| (seconds * f64::from(sample_rate)) as usize;
        if whole.len() < 2 * samples(seconds) {
            return None;
        }
        let (length, fade) = (samples(PIECE_S).max(1), samples(FADE_S));
        let count = samples(seconds) / length;
        let piece = |index: usize| {
            // From the middle of each of `count` parts.
            let start = (2 * index + 1) * whole.len() / (2 * count) - length / 2;
            let level =
                move |at: usize| (at.min(length - 1 - at) as f32 / fade.max(1) as f32).min(1.0);
            whole[start..start + length]
                .iter()
                .enumerate()
                .map(move |(at, sample)| sample * level(at))
        };
        Some(Self::Sounds(vec![(0..count).flat_map(piece).collect()]))
    }
}

/// Original model's output on calibration sound.
pub struct Reference {
    pub(super) sound: Arc<CalibrationSound>,
    /// Output of the original.
    pub(super) original: Vec<Vec<f32>>,
    /// References of the model's variants.
    variants: Vec<Self>,
}

impl Reference {
    /// Renders the original.
    ///
    /// # Errors
    /// Returns an error if it cannot be played on this sound.
    pub(super) fn new(model: &Model, sound: Arc<CalibrationSound>) -> anyhow::Result<Self> {
        let original = render(model, &sound)?;
        let variants = variants(model)?
            .into_iter()
            .map(|variant| Self::new(&variant, sound.clone()));
        Ok(Self {
            variants: variants.collect::<Result<_, _>>()?,
            original,
            sound,
        })
    }

    /// Returns the references of the model's variants with the variants of another model.
    ///
    /// # Errors
    /// Returns an error if a variant is invalid.
    pub(super) fn variants(
        &self,
        model: &Model,
    ) -> anyhow::Result<impl Iterator<Item = (&Self, Model)>> {
        Ok(self.variants.iter().zip(variants(model)?))
    }

    /// Returns the signal-to-noise ratio of a model's output against the original's, dB; infinite
    /// if they are equal.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn snr_db(&self, model: &Model) -> anyhow::Result<f64> {
        let sounds = render(model, &self.sound)?;
        let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|x| x * x).sum::<f64>();
        let pairs = || sounds.iter().flatten().zip(self.original.iter().flatten());
        let signal = power(&mut pairs().map(|(_, y)| f64::from(*y)));
        let noise = power(&mut pairs().map(|(x, y)| f64::from(*x) - f64::from(*y)));
        let mut lowest = 10.0 * (signal / noise).log10();
        for (reference, variant) in self.variants(model)? {
            lowest = lowest.min(reference.snr_db(&variant)?);
        }
        Ok(lowest)
    }
}

/// Renders the calibration sound through a model.
pub(super) fn render(model: &Model, sound: &CalibrationSound) -> anyhow::Result<Vec<Vec<f32>>> {
    let _flush = FlushToZero::on();
    match sound {
        CalibrationSound::Recordings(files) => {
            files.iter().map(|file| replay(model, file)).collect()
        }
        CalibrationSound::Pair(pair) => Ok(vec![process(model, &pair.dry)?]),
        CalibrationSound::Sounds(sounds) => {
            sounds.iter().map(|sound| process(model, sound)).collect()
        }
        CalibrationSound::Notes => Ok(vec![notes(model)?]),
    }
}

/// Returns the variants of a model as models.
fn variants(model: &Model) -> anyhow::Result<Vec<Model>> {
    model
        .header()
        .variants
        .iter()
        .map(|variant| variants::extract(model, variant))
        .collect()
}

fn pipeline(model: &Model, source: ControlSource) -> anyhow::Result<Pipeline> {
    let sample_rate = model.header().sample_rate;
    Pipeline::new(
        model,
        &PipelineOptions {
            sample_rate,
            source,
            ..PipelineOptions::default()
        },
    )
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
            EventKind::NoteOn {
                channel,
                key,
                velocity: 0.2 + 0.8 * share(5),
            },
            EventKind::NoteOff {
                channel,
                key,
                velocity: 0.5,
            },
        ] {
            let at = if matches!(kind, EventKind::NoteOff { .. }) {
                at + (4 * step / 5) as u64
            } else {
                at
            };
            pipeline
                .handle(Event { at, kind })
                .context("too many notes")?;
        }
        out.chunks_mut(BLOCK)
            .for_each(|block| pipeline.process(&[], block));
    }
    Ok(out)
}
