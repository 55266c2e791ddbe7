//! The two products, an instrument and an effect; each is a plugin of its own.

use ondes_engine::model::Kind;
use ondes_engine::pipeline::ControlSource;
use serde::{Deserialize, Serialize};

/// A product: what an instance is, and what a preset is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Product {
    /// The instrument, "Ondes".
    #[serde(rename = "org.ondes.instrument")]
    Instrument,
    /// The effect, "Ondes FX".
    #[serde(rename = "org.ondes.effect")]
    Effect,
}

impl Product {
    /// Returns the default control source.
    #[must_use]
    pub const fn source(self) -> ControlSource {
        match self {
            Self::Instrument => ControlSource::Notes,
            Self::Effect => ControlSource::AudioInput,
        }
    }

    /// Returns the key of the factory preset that a new instance plays; all of its parameters are
    /// at their defaults.
    #[must_use]
    pub const fn initial_preset(self) -> &'static str {
        match self {
            Self::Instrument => "recital-violin",
            Self::Effect => "valve-preamp",
        }
    }

    /// Returns the name of the bundled model that a new instance plays: that of the initial preset.
    #[must_use]
    pub const fn initial_model(self) -> &'static str {
        match self {
            Self::Instrument => "Violin",
            Self::Effect => "Triode",
        }
    }

    /// Returns the kinds of models, those that suit the product best first.
    #[must_use]
    pub const fn kinds(self) -> [Kind; 4] {
        match self {
            Self::Instrument => [Kind::Instrument, Kind::Generator, Kind::Codec, Kind::Effect],
            Self::Effect => [Kind::Effect, Kind::Codec, Kind::Instrument, Kind::Generator],
        }
    }

    /// Returns the id for hosts and preset files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Instrument => "org.ondes.instrument",
            Self::Effect => "org.ondes.effect",
        }
    }

    /// Returns the name to show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instrument => "Ondes",
            Self::Effect => "Ondes FX",
        }
    }
}
