//! Loss of quality by compression, relative to the original's own error.
//!
//! Instruments are compared with recordings by the spectral distance of [`crate::evaluate`],
//! captures with a recording of the device by the error-to-signal ratio of
//! [`crate::tasks::capture::measure`]. Without recordings, the compressed model is compared with
//! the original, relative to the error on the original's card. For the error-to-signal ratio both
//! are equivalent, since uncorrelated errors add up; spectral distances add up to less, so the loss
//! is overestimated.
//!
//! Each variant of a model is measured against the original variant; the largest loss counts.

use std::sync::Arc;

use ondes_engine::model::{Kind, Measure, Model};
use tch::{Device, Tensor};

use super::reference::{CalibrationSound, Reference, render};
use crate::data::Features;
use crate::evaluate::SPECTRAL_DISTANCE;
use crate::loss::SpectralDistance;
use crate::tasks::capture::measure::{ESR, compare, esr};

/// Error-to-signal ratio assumed for captures whose card has none; hard to hear.
const DEFAULT_ESR: f64 = 0.01;
/// Spectral distance assumed for instruments whose card has none; that of a good one.
const DEFAULT_DISTANCE: f64 = 0.3;
/// Length of the excerpt that layers are compared on first, seconds.
const EXCERPT_S: f64 = 8.0;

/// Original model and the sound to measure the loss on.
pub struct CompressionLoss {
    reference: Reference,
    /// Original on an excerpt; `None` where the sound is short.
    excerpt: Option<Reference>,
    distance: SpectralDistance,
    /// Error of the original.
    error: f64,
    /// The error is a spectral distance rather than an error-to-signal ratio.
    spectral: bool,
    /// Errors of the model's variants.
    variant_errors: Vec<f64>,
}

impl CompressionLoss {
    /// Renders the original.
    ///
    /// # Errors
    /// Returns an error if it cannot be played on this sound.
    pub fn new(model: &Model, sound: impl Into<Arc<CalibrationSound>>) -> anyhow::Result<Self> {
        let sound = sound.into();
        let excerpt = sound
            .excerpt(model.header().sample_rate, EXCERPT_S)
            .map(Arc::new);
        let reference = Reference::new(model, sound)?;
        let mut loss = Self {
            excerpt: excerpt
                .map(|excerpt| Reference::new(model, excerpt))
                .transpose()?,
            distance: SpectralDistance::new(Device::Cpu),
            error: 1.0,
            spectral: model.header().kind == Kind::Instrument,
            variant_errors: Vec::new(),
            reference,
        };
        loss.error = loss.error_of(model, &loss.reference)?;
        let variants = loss.reference.variants(model)?;
        loss.variant_errors = variants
            .map(|(reference, variant)| loss.error_of(&variant, reference))
            .collect::<Result<_, _>>()?;
        Ok(loss)
    }

    /// Returns the error of an original.
    fn error_of(&self, model: &Model, reference: &Reference) -> anyhow::Result<f64> {
        let (name, default) = if self.spectral {
            (SPECTRAL_DISTANCE, DEFAULT_DISTANCE)
        } else {
            (ESR, DEFAULT_ESR)
        };
        let card_error = model
            .header()
            .card
            .quality
            .iter()
            .find(|measure| measure.name == name);
        let card_error = card_error
            .map(|measure| measure.value)
            .filter(|&error| error > 0.0);
        Ok(match &*reference.sound {
            CalibrationSound::Recordings(files) => self.distance_from(files, &reference.original),
            CalibrationSound::Pair(pair) => compare(model, pair)?.held_out.value.max(1e-6),
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => card_error.unwrap_or(default),
        })
    }

    /// Returns the original's output on the whole sound.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Measures all layers on the whole sound.
    #[must_use]
    pub fn without_excerpt(self) -> Self {
        Self {
            excerpt: None,
            ..self
        }
    }

    /// Returns the original's output on an excerpt; `None` where the sound is short.
    #[must_use]
    pub fn excerpt(&self) -> Option<&Reference> {
        self.excerpt.as_ref()
    }

    /// Describes the measure in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let against = match &*self.reference.sound {
            CalibrationSound::Recordings(_) => "to the recordings, that of the original",
            CalibrationSound::Pair(_) => "to the device, that of the original",
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => {
                "to the original, whose error is"
            }
        };
        format!(
            "{} {against} {:.5}",
            if self.spectral {
                SPECTRAL_DISTANCE
            } else {
                ESR
            },
            self.error
        )
    }

    /// Returns the increase of the error relative to the original's: 0.05 is 5 % more.
    ///
    /// # Errors
    /// Returns an error if the model cannot be played.
    pub fn loss(&self, model: &Model) -> anyhow::Result<f64> {
        let mut largest = self.loss_from(&self.reference, self.error, model)?;
        for ((reference, variant), error) in
            self.reference.variants(model)?.zip(&self.variant_errors)
        {
            let loss = self.loss_from(reference, *error, &variant)?;
            // NaN counts as the largest loss.
            largest = if loss > largest || loss.is_nan() {
                loss
            } else {
                largest
            };
        }
        Ok(largest)
    }

    fn loss_from(&self, reference: &Reference, error: f64, model: &Model) -> anyhow::Result<f64> {
        match &*reference.sound {
            CalibrationSound::Recordings(files) => {
                Ok(self.distance_from(files, &render(model, &reference.sound)?) / error - 1.0)
            }
            CalibrationSound::Pair(pair) => Ok(compare(model, pair)?.held_out.value / error - 1.0),
            CalibrationSound::Sounds(_) | CalibrationSound::Notes => {
                let sounds = render(model, &reference.sound)?;
                let pairs = sounds.iter().zip(&reference.original);
                let samples: f64 = sounds.iter().map(|sound| sound.len() as f64).sum();
                let between = |sound: &[f32], original: &[f32]| {
                    if self.spectral {
                        self.between(sound, original)
                    } else {
                        esr(original, sound)
                    }
                };
                let sum: f64 = pairs
                    .map(|(sound, original)| between(sound, original) * sound.len() as f64)
                    .sum();
                Ok(sum / samples.max(1.0) / error)
            }
        }
    }

    /// Returns the loss as a measure for the card.
    #[must_use]
    pub fn measure(loss: f64) -> Measure {
        let value = (1e4 * loss).round() / 1e2;
        Measure {
            name: "loss by compression".into(),
            unit: "%".into(),
            value,
            baseline: None,
        }
    }

    fn between(&self, sound: &[f32], target: &[f32]) -> f64 {
        let row = |samples: &[f32]| Tensor::from_slice(samples).view([1, -1]);
        tch::no_grad(|| {
            self.distance
                .between(&row(sound), &row(target))
                .double_value(&[])
        })
    }

    /// Returns the mean spectral distance over files, weighted by length.
    fn distance_from(&self, files: &[Features], sounds: &[Vec<f32>]) -> f64 {
        let pairs = files.iter().zip(sounds);
        let sum: f64 = pairs
            .map(|(file, sound)| self.between(sound, file.audio()) * sound.len() as f64)
            .sum();
        sum / sounds
            .iter()
            .map(|sound| sound.len() as f64)
            .sum::<f64>()
            .max(1.0)
    }
}
