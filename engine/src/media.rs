//! Audio files: decoding of any common format ([`decode`]) and writing of WAV ([`wav`]).
//!
//! Both directions stream in constant memory. Every error is a [`MediaError`], one line that names
//! the file and the reason.

pub mod decode;
mod quantize;
pub mod wav;

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

pub use decode::{Decoder, FILE_EXTENSIONS, read_mono};
pub use quantize::Quantizer;
pub use wav::{GrowingWav, WavBits, WavWriter};

/// Error of an audio file, displayed as one line, `FILE: reason`.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file does not exist.
    #[error("{file}: no such file")]
    Missing {
        /// File name, as given by the caller.
        file: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// File name, as given by the caller.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The content is not audio in a known format.
    #[error("{file}: is not audio in a known format: {reason}")]
    NotAudio {
        /// File name, as given by the caller.
        file: String,
        /// Reason.
        reason: String,
    },
    /// The file is well-formed, but has no samples.
    #[error("{file}: contains no audio")]
    Empty {
        /// File name, as given by the caller.
        file: String,
    },
    /// A property of the file exceeds what is supported.
    #[error("{file}: {quantity} is {found}; supported: {supported}")]
    Limit {
        /// File name, as given by the caller.
        file: String,
        /// Quantity with its unit.
        quantity: &'static str,
        /// Value of the file.
        found: u64,
        /// Supported range.
        supported: String,
    },
    /// The content is damaged before its end.
    #[error("{file}: is damaged after {frames} frames: {reason}")]
    Damaged {
        /// File name, as given by the caller.
        file: String,
        /// Frames decoded before the damage.
        frames: u64,
        /// Reason.
        reason: String,
    },
    /// The file cannot be written.
    #[error("{file}: cannot be written: {source}")]
    Unwritable {
        /// File name, as given by the caller.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The number of frames written differs from the number in the header.
    #[error("{file}: the header declares {declared} frames, but {written} were written")]
    Length {
        /// File name, as given by the caller.
        file: String,
        /// Frames in the header.
        declared: u64,
        /// Frames written.
        written: u64,
    },
}

/// Returns a file name for messages, as one line whatever characters it has.
#[must_use]
pub fn display_name(path: &Path) -> String {
    let name = path.display().to_string();
    if name.chars().any(char::is_control) {
        name.escape_debug().to_string()
    } else {
        name
    }
}

/// Supported numbers of channels.
const CHANNELS: RangeInclusive<u64> = 1..=32;
/// Supported sample rates, Hz.
const RATES_HZ: RangeInclusive<u64> = 1_000..=768_000;

/// Checks sample rate and channels of a file.
fn check_limits(file: &str, sample_rate: u64, channels: u64) -> Result<(), MediaError> {
    check_range(file, "the sample rate in Hz", sample_rate, RATES_HZ)?;
    check_range(file, "the number of channels", channels, CHANNELS)
}

fn check_range(
    file: &str,
    quantity: &'static str,
    found: u64,
    range: RangeInclusive<u64>,
) -> Result<(), MediaError> {
    if range.contains(&found) {
        return Ok(());
    }
    let supported = format!("{} to {}", range.start(), range.end());
    Err(MediaError::Limit {
        file: file.to_owned(),
        quantity,
        found,
        supported,
    })
}
