//! Files that appear only once they are complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const EXTENSION: &str = "part";

/// File that is written under a hidden name until it is complete, and removed if it never is.
///
/// The file is locked while it is written, which distinguishes it from files that a killed process left behind; see
/// [`remove_abandoned`].
pub(super) struct PartialFile {
    writer: BufWriter<File>,
    hidden: PathBuf,
    target: PathBuf,
}

impl PartialFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // A symbolic link is followed, so that it links to the new content.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
        };
        // Unique among all writers, in this process and others.
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{}.{EXTENSION}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let hidden = target.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&hidden)?;
        // On systems without locks nothing counts as abandoned.
        drop(file.try_lock());
        Ok(Self { writer: BufWriter::new(file), hidden, target })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    pub(super) fn complete(mut self, header: &[u8]) -> io::Result<()> {
        self.writer.seek(SeekFrom::Start(0))?;
        self.writer.write_all(header)?;
        self.writer.flush()?;
        // Some systems report a full disk only here.
        self.writer.get_ref().sync_all()?;
        fs::rename(&self.hidden, &self.target)?;
        self.hidden.clear();
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.hidden.as_os_str().is_empty() {
            // Best effort: an error cannot be reported here.
            drop(fs::remove_file(&self.hidden));
        }
    }
}

/// Removes unfinished files that killed processes left in a folder, if `is_target` accepts the name of their target;
/// returns how many were removed. Files that are still being written stay.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or a file cannot be removed.
pub fn remove_abandoned(folder: &Path, is_target: impl Fn(&str) -> bool) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !target_of(&entry.file_name()).is_some_and(&is_target) {
            continue;
        }
        let path = entry.path();
        // It may have been completed or removed meanwhile.
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        match fs::remove_file(&path) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

/// Returns the target of an unfinished file: `NAME` of `.NAME.PROCESS-COUNT.hidden`.
fn target_of(hidden: &OsStr) -> Option<&str> {
    let (name, id) =
        hidden.to_str()?.strip_prefix('.')?.strip_suffix(EXTENSION)?.strip_suffix('.')?.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once('-').filter(|(process, count)| is_number(process) && is_number(count)).map(|_| name)
}
