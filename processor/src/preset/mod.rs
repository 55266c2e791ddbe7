//! Presets: everything that is heard, under a name.
//!
//! In reading order: [`values`] is where parameters stand, [`file`](mod@file) a preset as a file, [`factory`] the
//! presets that are built in, [`store`] the user's folders, [`list`] both together. A window plays them by
//! [`crate::desk::presets`].

pub mod factory;
pub mod file;
pub mod list;
pub mod store;
pub mod values;

use ondes_engine::pipeline::Source;
use serde::{Deserialize, Serialize};

use crate::state::Sound;

/// Everything that is heard, and what is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it was made in.
    pub product: Product,
    /// Who made it.
    pub author: String,
    /// What it is good for.
    pub comment: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What is heard; its look and its slots are not looked at.
    pub sound: Sound,
}

/// What an instance is, and a preset is for: each is a plugin of its own in a DAW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Product {
    /// Ondes.
    #[serde(rename = "org.ondes.instrument")]
    Instrument,
    /// Ondes FX.
    #[serde(rename = "org.ondes.effect")]
    Effect,
}

impl Product {
    /// What plays it in the beginning.
    #[must_use]
    pub const fn source(self) -> Source {
        match self {
            Self::Instrument => Source::Notes,
            Self::Effect => Source::Sound,
        }
    }

    /// What hosts and preset files know it by.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Instrument => "org.ondes.instrument",
            Self::Effect => "org.ondes.effect",
        }
    }

    /// What people know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instrument => "Ondes",
            Self::Effect => "Ondes FX",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_written_by_their_ids() {
        for product in [Product::Instrument, Product::Effect] {
            assert_eq!(serde_json::to_value(product).unwrap(), product.id());
        }
    }
}
