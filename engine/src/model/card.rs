//! Model card: author, licence, training and measured quality.

use serde::{Deserialize, Serialize};

/// Kind of model, as a player sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Instrument, played by MIDI or by the pitch and loudness of an audio input.
    Instrument,
    /// Effect: audio in, audio out.
    Effect,
    /// Codec: encodes audio to latents, which can be changed, and decodes them.
    Codec,
    /// Generator that runs without input, steered by controls.
    Generator,
}

impl Kind {
    /// Returns the name used in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instrument => "instrument",
            Self::Effect => "effect",
            Self::Codec => "codec",
            Self::Generator => "generator",
        }
    }
}

/// Facts about a model for its players.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Display name.
    pub name: String,
    /// Description of one or two sentences.
    #[serde(default)]
    pub description: String,
    /// Author.
    #[serde(default)]
    pub author: String,
    /// Licence as an SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// Training; `None` unless Ondes trained the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
    /// Captured device, if the model is a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gear: Option<Gear>,
    /// Calibration levels, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
    /// Quality, measured on data that was not used for training.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quality: Vec<Measure>,
}

/// Device that a capture models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gear {
    /// Manufacturer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub make: String,
    /// Model name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Type of device, such as `amp` or `pedal`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Character of the sound, such as `clean` or `hi_gain`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tone: String,
}

/// Levels of a capture in volts, and its loudness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Levels {
    /// Level in dBu at the device's input that corresponds to a 1 kHz sine of peak 1 at the model's
    /// input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_dbu: Option<f64>,
    /// Level in dBu at the device's output that corresponds to a 1 kHz sine of peak 1 at the
    /// model's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_dbu: Option<f64>,
    /// Output level for a standard signal, dB RMS of full scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loudness_db: Option<f64>,
}

impl Levels {
    /// Returns these levels, and of `others` those that are not known here.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            input_dbu: self.input_dbu.or(others.input_dbu),
            output_dbu: self.output_dbu.or(others.output_dbu),
            loudness_db: self.loudness_db.or(others.loudness_db),
        }
    }

    /// Returns the known values.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        [self.input_dbu, self.output_dbu, self.loudness_db]
            .into_iter()
            .flatten()
    }
}

/// Provenance of trained weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Training program and its version.
    pub tool: String,
    /// Name of the training corpus.
    pub corpus: String,
    /// Length of the corpus, seconds.
    pub corpus_seconds: f64,
    /// Optimiser steps until the selected checkpoint.
    pub steps: u64,
    /// Seed of the initial weights and of the batches.
    pub seed: u64,
    /// Validation loss of the selected checkpoint.
    pub validation_loss: f64,
}

/// Measured figure, with that of a trivial baseline to compare it to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Quantity, such as `multi-scale spectral distance`.
    pub name: String,
    /// Unit; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// Figure of the model.
    pub value: f64,
    /// Figure of the baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}
