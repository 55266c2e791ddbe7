//! Presets: everything that is heard, under a name.
//!
//! In reading order: [`values`] is where parameters stand, [`file`](mod@file) a preset as a file, [`factory`] the presets that
//! come with the plugin, [`store`] the user's folders, [`list`] both together. A window plays them by
//! [`crate::editor::presets`]. For hosts that show presets themselves [`discovery`] tells which there are, and [`loading`]
//! plays one of them, put into the plugin's own [`state`].

#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
pub mod discovery;
pub mod factory;
pub mod file;
pub mod list;
#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
pub mod loading;
pub mod state;
pub mod store;
pub mod values;

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nice_plug::prelude::{ClapPlugin, Plugin};
use ondes_engine::pipeline::Source;
use serde::{Deserialize, Serialize};

use crate::effect::OndesFx;
use crate::instrument::Ondes;
use crate::state::Sound;

/// Everything that is heard, and what is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The plugin it was made in.
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

/// One of the two plugins.
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
    /// The one that begins with that source.
    #[must_use]
    pub fn beginning_with(source: Source) -> Self {
        match source {
            Source::Notes => Self::Instrument,
            Source::Sound => Self::Effect,
        }
    }

    /// What hosts know it by.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Instrument => Ondes::CLAP_ID,
            Self::Effect => OndesFx::CLAP_ID,
        }
    }

    /// What people know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instrument => Ondes::NAME,
            Self::Effect => OndesFx::NAME,
        }
    }
}

/// A text for C, without what would end it early.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Does something that C has asked for; a panic ends here and means `otherwise`.
fn guarded<T>(otherwise: T, deed: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(deed)).unwrap_or(otherwise)
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

    #[test]
    fn a_panic_goes_no_further() {
        assert!(!guarded(false, || panic!("on purpose")));
        assert_eq!(c_string("a\0b").to_bytes(), b"ab");
    }
}
