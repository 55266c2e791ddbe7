//! Outputs of a batch that are up to date.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::list::BatchEntry;

/// Checks by modification times whether an output is up to date.
///
/// An existing output is complete, since it gets its name only then. Its time is set to the start of its batch; it is
/// up to date if that is later than the times of its source and model. An output whose source or model changed during
/// the batch is therefore rendered again, and so is one with equal times, which file systems with a resolution of
/// seconds produce. Changed options do not show in times.
pub struct FreshnessCheck {
    started_at: SystemTime,
    model: Option<SystemTime>,
}

impl FreshnessCheck {
    /// Creates a check for a batch with this start and model.
    pub fn of(started_at: SystemTime, model: &Path) -> Self {
        Self { started_at, model: modified(model) }
    }

    /// Returns whether the output exists and is up to date.
    pub fn is_fresh(&self, entry: &BatchEntry) -> bool {
        match (modified(&entry.out), modified(&entry.source), self.model) {
            (Some(out), Some(source), Some(model)) => out > source.max(model),
            _ => false,
        }
    }

    /// Sets the time of a new output.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_time(&self, out: &Path) -> io::Result<()> {
        File::options().append(true).open(out)?.set_modified(self.started_at)
    }
}

/// Returns the modification time of an ordinary file, if it exists and the system knows it.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok()
}
