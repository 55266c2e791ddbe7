//! Installs libtorch for the CPU from the published Python wheels.
//!
//! A [`Manifest`] lists the wheels, the members to extract and the files that must result;
//! [`Manifest::published`] is the one for the libtorch version of Ondes. [`install`] downloads the
//! wheels or takes them from a folder, verifies length and SHA-256, and unpacks them next to the
//! target; the target gets its name only when it is complete. The command `ondes setup-torch` and
//! the program `prepare-libtorch` of `cargo xtask setup` use this crate.

#![forbid(unsafe_code)]

mod download;
mod install;
mod manifest;
mod unpack;

use std::io;
use std::path::{Path, PathBuf};

pub use install::{InstallOutcome, WheelSource, install};
pub use manifest::{Contents, Manifest, VERSION, Wheel};

/// Progress of one wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstallProgress<'a> {
    /// Current step.
    pub step: InstallStep,
    /// File name of the wheel.
    pub wheel: &'a str,
    /// Bytes processed in this step.
    pub done_bytes: u64,
    /// Size of the wheel in bytes.
    pub total_bytes: u64,
}

/// Installation step of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// The wheel is downloaded.
    Downloading,
    /// The SHA-256 is computed and compared.
    Verifying,
    /// The members are extracted.
    Unpacking,
}

/// Reason why libtorch was not installed. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A download failed.
    #[error("{url}: {reason}")]
    Network {
        /// The requested URL.
        url: String,
        /// The failure.
        reason: String,
    },
    /// The folder does not hold a required wheel.
    #[error("{}: {file} is missing; download it from {url}", folder.display())]
    MissingWheel {
        /// The searched folder.
        folder: PathBuf,
        /// File name of the wheel.
        file: String,
        /// Download URL.
        url: String,
    },
    /// A wheel is truncated or too long.
    #[error("{}: {found} bytes, but the published wheel has {expected}; download it again", path.display())]
    Length {
        /// The wheel.
        path: PathBuf,
        /// Its length in bytes.
        found: u64,
        /// The published length in bytes.
        expected: u64,
    },
    /// A wheel has another hash than the published one.
    #[error("{}: SHA-256 is {found}, but the published wheel has {expected}; download it again", path.display())]
    Hash {
        /// The wheel.
        path: PathBuf,
        /// Its SHA-256.
        found: String,
        /// The published SHA-256.
        expected: String,
    },
    /// A wheel is damaged or lacks a required member.
    #[error("{}: {reason}", path.display())]
    Wheel {
        /// The wheel.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The result lacks a required file, or the caller's `finish` step failed.
    #[error("{0}")]
    Incomplete(String),
}

impl Error {
    /// Returns a `map_err` function that adds the path.
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |reason| Self::File {
            path: path.into(),
            reason,
        }
    }
}
