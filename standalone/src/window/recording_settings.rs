//! Settings of recordings: folder, format, and files per track.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::record::{RecordingFormat, take_names};

/// Settings of recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingSettings {
    /// Folder; by default `Ondes` in the user's music folder.
    pub folder: Option<PathBuf>,
    /// File format.
    pub format: RecordingFormat,
    /// Records each track to its own file as well, after its fader.
    pub tracks: bool,
}

/// Files of a recording.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordingFiles {
    pub master: PathBuf,
    /// Files of tracks by slot.
    pub tracks: Vec<(usize, PathBuf)>,
}

impl RecordingSettings {
    /// Returns the folder for recordings; `None` if the user has no folders.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let music = || Some(dirs::audio_dir().or_else(dirs::home_dir)?.join("Ondes"));
        self.folder.clone().or_else(music)
    }

    /// Returns file names for a recording with a title, and for tracks with slots and names, and
    /// creates the folder.
    pub(super) fn files(
        &self,
        title: &str,
        tracks: &[(usize, String)],
    ) -> anyhow::Result<RecordingFiles> {
        let folder = self.folder().context("there is no folder for recordings")?;
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let tracks = if self.tracks { tracks } else { &[] };
        Ok(files(&folder, title, tracks, self.format))
    }
}

fn files(
    folder: &Path,
    title: &str,
    tracks: &[(usize, String)],
    format: RecordingFormat,
) -> RecordingFiles {
    let name = |(slot, name): &(usize, String)| format!("{} {name}", slot + 1).trim().to_owned();
    let names: Vec<String> = std::iter::once(String::new())
        .chain(tracks.iter().map(name))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut paths = take_names(folder, title, &names, format).into_iter();
    let master = paths.next().unwrap_or_default();
    RecordingFiles {
        master,
        tracks: tracks.iter().map(|(slot, _)| *slot).zip(paths).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_get_files_besides_the_master_if_enabled() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let tracks = [(0, "Bowed".to_owned()), (4, "Bowed".to_owned())];
        let recording_settings = RecordingSettings {
            folder: Some(folder.clone()),
            format: RecordingFormat::Flac,
            tracks: true,
        };
        let RecordingFiles {
            master,
            tracks: found,
        } = recording_settings.files("Stage", &tracks).unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(folder.is_dir() && master.starts_with(&folder));
        assert!(
            name(&master).starts_with("Stage ") && name(&master).ends_with(".flac"),
            "{master:?}"
        );
        assert_eq!(
            found.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(),
            [0, 4]
        );
        assert!(
            name(&found[0].1).ends_with(" 1 Bowed.flac")
                && name(&found[1].1).ends_with(" 5 Bowed.flac"),
            "{found:?}"
        );
        let recording_settings = RecordingSettings {
            tracks: false,
            ..recording_settings
        };
        assert!(
            recording_settings
                .files("Stage", &tracks)
                .unwrap()
                .tracks
                .is_empty()
        );
        fs::write(folder.join("file"), "x").unwrap();
        let nowhere = RecordingSettings {
            folder: Some(folder.join("file/a")),
            ..recording_settings
        };
        assert!(
            nowhere
                .files("Stage", &tracks)
                .unwrap_err()
                .to_string()
                .contains("file/a")
        );
    }
}
