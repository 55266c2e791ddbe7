//! Reads and writes of whole files.
//!
//! A path that a user, a project or another program names may lead anywhere. [`open`] and [`read`]
//! accept regular files only, so nothing waits for a pipe or reads a device without end.
//! [`AtomicFile`] and [`write()`] replace regular files only, and only once the new content is
//! complete.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::NamedTempFile;

use crate::sync::lock;

/// Extension of files that are not complete yet.
const PART: &str = ".part";
/// Length of the random part of their names.
const RANDOM_LENGTH: usize = 8;
/// Longest file name that is part of a temporary name, bytes; file systems allow 255.
const MAX_NAME_BYTES: usize = 200;

/// Longest message about a file, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// Shortens a message about a file to one line: parsers quote what they found, however long that
/// is.
#[must_use]
pub fn shortened(message: &str) -> String {
    let line = message
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign });
    let short: String = line.take(MAX_MESSAGE_CHARS).collect();
    if message.chars().nth(MAX_MESSAGE_CHARS).is_some() {
        short + "…"
    } else {
        short
    }
}

/// Removes the UTF-8 byte order mark that some editors write at the start of a text.
#[must_use]
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
}

/// Opens a regular file for reading.
///
/// # Errors
/// Returns the error of the system, or one of kind [`InvalidInput`](io::ErrorKind::InvalidInput) if
/// the path is a folder, pipe, socket or device. None of these is opened, unless it takes the place
/// of a regular file meanwhile; then it is closed at once, without waiting.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    let file = options.read(true).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `max_bytes`.
///
/// # Errors
/// Returns the errors of [`open`], or one of kind [`FileTooLarge`](io::ErrorKind::FileTooLarge).
///
/// # Examples
/// ```
/// use ondes_engine::files;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("notes.txt");
/// files::write(&path, b"la la")?;
/// assert_eq!(files::read(&path, 5)?, b"la la");
/// assert!(files::read(&path, 4).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_opened(&open(path)?, max_bytes)
}

/// Reads a text file; see [`read`].
///
/// # Errors
/// Returns the errors of [`read`], or one of kind [`InvalidData`](io::ErrorKind::InvalidData) if
/// the content is not UTF-8.
pub fn read_to_string(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, max_bytes)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads an open file from its position to its end; see [`read`].
pub(crate) fn read_opened(file: &File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    check_size(length, max_bytes)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    // One byte more shows that the file has grown.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, max_bytes)?;
    Ok(bytes)
}

fn check_size(bytes: u64, max_bytes: u64) -> io::Result<()> {
    if bytes <= max_bytes {
        return Ok(());
    }
    let reason = format!("{bytes} bytes; at most {max_bytes} are supported");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, reason))
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let reason = format!(
        "not a regular file, but {}",
        kind_name(metadata.file_type())
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        return "a folder";
    }
    if kind.is_symlink() {
        return "a link to a missing file";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// Writes a file; an existing one is replaced once the new one is complete. See [`AtomicFile`].
///
/// # Errors
/// Returns an error if the file cannot be written. An existing file is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Writes a file that does not exist yet.
///
/// # Errors
/// Returns an error if the file cannot be written, of kind
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is one.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.finish_new()
}

/// File that takes the place of its target once it is complete, and is removed if it never is.
///
/// It is written under a hidden, unpredictable name in the folder of the target. A link to a
/// regular file stays; the file that it leads to is replaced. Permissions of a replaced file are
/// kept.
///
/// The file is locked while it is written, which distinguishes it from files that a killed process
/// left behind; see [`remove_abandoned`].
#[derive(Debug)]
pub struct AtomicFile {
    temporary: NamedTempFile,
    target: PathBuf,
    _entry: UnfinishedEntry,
}

/// Files of this process that are not complete yet.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Entry of a file in the list of unfinished ones.
#[derive(Debug)]
struct UnfinishedEntry(PathBuf);

