//! A file that is not there until it is whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const ENDING: &str = "part";

/// A file under a hidden name until it is complete, removed if it never is.
///
/// It is locked as long as somebody writes it, so that what a killed program left behind can be told from what another one
/// is busy with; see [`remove_abandoned`].
pub(super) struct PartFile {
    writer: BufWriter<File>,
    part: PathBuf,
    target: PathBuf,
}

impl PartFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // A link stays a link to the new contents.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
        };
        // Unlike that of any other writer, in this process or another.
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{}-{}.{ENDING}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let part = target.with_file_name(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        // Where the system has no locks, nothing that is left behind counts as abandoned.
        drop(file.try_lock());
        Ok(Self { writer: BufWriter::new(file), part, target })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    pub(super) fn complete(mut self, header: &[u8]) -> io::Result<()> {
        self.writer.seek(SeekFrom::Start(0))?;
        self.writer.write_all(header)?;
        self.writer.flush()?;
        // Some systems tell only now that there was no room.
        self.writer.get_ref().sync_all()?;
        fs::rename(&self.part, &self.target)?;
        self.part.clear();
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.part.as_os_str().is_empty() {
            // Nobody is left to tell should it fail, and the name says what the file is.
            drop(fs::remove_file(&self.part));
        }
    }
}

/// Removes from a folder what writers that were killed left behind of the files that `is_target` knows by name, and tells
/// how many those were. What is still being written, here or in another program, stays.
///
/// # Errors
///
/// If the folder cannot be read or a file not be removed.
pub fn remove_abandoned(folder: &Path, is_target: impl Fn(&str) -> bool) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !target_of(&entry.file_name()).is_some_and(&is_target) {
            continue;
        }
        let path = entry.path();
        // One that its writer completed or removed just now is no concern of ours.
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

/// The name that a part was to take: `NAME` of `.NAME.PROCESS-COUNT.part`.
fn target_of(part: &OsStr) -> Option<&str> {
    let (name, id) = part.to_str()?.strip_prefix('.')?.strip_suffix(ENDING)?.strip_suffix('.')?.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once('-').filter(|(process, count)| is_number(process) && is_number(count)).map(|_| name)
}
