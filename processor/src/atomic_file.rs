//! Writing files atomically.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::path::Path;

/// Writes a file; its folder is created if necessary. At any time the file is either the old or the new one.
///
/// # Errors
/// Returns an error if the file cannot be written, of kind [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if there
/// is one and `overwrite` is false.
pub fn write(path: &Path, bytes: &[u8], overwrite: bool) -> Result<()> {
    let folder = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    // Several windows or hosts may write at once, so the temporary name is unique.
    let temporary = path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    let moved = write_and_sync(&temporary, bytes).and_then(|()| {
        if !overwrite {
            // Reserves the name: the rename replaces only this empty file.
            OpenOptions::new().write(true).create_new(true).open(path)?;
        }
        std::fs::rename(&temporary, path).inspect_err(|_| {
            if !overwrite {
                let _ = std::fs::remove_file(path);
            }
        })
    });
    if moved.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    moved
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
