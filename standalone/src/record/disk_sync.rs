//! Syncs recordings to the disk on a thread of its own.
//!
//! A process that is killed loses nothing that was written; a power cut loses what the system had
//! not yet synced. A sync may take seconds, too long for the thread that writes.

use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use ondes_engine::media::{MediaError, display_name};

/// Files that can wait for a sync. If the queue is full, the caller asks again later.
const QUEUE_CAPACITY: usize = 256;

/// Handle on the thread that syncs files.
pub(super) struct DiskSync {
    files: Option<Sender<(File, String)>>,
    failures: Receiver<MediaError>,
    thread: Option<JoinHandle<()>>,
}

impl DiskSync {
    pub fn start() -> std::io::Result<Self> {
        let (files, todo) = crossbeam_channel::bounded::<(File, String)>(QUEUE_CAPACITY);
        let (report_error, failures) = crossbeam_channel::unbounded();
        let work = move || {
            for (file, name) in todo {
                if let Err(source) = file.sync_data() {
                    // The receiver is gone only when the recorder is dropped.
                    drop(report_error.send(MediaError::Unwritable { file: name, source }));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("ondes-disk".into())
            .spawn(work)?;
        Ok(Self {
            files: Some(files),
            failures,
            thread: Some(thread),
        })
    }

    /// Requests a sync of what was written to `file`. Returns false if the queue is full.
    pub fn request_sync(&self, file: &File, path: &Path) -> bool {
        let Ok(file) = file.try_clone() else {
            return false;
        };
        self.files
            .as_ref()
            .is_some_and(|files| files.try_send((file, display_name(path))).is_ok())
    }

    /// Returns the errors since the last call.
    pub fn failures(&self) -> impl Iterator<Item = MediaError> + '_ {
        self.failures.try_iter()
    }

    /// Waits until all files are synced and returns the errors.
    pub fn finish(&mut self) -> Vec<MediaError> {
        drop(self.files.take());
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic, and the files would stay as they are.
            drop(thread.join());
        }
        self.failures.try_iter().collect()
    }
}
