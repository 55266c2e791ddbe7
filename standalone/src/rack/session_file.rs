//! The session file: all tracks and the master, as readable JSON.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use ondes_engine::files;
use ondes_player::library::{self, FileReference};
use ondes_player::parameter_values::ParameterValues;
use ondes_player::preset::{self, Preset, store};
use ondes_player::product::Product;
use ondes_player::saved_path;
use ondes_player::state::InstanceState;
use ondes_player::trust;
use serde::{Deserialize, Serialize};

use super::fader::FaderSettings;
use crate::io::{AudioChoice, MidiChoice};

/// Value of the field `format`.
const FORMAT: &str = "ondes-session";
/// File name extension of sessions.
pub const EXTENSION: &str = "ondes-session";
/// Version that is written; older versions can be read.
const VERSION: u32 = 1;
/// Largest session file, bytes: more than the largest embedded model takes in Base64, as for
/// presets.
const MAX_BYTES: u64 = preset::file::LARGEST;

/// Session as it is saved, JSON with the extension `.ondes-session`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFile {
    format: String,
    version: u32,
    /// Fader of the master.
    #[serde(default)]
    pub master: FaderSettings,
    /// Tracks, in order.
    #[serde(default)]
    pub tracks: Vec<SavedTrack>,
    /// Models that MIDI program changes select, in order.
    #[serde(default)]
    pub set_list: Vec<FileReference>,
    /// Audio devices.
    #[serde(default)]
    pub audio: AudioChoice,
    /// MIDI ports.
    #[serde(default)]
    pub midi: MidiChoice,
}

impl Default for SessionFile {
    fn default() -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            master: FaderSettings::default(),
            tracks: Vec::new(),
            set_list: Vec::new(),
            audio: AudioChoice::default(),
            midi: MidiChoice::default(),
        }
    }
}

/// Track as it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedTrack {
    /// Name; empty for the model's name.
    #[serde(default)]
    pub name: String,
    /// Instrument or effect.
    pub product: Product,
    /// Parameter values by id, in their units.
    #[serde(default)]
    pub parameters: ParameterValues,
    /// Model, macros and controller mappings.
    pub selection: InstanceState,
    /// Fader of the track.
    #[serde(rename = "mix", default)]
    pub fader: FaderSettings,
    /// Audio input.
    #[serde(default)]
    pub input: TrackInput,
    /// MIDI channels, one bit each.
    #[serde(default = "all_channels")]
    pub midi_channels: u16,
}

fn all_channels() -> u16 {
    u16::MAX
}

/// Audio input of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackInput {
    /// No audio input.
    #[default]
    Nothing,
    /// Input channels of the audio device.
    Channels {
        /// First channel, counted from 0.
        first: usize,
        /// Number of channels, 1 or 2.
        count: usize,
    },
    /// A recording.
    File {
        /// Path of the recording.
        path: PathBuf,
        /// Loops the recording.
        #[serde(default)]
        looped: bool,
    },
}

impl TrackInput {
    /// Returns the path of the recording, if this is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns whether this is the recording `file`.
    #[must_use]
    pub fn is_file(&self, file: &Path) -> bool {
        self.file() == Some(file)
    }
}

impl SessionFile {
    /// Returns whether a file is a session, or a preset, by its extension.
    #[must_use]
    pub fn is_readable(path: &Path) -> bool {
        let ending = path.extension().unwrap_or_default();
        ending.eq_ignore_ascii_case(EXTENSION) || store::is_preset(path)
    }

    /// Returns a session whose only track has the sound of a preset; an effect hears the first two
    /// inputs of the device.
    fn of_preset(preset: Preset) -> Self {
        let input = match preset.product {
            Product::Instrument => TrackInput::Nothing,
            Product::Effect => TrackInput::Channels { first: 0, count: 2 },
        };
        let track = SavedTrack {
            name: preset.name,
            product: preset.product,
            parameters: preset.sound.parameters,
            selection: *preset.sound.selection,
            fader: FaderSettings::default(),
            input,
            midi_channels: all_channels(),
        };
        Self {
            tracks: vec![track],
            ..Self::default()
        }
    }

