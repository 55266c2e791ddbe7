//! The list of impulse responses, and the choice of the cabinet.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use ondes_player::cabinet::bundled::BUNDLED;
use ondes_player::cabinet::{files, folders};

use super::InstanceViewModel;
use super::undo::LoadedFile;
use crate::command::CabinetCommand;

/// Files in the user's folders, read on a thread of its own.
pub struct CabinetList {
    /// Paths, in the order to show.
    pub list: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    scan: Option<JoinHandle<Vec<PathBuf>>>,
}

impl CabinetList {
    /// Creates an empty list and starts to read the folders.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let mut cabinets = Self {
            list: Vec::new(),
            folders,
            scan: None,
        };
        cabinets.rescan();
        cabinets
    }

    /// Creates the list of the user's folders.
    #[must_use]
    pub fn of_user() -> Self {
        Self::new(folders())
    }

    /// Returns the first folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folders.first().map(PathBuf::as_path)
    }

    /// Reads the folders again.
    pub fn rescan(&mut self) {
        if self.scan.is_none() {
            let folders = self.folders.clone();
            self.scan = Some(std::thread::spawn(move || {
                folders.iter().flat_map(|folder| files(folder)).collect()
            }));
        }
    }

    /// Takes the result of the thread, if it has ended. Returns whether it is still running.
    pub fn poll(&mut self) -> bool {
        if self.scan.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish();
        }
        self.scan.is_some()
    }

    /// Waits for the thread.
    fn finish(&mut self) {
        if let Some(Ok(found)) = self.scan.take().map(JoinHandle::join) {
            self.list = found;
        }
    }
}

impl InstanceViewModel {
    pub(super) fn handle_cabinet(&mut self, command: CabinetCommand) {
        match command {
            CabinetCommand::Load(path) => self.load_cabinet(path),
            CabinetCommand::LoadBundled(index) => {
                if let Some(cabinet) = BUNDLED.get(index) {
                    self.record_change(cabinet.name, |this| {
                        this.instance.choose_bundled_cabinet(cabinet);
                    });
                }
            }
            CabinetCommand::Remove => {
                self.record_change("No cabinet", |this| this.instance.remove_cabinet());
            }
            CabinetCommand::Automatic => self.record_change("Automatic cabinet", |this| {
                this.instance.set_automatic_cabinet(true);
            }),
            CabinetCommand::Rescan => self.cabinets.rescan(),
        }
    }

    pub(super) fn load_cabinet(&mut self, path: PathBuf) {
        self.loading_begins(LoadedFile::Cabinet);
        let job = self.instance.load_cabinet(path);
        self.background_jobs.push(job);
    }
}

impl Drop for CabinetList {
    fn drop(&mut self) {
        // Joined, since a plugin's code may be unloaded after this.
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_folders_are_listed_as_they_come() {
        let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let at = |folder: &tempfile::TempDir, name: &str| folder.path().join(name);
        for path in [
            at(&one, "b.wav"),
            at(&one, "a.FLAC"),
            at(&one, "notes.txt"),
            at(&other, "c.aiff"),
        ] {
            std::fs::write(path, "").unwrap();
        }
        let mut cabinets = CabinetList::new(vec![
            one.path().into(),
            other.path().into(),
            at(&one, "nowhere"),
        ]);
        cabinets.finish();
        assert_eq!(
            cabinets.list,
            [at(&one, "a.FLAC"), at(&one, "b.wav"), at(&other, "c.aiff")]
        );
        assert_eq!(cabinets.folder(), Some(one.path()));
        std::fs::write(at(&other, "d.wav"), "").unwrap();
        cabinets.rescan();
        cabinets.finish();
        assert_eq!((cabinets.list.len(), cabinets.poll()), (4, false));
    }
}
