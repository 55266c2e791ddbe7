//! Work that is not saved survives a crash: a copy of the session in the app's folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use crate::rack::SessionFile;

/// Where the copy is, and who may write it.
pub(super) struct Unsaved {
    folder: PathBuf,
    /// Held for as long as the app runs: a second one leaves the first one's copy alone.
    _turn: File,
    writing: Option<JoinHandle<Option<String>>>,
}

/// Which session the copy is of.
#[derive(Default, Serialize, Deserialize)]
struct Origin {
    session: Option<PathBuf>,
}

impl Unsaved {
    /// The copy in that folder; none where another app has it, or it cannot be written.
    pub fn open(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).ok()?;
        let turn = File::create(folder.join("unsaved.lock")).ok()?;
        turn.try_lock().ok()?;
        Some(Self { folder: folder.into(), _turn: turn, writing: None })
    }

    fn copy(&self) -> PathBuf {
        self.folder.join("unsaved.ondes-session")
    }

    fn origin(&self) -> PathBuf {
        self.folder.join("unsaved.json")
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.copy().is_file()
    }

    /// The copy, and the file that the session had.
    pub fn read(&self) -> anyhow::Result<(SessionFile, Option<PathBuf>)> {
        let session = SessionFile::read(&self.copy())?;
        let origin: Option<Origin> = fs::read(self.origin()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok((session, origin.unwrap_or_default().session))
    }

    /// Writes a copy on a thread of its own. Gives what went wrong with the one before.
    pub fn write(&mut self, session: SessionFile, path: Option<PathBuf>) -> Option<String> {
        if self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return None;
        }
        let problem = self.finish();
        let (copy, origin) = (self.copy(), self.origin());
        let write = move || {
            let origin_text = serde_json::to_vec(&Origin { session: path }).ok()?;
            let written = fs::write(origin, origin_text).map_err(anyhow::Error::from);
            written.and_then(|()| session.write(&copy)).err().map(|error| format!("{error:#}"))
        };
        match std::thread::Builder::new().name("ondes-unsaved".into()).spawn(write) {
            Ok(thread) => self.writing = Some(thread),
            Err(error) => return Some(format!("the session is not kept: {error}")),
        }
        problem
    }

    /// Waits for a copy that is being written.
    pub fn finish(&mut self) -> Option<String> {
        self.writing.take()?.join().ok().flatten()
    }

    /// All is saved: there is no copy any more.
    pub fn clear(&mut self) {
        drop(self.finish());
        for path in [self.copy(), self.origin()] {
            // Where there was none, none is left.
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_until_all_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let mut unsaved = Unsaved::open(folder.path()).unwrap();
        assert!(Unsaved::open(folder.path()).is_none(), "another app has its own work");
        assert!(!unsaved.is_there());
        let mut session = SessionFile::default();
        session.master.level_db = -7.0;
        assert_eq!(unsaved.write(session.clone(), Some("/a.ondes-session".into())), None);
        assert_eq!(unsaved.finish(), None);
        drop(unsaved);
        let mut unsaved = Unsaved::open(folder.path()).unwrap();
        assert!(unsaved.is_there());
        assert_eq!(unsaved.read().unwrap(), (session, Some("/a.ondes-session".into())));
        unsaved.clear();
        assert!(!unsaved.is_there());
    }
}
