//! Installs libtorch into a folder, atomically.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::download::{agent, download, verify};
use crate::manifest::{Manifest, VERSION_FILE};
use crate::unpack::unpack;
use crate::{Error, InstallProgress};

/// Origin of the wheels.
#[derive(Clone, Copy, Debug)]
pub enum WheelSource<'a> {
    /// Downloads from the published URLs.
    Network,
    /// Reads from a folder that holds them under their published file names.
    Folder(&'a Path),
}

/// Result of a successful [`install`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The folder was complete.
    AlreadyThere,
    /// The folder was created or replaced.
    Installed,
}

/// Installs the contents of `manifest` into `folder`; does nothing if the folder is complete.
///
/// Files are prepared in a sibling folder with the suffix `.part`, which is renamed to `folder`
/// once complete. An interrupted installation keeps its downloads there, and the next one resumes
/// them. A lock file serialises concurrent installations. `finish` may add files before the rename.
///
/// # Errors
/// Returns an [`Error`] if a wheel cannot be read, verified or unpacked, or if `finish` fails; an
/// existing `folder` is then unchanged.
pub fn install(
    manifest: &Manifest,
    folder: &Path,
    source: WheelSource<'_>,
    finish: impl FnOnce(&Path) -> Result<(), Error>,
    progress: &mut dyn FnMut(InstallProgress<'_>),
) -> Result<InstallOutcome, Error> {
    if manifest.problem(folder).is_none() {
        return Ok(InstallOutcome::AlreadyThere);
    }
    let sibling = |suffix: &str| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        folder.with_file_name(format!("{name}.{suffix}"))
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::at(parent))?;
    // The system releases the lock when the process ends.
    let lock = sibling("lock");
    let held = File::create(&lock).map_err(Error::at(&lock))?;
    held.lock().map_err(Error::at(&lock))?;
    if manifest.problem(folder).is_none() {
        return Ok(InstallOutcome::AlreadyThere);
    }
    let part = sibling("part");
    let (wheels, staged) = (part.join("wheels"), part.join("staged"));
    remove_folder(&staged)?;
    for path in [&wheels, &staged] {
        fs::create_dir_all(path).map_err(Error::at(path))?;
    }
    let agent = agent();
    for wheel in &manifest.wheels {
        let path = match source {
            WheelSource::Network => {
                let path = wheels.join(wheel.file());
                download(&agent, wheel, &path, progress)?;
                path
            }
            WheelSource::Folder(folder) => local_wheel(folder, wheel.file(), &wheel.url)?,
        };
        verify(wheel, &path, progress).inspect_err(|_| {
            // A corrupt download must not be resumed; a user's own file is kept.
            if matches!(source, WheelSource::Network) {
                let _ = fs::remove_file(&path);
            }
        })?;
        unpack(wheel, &path, &staged, progress)?;
    }
    finish(&staged)?;
    if let Some(problem) = manifest.missing_file(&staged) {
        return Err(Error::Incomplete(problem));
    }
    let version = staged.join(VERSION_FILE);
    fs::write(&version, &manifest.version).map_err(Error::at(&version))?;
    remove_folder(folder)?;
    fs::rename(&staged, folder).map_err(Error::at(folder))?;
    remove_folder(&part)?;
    Ok(InstallOutcome::Installed)
}

/// Returns the path of a wheel in a user's folder.
fn local_wheel(folder: &Path, file: &str, url: &str) -> Result<PathBuf, Error> {
    let path = folder.join(file);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::MissingWheel {
        folder: folder.into(),
        file: file.into(),
        url: url.into(),
    })
}

/// Removes a folder and its contents, if it exists.
fn remove_folder(folder: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(Error::at(folder))
}