    /// Reads a session, or a preset as a session of one track. Relative paths in it become absolute
    /// ([`saved_path`]).
    ///
    /// # Errors
    /// Returns an error that names the file and what is wrong with it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        if store::is_preset(path) {
            let preset = preset::file::read(path).map_err(|error| anyhow!("{error}"))?;
            return Ok(Self::of_preset(preset));
        }
        let text = files::read(path, MAX_BYTES).with_context(|| name.to_string())?;
        let mut session =
            Self::parse(files::without_mark(&text)).with_context(|| name.to_string())?;
        let folder = saved_path::folder(path);
        session.map_paths(&|path| saved_path::from_saved(path, &folder));
        Ok(session)
    }

    fn parse(text: &[u8]) -> anyhow::Result<Self> {
        /// Checked first, since the rest may be of a later version.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let Ok(head) = serde_json::from_slice::<Head>(text) else {
            bail!("not an Ondes session")
        };
        ensure!(head.format == FORMAT, "not an Ondes session");
        ensure!(
            head.version <= VERSION,
            "session version {}; this Ondes reads up to version {VERSION}",
            head.version
        );
        serde_json::from_slice(text)
            .map_err(|error| anyhow!("{}", files::shortened(&error.to_string())))
    }

    fn map_paths(&mut self, map: &impl Fn(&Path) -> PathBuf) {
        for track in &mut self.tracks {
            track.selection.map_paths(map);
            if let TrackInput::File { path, .. } = &mut track.input {
                *path = map(path);
            }
        }
        self.set_list
            .iter_mut()
            .filter_map(|model| model.path.as_mut())
            .for_each(|path| *path = map(path));
    }

    /// Lets the TorchScript programs of the tracks and of the set list run until this process ends.
    pub fn allow_programs(&self) {
        let selections = || self.tracks.iter().map(|track| &track.selection);
        let of_blocks = selections()
            .flat_map(|selection| &selection.blocks)
            .filter_map(|block| block.file.as_ref());
        let models = selections()
            .map(|selection| &selection.model)
            .chain(of_blocks)
            .chain(&self.set_list);
        for model in models {
            // A reference without a hash means whatever is at the path.
            let at_path = model.path.as_deref().filter(|_| model.hash.is_empty());
            match at_path.map(library::program) {
                Some(Ok(program)) => trust::allow_for_this_process(&program.hash),
                Some(Err(_)) => {}
                None => trust::allow_for_this_process(&model.hash),
            }
        }
    }

    /// Writes the session; replaces an existing file only when it is complete. Files below its
    /// folder are named relative to it ([`saved_path`]).
    ///
    /// # Errors
    /// Returns an error that names the file and the reason; also if the session would be too large
    /// to be read.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let write = || -> anyhow::Result<()> {
            let base = saved_path::folder(path);
            let mut session = self.clone();
            session.map_paths(&|path| saved_path::to_saved(path, &base));
            let mut text = serde_json::to_vec_pretty(&session)?;
            text.push(b'\n');
            let (megabytes, most) = (text.len() as u64 >> 20, MAX_BYTES >> 20);
            ensure!(
                text.len() as u64 <= MAX_BYTES,
                "the session has {megabytes} MB with its models, at most {most} MB are supported; do not save large \
                 models with the project"
            );
            Ok(files::write(path, &text)?)
        };
        write().with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_survive_writing_and_bad_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ondes-session");
        let track = SavedTrack {
            name: "Lead".into(),
            product: Product::Instrument,
            parameters: ParameterValues::new(),
            selection: InstanceState::default(),
            fader: FaderSettings {
                level_db: -3.0,
                pan: 0.25,
                ..FaderSettings::default()
            },
            input: TrackInput::File {
                path: folder.path().join("takes/a.wav"),
                looped: true,
            },
            midi_channels: 1,
        };
        let model = FileReference {
            path: Some(folder.path().join("b.ondes")),
            ..FileReference::default()
        };
        let session = SessionFile {
            tracks: vec![track],
            set_list: vec![model],
            ..SessionFile::default()
        };
        session.write(&path).unwrap();
        session.write(&path).unwrap();
        assert_eq!(SessionFile::read(&path).unwrap(), session);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left over"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(r#""path": "takes/a.wav""#) && text.contains(r#""path": "b.ondes""#),
            "{text}"
        );
        for (text, reason) in [
            ("{", "not an Ondes session"),
            (r#"{"format":"song","version":1}"#, "not an Ondes session"),
            (r#"{"format":"ondes-session","version":9}"#, "version 9"),
            (
                r#"{"format":"ondes-session","version":1,"tracks":[{"mix":1}]}"#,
                "Settings",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", SessionFile::read(&path).unwrap_err());
            assert!(
                error.starts_with(&path.display().to_string()) && error.contains(reason),
                "{error}"
            );
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn sessions_have_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ondes-session");
        let model = FileReference {
            embedded: Some("A".repeat(MAX_BYTES as usize)),
            ..FileReference::default()
        };
        let session = SessionFile {
            set_list: vec![model],
            ..SessionFile::default()
        };
        let error = format!("{:#}", session.write(&path).unwrap_err());
        assert!(
            error.contains("a.ondes-session: the session has 32 MB with its models"),
            "{error}"
        );
        assert!(!path.exists(), "what cannot be read is not written");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(MAX_BYTES + 1)
            .unwrap();
        let error = format!("{:#}", SessionFile::read(&path).unwrap_err());
        assert!(
            error.contains("a.ondes-session: 33554433 bytes; at most 33554432"),
            "{error}"
        );
    }
}
