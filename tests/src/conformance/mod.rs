//! Files with the oddities of each format, and the right answer beside each; a folder of `tests/conformance` for each
//! kind. Tests read them with Ondes, `cargo xtask conformance` with other programs, too.

pub mod audio;

use std::path::PathBuf;

use crate::documentation::checkout;

/// Returns the folder of a kind of files.
#[must_use]
pub fn folder(kind: &str) -> PathBuf {
    checkout().join("tests/conformance").join(kind)
}
