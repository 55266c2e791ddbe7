//! Files with the oddities of each format, and the right answer beside each; a folder of
//! `tests/conformance` for each kind. Tests read them with Ondes, `cargo xtask conformance` with
//! other programs, too.

pub mod audio;
pub mod captures;
pub mod midi;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::documentation::checkout;

/// Returns the folder of a kind of files.
#[must_use]
pub fn folder(kind: &str) -> PathBuf {
    checkout().join("tests/conformance").join(kind)
}

/// Reads the answers beside the files of a folder.
///
/// # Panics
/// If they are missing or not valid.
#[must_use]
pub fn answers<T: DeserializeOwned>(folder: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(folder.join("answers.json")).expect("answers.json");
    serde_json::from_str(&text).expect("answers are a list of objects")
}

/// Returns an error without the name of the file and what all errors say.
fn refusal(message: &str) -> String {
    let reason = message
        .split_once(": ")
        .map_or(message, |(_, reason)| reason);
    format!(
        "refuses: {}",
        reason.trim_start_matches("is not audio in a known format: ")
    )
}
