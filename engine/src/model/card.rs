//! The card: who made a model, from what, and how good it is.

use serde::{Deserialize, Serialize};

/// What a model is to a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Played by MIDI, or by the pitch and loudness of the input.
    Instrument,
    /// Audio to audio.
    Effect,
    /// Encode and decode, with latents to bend.
    Codec,
    /// Runs on its own, steered by controls.
    Generator,
}

impl Kind {
    /// The word for it, as in the file.
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

/// What a person wants to know of a model before playing it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name to show.
    pub name: String,
    /// One or two sentences.
    #[serde(default)]
    pub description: String,
    /// Who made it.
    #[serde(default)]
    pub author: String,
    /// SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// Where it comes from; none for a model that was not trained by Ondes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
    /// What it is a capture of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gear: Option<Gear>,
    /// What its samples were in volts, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
    /// Measured on data that training never saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quality: Vec<Measure>,
}

/// What a capture is one of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gear {
    /// Who builds it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub make: String,
    /// What they call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What sort of thing it is, such as `amp` or `pedal`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// How it sounds, such as `clean` or `hi_gain`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tone: String,
}

/// What a capture's samples were in volts, and how loud it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Levels {
    /// Level that a sine of 1 kHz with a peak of 1 at the model's input had at the gear's, dBu.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_dbu: Option<f64>,
    /// The same at the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_dbu: Option<f64>,
    /// Level of what it makes of a standard signal, dB RMS of full scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loudness_db: Option<f64>,
}

impl Levels {
    /// Those that are known.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        [self.input_dbu, self.output_dbu, self.loudness_db].into_iter().flatten()
    }
}

/// How a model was trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Program and version.
    pub tool: String,
    /// What it heard.
    pub corpus: String,
    /// Length of what it heard, seconds.
    pub corpus_seconds: f64,
    /// Optimiser steps of the kept weights.
    pub steps: u64,
    /// Seed of initial weights and batches.
    pub seed: u64,
    /// Loss on the validation part at the kept step.
    pub validation_loss: f64,
}

/// One measured figure beside that of a trivial baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is measured, such as `multi-scale spectral distance`.
    pub name: String,
    /// The unit, empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// The model's figure.
    pub value: f64,
    /// The baseline's figure, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}
