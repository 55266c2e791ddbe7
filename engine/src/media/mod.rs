//! Audio files: what comes in from any format ([`decode`]) and what goes out as WAV ([`wav`]).
//!
//! Both stream in constant memory, and everything that can go wrong is one [`MediaError`]: one line that names the file and
//! the reason.

pub mod decode;
mod quantize;
pub mod wav;

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

pub use decode::{Decoder, FILE_EXTENSIONS, read_mono};
pub use quantize::Quantizer;
pub use wav::{GrowingWav, WavBits, WavWriter, remove_abandoned};

/// What went wrong with which file; displays as one line, "FILE: reason".
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// There is no such file.
    #[error("{file}: no such file")]
    Missing {
        /// The file, as the caller named it.
        file: String,
    },
    /// The system refuses to give the contents.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// The contents are in no format known.
    #[error("{file}: is not audio in a known format: {reason}")]
    NotAudio {
        /// The file, as the caller named it.
        file: String,
        /// What was missed.
        reason: String,
    },
    /// A well-formed file without a single sample.
    #[error("{file}: holds no audio")]
    Empty {
        /// The file, as the caller named it.
        file: String,
    },
    /// The file, or the file asked for, is beyond what is supported.
    #[error("{file}: {what} is {found}, supported is {supported}")]
    Limit {
        /// The file, as the caller named it.
        file: String,
        /// The quantity, with its unit.
        what: &'static str,
        /// What the file has.
        found: u64,
        /// The range it may be in.
        supported: String,
    },
    /// The contents are broken before their end.
    #[error("{file}: is damaged after {frames} frames: {reason}")]
    Damaged {
        /// The file, as the caller named it.
        file: String,
        /// Frames decoded before the damage.
        frames: u64,
        /// What is wrong.
        reason: String,
    },
    /// The system does not take the contents.
    #[error("{file}: cannot be written: {source}")]
    Unwritable {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// Fewer or more frames were written than the header promised.
    #[error("{file}: {promised} frames were promised, {written} were to be written")]
    Length {
        /// The file, as the caller named it.
        file: String,
        /// Frames the header was made for.
        promised: u64,
        /// Frames there were.
        written: u64,
    },
}

/// The name of a file in a message: one line, whatever the name is.
#[must_use]
pub fn display_name(path: &Path) -> String {
    let name = path.display().to_string();
    if name.chars().any(char::is_control) { name.escape_debug().to_string() } else { name }
}

/// Channels a file may have.
const CHANNELS: RangeInclusive<u64> = 1..=32;
/// Sample rates a file may have, in Hz.
const RATES_HZ: RangeInclusive<u64> = 1_000..=768_000;

/// Checks what a file claims, or is asked, to be.
fn check_limits(file: &str, sample_rate: u64, channels: u64) -> Result<(), MediaError> {
    check_range(file, "the sample rate in Hz", sample_rate, RATES_HZ)?;
    check_range(file, "the number of channels", channels, CHANNELS)
}

fn check_range(file: &str, what: &'static str, found: u64, range: RangeInclusive<u64>) -> Result<(), MediaError> {
    if range.contains(&found) {
        return Ok(());
    }
    let supported = format!("{} to {}", range.start(), range.end());
    Err(MediaError::Limit { file: file.to_owned(), what, found, supported })
}
