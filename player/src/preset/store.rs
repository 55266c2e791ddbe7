//! The user's preset folders.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use ondes_engine::files;

use super::Preset;
use super::file::{EXTENSION, PresetError, PresetFileError, serialize};
use crate::{folder, saved_path};

/// Environment variable with the folders of presets, in the form of `PATH`; presets are saved to
/// the first.
const FOLDERS: &str = "ONDES_PRESETS";

/// Returns the user's preset folders: `ONDES_PRESETS`, or `ondes/presets` in the user's data
/// folder.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named)
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
    }
    dirs::data_dir()
        .map(|data| data.join("ondes").join("presets"))
        .into_iter()
        .collect()
}

/// Lists the preset files in a folder and its subfolders ([`folder::files`]).
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    folder::files(folder, is_preset)
}

/// Returns whether the path has the extension of preset files.
#[must_use]
pub fn is_preset(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION))
}

/// Returns a file name, valid on all systems, for a preset's name.
#[must_use]
pub fn file_name(name: &str) -> String {
    // Leaves room within 255 bytes for the extension and for the suffix of temporary files.
    const LONGEST: usize = 180;
    let safe = |sign: char| {
        if sign.is_alphanumeric() || " -_+,'()&.".contains(sign) {
            sign
        } else {
            '_'
        }
    };
    let mut stem: String = name.trim().chars().map(safe).collect();
    while stem.len() > LONGEST {
        stem.pop();
    }
    // Files that begin with a dot are hidden; Windows drops trailing dots and spaces.
    let mut stem = stem
        .trim_start_matches('.')
        .trim_end_matches(['.', ' '])
        .trim_start()
        .to_owned();
    let first = stem
        .split('.')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_uppercase();
    let device = |start: &str| {
        first
            .strip_prefix(start)
            .is_some_and(|end| end.len() == 1 && end > "0" && end <= "9")
    };
    if stem.is_empty()
        || ["CON", "PRN", "AUX", "NUL"].contains(&first.as_str())
        || device("COM")
        || device("LPT")
    {
        stem.insert(0, '_');
    }
    format!("{stem}.{EXTENSION}")
}

/// Writes a preset into a folder, which is created if necessary, and returns the path. The write is
/// atomic; an existing file is replaced only with `overwrite`. Files below the folder are named
/// relative to it ([`saved_path`]).
///
/// # Errors
/// Returns a [`PresetFileError`] if the preset is invalid, exists already or cannot be written.
pub fn save(folder: &Path, preset: &Preset, overwrite: bool) -> Result<PathBuf, PresetFileError> {
    let path = folder.join(file_name(&preset.name));
    let mut written = preset.clone();
    let base = saved_path::folder(&path);
    written
        .sound
        .selection
        .map_paths(&|path| saved_path::to_saved(path, &base));
    let saved = serialize(&written).and_then(|bytes| put(folder, &path, &bytes, overwrite));
    saved.map_err(|error| PresetFileError {
        path: path.clone(),
        error,
    })?;
    Ok(path)
}

fn put(folder: &Path, path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), PresetError> {
    std::fs::create_dir_all(folder).map_err(PresetError::Io)?;
    let written = if overwrite {
        files::write(path, bytes)
    } else {
        files::write_new(path, bytes)
    };
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists if !overwrite => PresetError::AlreadyExists,
        _ => PresetError::Io(error),
    })
}

/// Deletes one of the user's presets.
///
/// # Errors
/// Returns a [`PresetFileError`] if the file cannot be deleted or is not a preset in or below one
/// of `folders`.
pub fn delete(folders: &[PathBuf], path: &Path) -> Result<(), PresetFileError> {
    let error = |error| PresetFileError {
        path: path.into(),
        error,
    };
    let is_plain = !path.components().any(|part| part == Component::ParentDir);
    let own = is_preset(path) && is_plain && folders.iter().any(|folder| path.starts_with(folder));
    if !own {
        return Err(error(PresetError::NotUserPreset));
    }
    std::fs::remove_file(path).map_err(|io| error(PresetError::Io(io)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::factory::FACTORY;
    use crate::preset::file::read;

    fn preset(name: &str) -> Preset {
        Preset {
            name: name.into(),
            ..FACTORY[0].preset().unwrap()
        }
    }

    #[test]
    fn a_model_beside_its_preset_moves_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let mut written = preset("Mine");
        written.sound.selection.model.path = Some(here.join("models/mine.ondes"));
        let path = save(&here, &written, false).unwrap();
        assert_eq!(read(&path).unwrap(), written);
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .contains("\"path\": \"models/mine.ondes\"")
        );
        std::fs::rename(&here, &there).unwrap();
        let moved = read(&there.join(path.file_name().unwrap())).unwrap();
        assert_eq!(
            moved.sound.selection.model.path,
            Some(there.join("models/mine.ondes"))
        );
    }

    #[test]
    fn saving_writes_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("not yet");
        let path = save(&folder, &preset("My/Pad"), false).unwrap();
        assert_eq!(
            (path.file_name().unwrap().to_str(), read(&path).unwrap()),
            (Some("My_Pad.ondes-preset"), preset("My/Pad"))
        );
        let again = save(&folder, &preset("My:Pad"), false).unwrap_err();
        assert!(matches!(again.error, PresetError::AlreadyExists));
        assert_eq!(read(&path).unwrap().name, "My/Pad", "it was not touched");
        save(&folder, &preset("My:Pad"), true).unwrap();
        assert_eq!(read(&path).unwrap().name, "My:Pad");
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            1,
            "nothing is left behind"
        );
        assert!(matches!(
            save(&folder, &preset(" "), true).unwrap_err().error,
            PresetError::InvalidName
        ));
        std::fs::write(folder.join("file"), "").unwrap();
        assert!(matches!(
            save(&folder.join("file"), &preset("x"), false)
                .unwrap_err()
                .error,
            PresetError::Io(_)
        ));
    }

    #[test]
    fn only_presets_of_the_user_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let path = save(folder.path(), &preset("x"), false).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        let inner = folder.path().join("in/y.ondes-preset");
        std::fs::write(&inner, "").unwrap();
        delete(&folders, &inner).unwrap();
        let around = folder
            .path()
            .join("..")
            .join(elsewhere.path().file_name().unwrap())
            .join("y.ondes-preset");
        for kept in [
            &folder.path().join("song.wav"),
            &elsewhere.path().join("x.ondes-preset"),
            &around,
        ] {
            std::fs::write(kept, "").unwrap();
            assert!(matches!(
                delete(&folders, kept).unwrap_err().error,
                PresetError::NotUserPreset
            ));
            assert!(kept.exists());
        }
        delete(&folders, &path).unwrap();
        assert!(!path.exists());
        assert!(matches!(
            delete(&folders, &path).unwrap_err().error,
            PresetError::Io(_)
        ));
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
