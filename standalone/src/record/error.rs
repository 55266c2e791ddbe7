//! Errors of the recorder.

use std::io;

use ondes_engine::media::MediaError;

/// Error of the recorder or of a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A value of the [`RecorderSetup`] is out of range.
    #[error("{what} is {found}; supported: {supported}")]
    Limit {
        /// Quantity, with its unit.
        what: &'static str,
        /// Value found.
        found: f64,
        /// Range allowed.
        supported: String,
    },
    /// The memory for the history cannot be allocated.
    #[error("there is not enough memory for the sound that is kept for recordings")]
    Memory,
    /// The thread cannot be started.
    #[error("the recorder cannot be started: {0}")]
    Thread(io::Error),
    /// No file was given.
    #[error("nothing is to be recorded")]
    NoFile,
    /// There is no tap of this number.
    #[error("there is no tap {0}")]
    NoTap(usize),
    /// A recording is already running.
    #[error("a recording is running")]
    Running,
    /// Nothing was played yet.
    #[error("there is no sound to be saved yet")]
    NoSound,
    /// A file cannot be created.
    #[error(transparent)]
    File(#[from] MediaError),
}
