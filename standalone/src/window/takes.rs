//! How recordings are made: where they go, as what, and whether each track gets a file of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::record::{Format, take_names};

/// What the user has chosen about recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Takes {
    /// Where they go; `Ondes` among the user's music where nothing is chosen.
    pub folder: Option<PathBuf>,
    /// What they are written as.
    pub format: Format,
    /// Besides the master, each track gets a file, as it is after its fader.
    pub tracks: bool,
}

/// Files of a recording that begins now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub master: PathBuf,
    /// By the places of tracks.
    pub tracks: Vec<(usize, PathBuf)>,
}

impl Takes {
    /// Where recordings go; none where the user has no folders at all.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let music = || Some(dirs::audio_dir().or_else(dirs::home_dir)?.join("Ondes"));
        self.folder.clone().or_else(music)
    }

    /// Finds names for a recording of that title, of tracks with their places and names, in the folder, which is made where there
    /// is none.
    pub(super) fn files(&self, title: &str, tracks: &[(usize, String)]) -> anyhow::Result<Files> {
        let folder = self.folder().context("there is no folder for recordings")?;
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let tracks = if self.tracks { tracks } else { &[] };
        Ok(files(&folder, title, tracks, self.format))
    }
}

fn files(folder: &Path, title: &str, tracks: &[(usize, String)], format: Format) -> Files {
    let name = |(place, name): &(usize, String)| format!("{} {name}", place + 1).trim().to_owned();
    let names: Vec<String> = std::iter::once(String::new()).chain(tracks.iter().map(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut paths = take_names(folder, title, &names, format).into_iter();
    let master = paths.next().unwrap_or_default();
    Files { master, tracks: tracks.iter().map(|(place, _)| *place).zip(paths).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_track_has_a_file_besides_the_master_where_that_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let tracks = [(0, "Bowed".to_owned()), (4, "Bowed".to_owned())];
        let takes = Takes { folder: Some(folder.clone()), format: Format::Flac, tracks: true };
        let Files { master, tracks: found } = takes.files("Stage", &tracks).unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(folder.is_dir() && master.starts_with(&folder));
        assert!(name(&master).starts_with("Stage ") && name(&master).ends_with(".flac"), "{master:?}");
        assert_eq!(found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [0, 4]);
        assert!(
            name(&found[0].1).ends_with(" 1 Bowed.flac") && name(&found[1].1).ends_with(" 5 Bowed.flac"),
            "{found:?}"
        );
        let takes = Takes { tracks: false, ..takes };
        assert!(takes.files("Stage", &tracks).unwrap().tracks.is_empty());
        fs::write(folder.join("file"), "x").unwrap();
        let nowhere = Takes { folder: Some(folder.join("file/a")), ..takes };
        assert!(nowhere.files("Stage", &tracks).unwrap_err().to_string().contains("file/a"));
    }
}
