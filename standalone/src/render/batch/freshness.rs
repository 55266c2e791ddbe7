//! What need not be rendered again.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::list::Entry;

/// Knows by the times of files what is as new as it can be.
///
/// An output that is there is whole, since it takes its name only then. It bears the time at which its batch began to read, and
/// is fresh if that is later than its source and the model were written; so one is not fresh whose source or model was
/// written anew while it was rendered. With equal times, which systems that tell only seconds give, it is not: rendering
/// again does no harm. Other options do not show in times.
pub struct Freshness {
    begun: SystemTime,
    model: Option<SystemTime>,
}

impl Freshness {
    /// For a batch that began to read at a time, and what this model plays in it.
    pub fn of(begun: SystemTime, model: &Path) -> Self {
        Self { begun, model: modified(model) }
    }

    /// Whether an output is there and fresh.
    pub fn has(&self, entry: &Entry) -> bool {
        match (modified(&entry.out), modified(&entry.source), self.model) {
            (Some(out), Some(source), Some(model)) => out > source.max(model),
            _ => false,
        }
    }

    /// Gives a new output its time.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn date(&self, out: &Path) -> io::Result<()> {
        File::options().append(true).open(out)?.set_modified(self.begun)
    }
}

/// When an ordinary file was last written to, if there is one and the system knows.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok()
}
