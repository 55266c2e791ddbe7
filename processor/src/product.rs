//! The two products, an instrument and an effect; each is a plugin of its own.

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
