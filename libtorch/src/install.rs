//! A folder with libtorch, put in its place at once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::fetch::{agent, check, fetch};
use crate::recipe::{MARK, Recipe};
use crate::unpack::unpack;
use crate::{Error, Progress};

/// Where wheels come from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// From where they are published.
    Network,
    /// From a folder that somebody has put them into, under their own names.
    Folder(&'a Path),
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was there.
    AlreadyThere,
    /// It was made.
    Installed,
}

/// Sees to it that a folder holds what the recipe says.
///
/// It is made beside its place, in a folder that ends with `.part`, and gets its name when all of it is there. One that is
/// killed leaves that folder behind, with what was fetched, and the next one goes on with it. Two at a time wait for one
/// another. `finish` may add something to the folder before it gets its name.
///
/// # Errors
/// [`Error`], in one line. What was in the place before is still there then.
pub fn install(
    recipe: &Recipe,
    folder: &Path,
    source: Source<'_>,
    finish: impl FnOnce(&Path) -> Result<(), Error>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Done, Error> {
    if recipe.fault(folder).is_none() {
        return Ok(Done::AlreadyThere);
    }
    let beside = |end: &str| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        folder.with_file_name(format!("{name}.{end}"))
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::at(parent))?;
    // The system lets go of it when we end, however we end.
    let lock = beside("lock");
    let held = File::create(&lock).map_err(Error::at(&lock))?;
    held.lock().map_err(Error::at(&lock))?;
    if recipe.fault(folder).is_none() {
        return Ok(Done::AlreadyThere);
    }
    let work = beside("part");
    let (wheels, made) = (work.join("wheels"), work.join("made"));
    clear(&made)?;
    for path in [&wheels, &made] {
        fs::create_dir_all(path).map_err(Error::at(path))?;
    }
    let agent = agent();
    for wheel in &recipe.wheels {
        let path = match source {
            Source::Network => {
                let path = wheels.join(wheel.file());
                fetch(&agent, wheel, &path, progress)?;
                path
            }
            Source::Folder(folder) => given(folder, wheel.file(), &wheel.url)?,
        };
        check(wheel, &path, progress).inspect_err(|_| {
            // What is not what was published is of no use to the next one either.
            if matches!(source, Source::Network) {
                let _ = fs::remove_file(&path);
            }
        })?;
        unpack(wheel, &path, &made, progress)?;
    }
    finish(&made)?;
    if let Some(fault) = recipe.missing(&made) {
        return Err(Error::Fault(fault));
    }
    let mark = made.join(MARK);
    fs::write(&mark, &recipe.version).map_err(Error::at(&mark))?;
    clear(folder)?;
    fs::rename(&made, folder).map_err(Error::at(folder))?;
    clear(&work)?;
    Ok(Done::Installed)
}

/// A wheel that somebody has put into a folder.
fn given(folder: &Path, file: &str, url: &str) -> Result<PathBuf, Error> {
    let path = folder.join(file);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Absent { folder: folder.into(), file: file.into(), url: url.into() })
}

/// Removes a folder with all that is in it, if it is there.
fn clear(folder: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(Error::at(folder))
}