impl UnfinishedEntry {
    fn new(path: &Path) -> Self {
        lock(&UNFINISHED).insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for UnfinishedEntry {
    fn drop(&mut self) {
        lock(&UNFINISHED).remove(&self.0);
    }
}

/// Removes the files of this process that are not complete yet, before it ends without running
/// destructors.
pub fn remove_unfinished() {
    for path in &*lock(&UNFINISHED) {
        // It may have been removed already.
        drop(fs::remove_file(path));
    }
}

impl AtomicFile {
    /// Creates the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if `path` exists and is not a regular
    /// file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let (target, replaced) = resolve(path)?;
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let prefix = hidden_prefix(name);
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(&prefix)
            .suffix(PART)
            .rand_bytes(RANDOM_LENGTH);
        #[cfg(unix)]
        // As for any new file; the umask applies.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temporary = builder
            .tempfile_in(folder)
            .map_err(|error| without_temporary_name(&error, folder))?;
        // On systems without locks nothing counts as abandoned.
        drop(temporary.as_file().try_lock());
        if let Some(replaced) = replaced {
            keep_access(temporary.as_file(), &replaced)?;
        }
        let entry = UnfinishedEntry::new(temporary.path());
        Ok(Self {
            temporary,
            target,
            _entry: entry,
        })
    }

    /// Returns the temporary path, for writers that open files themselves.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        self.temporary.path()
    }

    /// Replaces the target.
    ///
    /// # Errors
    /// Returns an error if the content cannot be written to the disk or the target cannot be
    /// replaced.
    pub fn finish(self) -> io::Result<()> {
        // Some systems report a full disk only here.
        self.temporary.as_file().sync_all()?;
        self.temporary.persist(&self.target)?;
        Ok(())
    }

    /// Takes the name of the target, which must not exist.
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish), or one of kind
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists).
    pub fn finish_new(self) -> io::Result<()> {
        self.temporary.as_file().sync_all()?;
        self.temporary.persist_noclobber(&self.target)?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.temporary.as_file_mut().seek(to)
    }
}

/// Returns the reason why a file cannot be created in a folder, without the hidden name that it
/// would have had.
fn without_temporary_name(error: &io::Error, folder: &Path) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound && !folder.exists() {
        let reason = format!(
            "the folder {} does not exist; create it, or choose another",
            folder.display()
        );
        return io::Error::new(io::ErrorKind::NotFound, reason);
    }
    // tempfile adds the name to the error of the system.
    let source = error
        .get_ref()
        .and_then(|named| named.source())
        .and_then(|source| source.downcast_ref::<io::Error>());
    let code = error
        .raw_os_error()
        .or_else(|| source.and_then(io::Error::raw_os_error));
    code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Returns the path to replace, with links followed, and the file that is there.
fn resolve(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let target = match fs::canonicalize(path) {
        Err(error) if missing(&error) => path.to_owned(),
        found => found?,
    };
    match fs::symlink_metadata(&target) {
        Err(error) if missing(&error) => Ok((target, None)),
        found => {
            let found = found?;
            check_regular(&found)?;
            Ok((target, Some(found)))
        }
    }
}

/// Gives a new file the permissions of the one that it replaces, and its owner where the system
/// allows that.
#[cfg(unix)]
fn keep_access(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
        // Only administrators may give files away.
        drop(fchown(file, Some(replaced.uid()), Some(replaced.gid())));
    }
    file.set_permissions(replaced.permissions())
}

#[cfg(not(unix))]
fn keep_access(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns how the temporary names for a target begin. Names near the limit of file systems are not
/// part of it.
fn hidden_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    if name.len() <= MAX_NAME_BYTES {
        prefix.push(name);
    }
    prefix.push(".");
    prefix
}

/// Removes unfinished files that killed processes left in a folder, if `is_target` accepts the name
/// of their target; returns how many were removed. Files that are still being written stay.
///
/// # Errors
/// Returns an error if the folder cannot be read or a file cannot be removed.
pub fn remove_abandoned(folder: &Path, is_target: impl Fn(&str) -> bool) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !target_of(&entry.file_name()).is_some_and(&is_target) {
            continue;
        }
        let path = entry.path();
        // It may have been completed or removed meanwhile.
        let Ok(file) = OpenOptions::new().write(true).open(&path) else {
            continue;
        };
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

/// Returns the target of an unfinished file: `NAME` of `.NAME.RANDOM.part`.
fn target_of(hidden: &OsStr) -> Option<&str> {
    let (name, random) = hidden
        .to_str()?
        .strip_prefix('.')?
        .strip_suffix(PART)?
        .rsplit_once('.')?;
    (random.len() == RANDOM_LENGTH && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then_some(name)
}

#[cfg(test)]
mod tests;
