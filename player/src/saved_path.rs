//! Paths in saved files. A file below the folder of the session or preset that names it is written
//! relative to that folder, with `/` on all systems, so that the folder can be moved; others are
//! absolute.

use std::path::{Component, Path, PathBuf, absolute};

/// Returns the absolute path of the folder that a saved file is in.
#[must_use]
pub fn folder(file: &Path) -> PathBuf {
    let file = absolute(file).unwrap_or_else(|_| file.to_owned());
    file.parent().map(Path::to_owned).unwrap_or_default()
}

/// Returns the path to write in a file in `folder`, which is absolute.
#[must_use]
pub fn to_saved(path: &Path, folder: &Path) -> PathBuf {
    let Ok(path) = absolute(path) else {
        return path.to_owned();
    };
    let Ok(below) = path.strip_prefix(folder) else {
        return path;
    };
    let names: Option<Vec<&str>> = below
        .components()
        .map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    names
        .filter(|names| !names.is_empty())
        .map_or(path.clone(), |names| names.join("/").into())
}

/// Returns the path that a file in `folder`, which is absolute, names.
#[must_use]
pub fn from_saved(path: &Path, folder: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        path.to_owned()
    } else {
        folder.join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_folder_are_relative() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let folder = folder(&at("songs/night.ondes-session"));
        assert_eq!(folder, at("songs"));
        for (path, saved) in [
            (at("songs/birds.ts"), PathBuf::from("birds.ts")),
            (at("songs/models/b.ondes"), "models/b.ondes".into()),
            (at("models/b.ondes"), at("models/b.ondes")),
            (at("songs/../b.ondes"), at("songs/../b.ondes")),
            (at("songs 2/b.ondes"), at("songs 2/b.ondes")),
        ] {
            assert_eq!(to_saved(&path, &folder), saved);
            assert_eq!(from_saved(&saved, &folder), path, "it is found again");
        }
        assert_eq!(
            from_saved("../b.ondes".as_ref(), &folder),
            at("songs/../b.ondes")
        );
        // A path that is relative to the working directory is not left to chance.
        assert_eq!(
            to_saved("b.ondes".as_ref(), &folder),
            absolute("b.ondes").unwrap()
        );
    }
}
