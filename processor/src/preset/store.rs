//! The user's presets: files in folders.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Preset;
use super::file::{EXTENSION, Fault, Refused, serialize};

/// The variable that names folders of presets, in the form of `PATH`; the first one is saved to.
const FOLDERS: &str = "ONDES_PRESETS";

/// The user's folders: those of `ONDES_PRESETS`, else `ondes/presets` among the user's data.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named).filter(|folder| !folder.as_os_str().is_empty()).collect();
    }
    dirs::data_dir().map(|data| data.join("ondes").join("presets")).into_iter().collect()
}

/// The preset files in a folder, in the order of their names.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_preset(path)).collect();
    paths.sort();
    paths
}

/// Whether a file of that name should be a preset.
#[must_use]
pub fn is_preset(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == EXTENSION)
}

/// A file name that all systems take, from what a user types.
#[must_use]
pub fn file_name(name: &str) -> String {
    // What is left of 255 bytes beside the ending and what a file has while it is written.
    const LONGEST: usize = 180;
    let safe = |sign: char| if sign.is_alphanumeric() || " -_+,'()&.".contains(sign) { sign } else { '_' };
    let mut stem: String = name.trim().chars().map(safe).collect();
    while stem.len() > LONGEST {
        stem.pop();
    }
    // Files that begin with a dot are hidden; Windows drops dots and blanks at the end.
    let mut stem = stem.trim_start_matches('.').trim_end_matches(['.', ' ']).trim_start().to_owned();
    let first = stem.split('.').next().unwrap_or("").trim().to_ascii_uppercase();
    let device = |start: &str| first.strip_prefix(start).is_some_and(|end| end.len() == 1 && end > "0" && end <= "9");
    if stem.is_empty() || ["CON", "PRN", "AUX", "NUL"].contains(&first.as_str()) || device("COM") || device("LPT") {
        stem.insert(0, '_');
    }
    format!("{stem}.{EXTENSION}")
}

/// Writes a preset into a folder, which is made where it is missing. The file is whole or not there at any time; one of that
/// name is only replaced with `overwrite`. Gives its path.
///
/// # Errors
/// The file, and why it is not there.
pub fn save(folder: &Path, preset: &Preset, overwrite: bool) -> Result<PathBuf, Refused> {
    let path = folder.join(file_name(&preset.name));
    let saved = serialize(preset).and_then(|bytes| put(folder, &path, &bytes, overwrite));
    saved.map_err(|fault| Refused { path: path.clone(), fault })?;
    Ok(path)
}

fn put(folder: &Path, path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(Fault::Io)?;
    // Two windows, or two hosts, may write at once.
    let own = path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    let written = write(&own, bytes).map_err(Fault::Io);
    let moved = written.and_then(|()| if overwrite { Ok(()) } else { reserve(path) });
    let moved = moved.and_then(|()| {
        std::fs::rename(&own, path).map_err(|error| {
            if !overwrite {
                let _ = std::fs::remove_file(path);
            }
            Fault::Io(error)
        })
    });
    if moved.is_err() {
        let _ = std::fs::remove_file(&own);
    }
    moved
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Takes a name that nobody has, so that the file which is renamed to it replaces no other.
fn reserve(path: &Path) -> Result<(), Fault> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Fault::Exists),
        Err(error) => Err(Fault::Io(error)),
    }
}

/// Deletes a preset of the user.
///
/// # Errors
/// The file, and why it is still there; also when it is no preset in one of these folders.
pub fn delete(folders: &[PathBuf], path: &Path) -> Result<(), Refused> {
    let refused = |fault| Refused { path: path.into(), fault };
    let own = is_preset(path) && folders.iter().any(|folder| path.parent() == Some(folder));
    if !own {
        return Err(refused(Fault::NotTheUsers));
    }
    std::fs::remove_file(path).map_err(|error| refused(Fault::Io(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::factory::FACTORY;
    use crate::preset::file::read;

    fn preset(name: &str) -> Preset {
        Preset { name: name.into(), ..FACTORY[0].preset().unwrap() }
    }

    #[test]
    fn what_is_saved_is_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("not yet");
        let path = save(&folder, &preset("My/Pad"), false).unwrap();
        assert_eq!(
            (path.file_name().unwrap().to_str(), read(&path).unwrap()),
            (Some("My_Pad.ondes-preset"), preset("My/Pad"))
        );
        let again = save(&folder, &preset("My:Pad"), false).unwrap_err();
        assert!(matches!(again.fault, Fault::Exists));
        assert_eq!(read(&path).unwrap().name, "My/Pad", "it was not touched");
        save(&folder, &preset("My:Pad"), true).unwrap();
        assert_eq!(read(&path).unwrap().name, "My:Pad");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
        assert!(matches!(save(&folder, &preset(" "), true).unwrap_err().fault, Fault::Name));
        std::fs::write(folder.join("file"), "").unwrap();
        assert!(matches!(save(&folder.join("file"), &preset("x"), false).unwrap_err().fault, Fault::Io(_)));
    }

    #[test]
    fn only_presets_of_the_user_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let path = save(folder.path(), &preset("x"), false).unwrap();
        let (other, inner) = (folder.path().join("song.wav"), folder.path().join("in/y.ondes-preset"));
        std::fs::create_dir(folder.path().join("in")).unwrap();
        for kept in [&other, &inner] {
            std::fs::write(kept, "").unwrap();
            assert!(matches!(delete(&folders, kept).unwrap_err().fault, Fault::NotTheUsers));
            assert!(kept.exists());
        }
        delete(&folders, &path).unwrap();
        assert!(!path.exists());
        assert!(matches!(delete(&folders, &path).unwrap_err().fault, Fault::Io(_)));
    }

    #[test]
    fn names_become_safe_file_names() {
        let cases = [
            ("Süß & warm (2)", "Süß & warm (2)"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("C:\\x?*", "C__x__"),
            (" v1.2 . ", "v1.2"),
            ("...", "_"),
            ("nul", "_nul"),
            ("Com1.x", "_Com1.x"),
            ("Company", "Company"),
        ];
        for (name, stem) in cases {
            assert_eq!(file_name(name), format!("{stem}.ondes-preset"));
        }
        let long = file_name(&"長".repeat(200));
        assert!(long.len() < 200 && long.ends_with("長.ondes-preset"));
    }
}
