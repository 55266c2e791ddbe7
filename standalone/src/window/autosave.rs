//! Autosave: a copy of the unsaved session in the app's folder, to be recovered after a crash.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use ondes_engine::files;
use ondes_engine::panics::contain;
use serde::{Deserialize, Serialize};

use crate::rack::SessionFile;

/// Largest file with the origin of the session, bytes: a path.
const MAX_ORIGIN_BYTES: u64 = 1 << 20;

/// Autosaved session in the app's folder.
pub(super) struct Autosave {
    folder: PathBuf,
    /// Lock held while the app runs; a second app does not touch the copy.
    turn: File,
    writing: Option<JoinHandle<Option<String>>>,
}

/// File that the autosaved session came from.
#[derive(Default, Serialize, Deserialize)]
struct AutosaveOrigin {
    session: Option<PathBuf>,
}

impl Autosave {
    /// Opens the autosave in a folder; `None` if another app holds it or the folder is not
    /// writable.
    pub fn open(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).ok()?;
        let turn = File::create(folder.join("unsaved.lock")).ok()?;
        turn.try_lock().ok()?;
        Some(Self {
            folder: folder.into(),
            turn,
            writing: None,
        })
    }

    fn copy(&self) -> PathBuf {
        self.folder.join("unsaved.ondes-session")
    }

    fn origin(&self) -> PathBuf {
        self.folder.join("unsaved.json")
    }

    /// Returns whether there is an autosaved session.
    pub fn is_there(&self) -> bool {
        self.copy().is_file()
    }

    /// Returns the autosaved session and its original file.
    pub fn read(&self) -> anyhow::Result<(SessionFile, Option<PathBuf>)> {
        let session = SessionFile::read(&self.copy())?;
        let origin: Option<AutosaveOrigin> = files::read(&self.origin(), MAX_ORIGIN_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok((session, origin.unwrap_or_default().session))
    }

    /// Writes a copy on a thread of its own. Returns the error of the previous write, if any.
    pub fn write(&mut self, session: SessionFile, path: Option<PathBuf>) -> Option<String> {
        if self
            .writing
            .as_ref()
            .is_some_and(|writing| !writing.is_finished())
        {
            return None;
        }
        let problem = self.finish();
        let (copy, origin) = (self.copy(), self.origin());
        let write = move || {
            let origin_text = serde_json::to_vec(&AutosaveOrigin { session: path }).ok()?;
            let written = files::write(&origin, &origin_text).map_err(anyhow::Error::from);
            written
                .and_then(|()| session.write(&copy))
                .err()
                .map(|error| format!("{error:#}"))
        };
        let write = move || {
            contain(write).unwrap_or_else(|panic| Some(format!("the autosave failed: {panic}")))
        };
        match std::thread::Builder::new()
            .name("ondes-autosave".into())
            .spawn(write)
        {
            Ok(thread) => self.writing = Some(thread),
            Err(error) => return Some(format!("the session cannot be autosaved: {error}")),
        }
        problem
    }

    /// Waits for a pending write.
    pub fn finish(&mut self) -> Option<String> {
        self.writing.take()?.join().ok().flatten()
    }

    /// Removes the copy after the session was saved.
    pub fn clear(&mut self) {
        drop(self.finish());
        for path in [self.copy(), self.origin()] {
            // There may be no copy.
            drop(fs::remove_file(path));
        }
    }
}

impl Drop for Autosave {
    /// Unlocks explicitly: a child process that starts at this moment holds a copy of the file
    /// until it runs its program.
    fn drop(&mut self) {
        drop(self.turn.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_autosave_stays_until_the_session_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let mut autosave = Autosave::open(folder.path()).unwrap();
        assert!(
            Autosave::open(folder.path()).is_none(),
            "another app has its own work"
        );
        assert!(!autosave.is_there());
        let mut session = SessionFile::default();
        session.master.level_db = -7.0;
        assert_eq!(
            autosave.write(session.clone(), Some("/a.ondes-session".into())),
            None
        );
        assert_eq!(autosave.finish(), None);
        drop(autosave);
        let mut autosave = Autosave::open(folder.path()).unwrap();
        assert!(autosave.is_there());
        assert_eq!(
            autosave.read().unwrap(),
            (session, Some("/a.ondes-session".into()))
        );
        autosave.clear();
        assert!(!autosave.is_there());
    }
}
