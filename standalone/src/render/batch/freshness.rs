//! Outputs of a batch that are up to date.

use std::env;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::list::BatchEntry;
use crate::open_model;
use crate::render::arguments::RenderArguments;

/// Coarsest resolution of times in a file system.
const RESOLUTION: Duration = Duration::from_secs(2);

/// Checks by modification times whether an output is up to date.
///
/// An existing output is complete, since it gets its name only then. Its time is set to the start
/// of its batch; it is up to date if that is later than the times of its source and of the files
/// that all outputs depend on. An output whose source or model changed during the batch is
/// therefore rendered again, and so is one with equal times, which file systems with a resolution
/// of seconds produce. Changed options do not show in times.
pub struct FreshnessCheck {
    started_at: SystemTime,
    /// Latest time of the files that all outputs depend on; `None` if one is not known.
    read: Option<SystemTime>,
}

impl FreshnessCheck {
    /// Creates a check for a batch with this start. All outputs depend on the model, the cabinet
    /// and the sounds of a TorchScript program; what is bundled is as old as this program.
    pub fn new(started_at: SystemTime, arguments: &RenderArguments) -> Self {
        let program = || env::current_exe().ok();
        let model = if open_model::is_bundled(&arguments.model) {
            program()
        } else {
            Some(arguments.model.clone())
        };
        let cabinet = arguments.chain.cabinet.as_ref().map(|cabinet| {
            match open_model::bundled_cabinet(cabinet) {
                Ok(Some(_)) => program(),
                _ => Some(cabinet.clone()),
            }
        });
        let settings = arguments
            .program
            .settings
            .iter()
            .map(|(_, value)| PathBuf::from(value));
        let files = [Some(model), cabinet].into_iter().flatten();
        let files = files.chain(settings.filter(|path| path.is_file()).map(Some));
        let replaced = |file: Option<PathBuf>| replaced_at(&file?);
        let read = files
            .map(replaced)
            .try_fold(SystemTime::UNIX_EPOCH, |latest, time| {
                Some(latest.max(time?))
            });
        Self { started_at, read }
    }

    /// Returns whether the output exists and is up to date.
    pub fn is_fresh(&self, entry: &BatchEntry) -> bool {
        match (modified(&entry.out), modified(&entry.source), self.read) {
            (Some(out), Some(source), Some(read)) => out > source.max(read),
            _ => false,
        }
    }

    /// Returns the time for an output that is rendered from a source as it is now: the start of the
    /// batch, or later if the source or the model come from a machine whose clock is ahead.
    pub fn time_for(&self, source: &Path) -> SystemTime {
        let read = modified(source).max(self.read).unwrap_or(self.started_at);
        if read < self.started_at {
            self.started_at
        } else {
            read + RESOLUTION
        }
    }

    /// Sets the time of a new output.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_time(out: &Path, time: SystemTime) -> io::Result<()> {
        File::options().append(true).open(out)?.set_modified(time)
    }
}

/// Returns the modification time of an ordinary file, if it exists and the system knows it.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .ok()
        .filter(Metadata::is_file)?
        .modified()
        .ok()
}

/// Returns the time at which the content of an ordinary file changed: by writing, or by another
/// file that took its name and kept its own, older time.
#[cfg(unix)]
fn replaced_at(path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
    let (seconds, nanoseconds) = (
        u64::try_from(metadata.ctime()).ok()?,
        u64::try_from(metadata.ctime_nsec()).ok()?,
    );
    let changed =
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
    Some(metadata.modified().ok()?.max(changed))
}

#[cfg(not(unix))]
fn replaced_at(path: &Path) -> Option<SystemTime> {
    modified(path)
}
