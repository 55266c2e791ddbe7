//! Errors of the recorder.

use std::io;

use ondes_engine::media::MediaError;

/// Error of the recorder or of a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A value of the [`RecorderSetup`](super::RecorderSetup) is out of range.
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
    #[error("not enough memory for the pre-roll of the recorder")]
    Memory,
    /// The thread cannot be started.
    #[error("the recorder cannot be started: {0}")]
    Thread(io::Error),
    /// The thread has failed.
    #[error("the recorder has failed; open the audio device again")]
    Failed,
    /// No file was given.
    #[error("no file to record to")]
    NoFile,
    /// There is no tap of this number.
    #[error("no tap {0}")]
    NoTap(usize),
    /// A recording is already running.
    #[error("a recording is running already")]
    Running,
    /// Nothing was played yet.
    #[error("nothing was played yet")]
    NoSound,
    /// A file cannot be created.
    #[error(transparent)]
    File(#[from] MediaError),
}
