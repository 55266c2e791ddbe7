//! Locations of presets.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Location of a preset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PresetLocation {
    /// Factory preset of this key.
    Factory(String),
    /// File.
    File(PathBuf),
}
