//! Brings recordings from the system's memory to the disk, off the way of whoever writes them.
//!
//! A process that is killed loses nothing that was written; a power cut loses what the system had not brought to the disk.
//! Asking for that can take seconds, so it has a thread of its own.

use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use ondes_engine::media::{MediaError, display_name};

/// Files that can wait. Whoever finds no place asks again later.
const WAITING: usize = 256;

/// The thread that waits for the disk.
pub(super) struct Disk {
    files: Option<Sender<(File, String)>>,
    failures: Receiver<MediaError>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    pub fn start() -> std::io::Result<Self> {
        let (files, todo) = crossbeam_channel::bounded::<(File, String)>(WAITING);
        let (tell, failures) = crossbeam_channel::unbounded();
        let work = move || {
            for (file, name) in todo {
                if let Err(source) = file.sync_data() {
                    // Nobody is there to be told at the very end only.
                    drop(tell.send(MediaError::Unwritable { file: name, source }));
                }
            }
        };
        let thread = std::thread::Builder::new().name("ondes-disk".into()).spawn(work)?;
        Ok(Self { files: Some(files), failures, thread: Some(thread) })
    }

    /// Asks for what was written of a file to be brought to the disk. Gives whether there was a place to wait.
    pub fn bring(&self, file: &File, path: &Path) -> bool {
        let Ok(file) = file.try_clone() else { return false };
        self.files.as_ref().is_some_and(|files| files.try_send((file, display_name(path))).is_ok())
    }

    /// What went wrong since the last call.
    pub fn failures(&self) -> impl Iterator<Item = MediaError> + '_ {
        self.failures.try_iter()
    }

    /// Waits until everything is done, and gives what went wrong.
    pub fn finish(&mut self) -> Vec<MediaError> {
        drop(self.files.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic; and if it did, the files are as they are.
            drop(thread.join());
        }
        self.failures.try_iter().collect()
    }
}
