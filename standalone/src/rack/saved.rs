//! The session file: all tracks and the master, readable by people.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ondes_processor::library::Reference;
use ondes_processor::preset::Product;
use ondes_processor::preset::values::Values;
use ondes_processor::state::Saved;
use serde::{Deserialize, Serialize};

use super::mix::Settings;
use crate::devices::{AudioChoice, MidiChoice};

/// What the file says that it is.
const FORMAT: &str = "ondes-session";
/// How names of sessions end.
pub const ENDING: &str = "ondes-session";
/// The version that is written; older ones can be read.
const VERSION: u32 = 1;
/// No session is larger, bytes: sixteen models of 16 MB in Base64 and more.
const LARGEST: u64 = 512 << 20;

/// A session as it is saved: JSON, best under a name that ends with `.ondes-session`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFile {
    format: String,
    version: u32,
    /// The fader after all.
    #[serde(default)]
    pub master: Settings,
    /// The tracks, in order.
    #[serde(default)]
    pub tracks: Vec<SavedTrack>,
    /// Models that MIDI programs choose, in order.
    #[serde(default)]
    pub set_list: Vec<Reference>,
    /// The sound card.
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
            master: Settings::default(),
            tracks: Vec::new(),
            set_list: Vec::new(),
            audio: AudioChoice::default(),
            midi: MidiChoice::default(),
        }
    }
}

/// A track as it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedTrack {
    /// Its name; empty for that of its model.
    #[serde(default)]
    pub name: String,
    /// Instrument or effect.
    pub product: Product,
    /// Where parameters stand, by their ids, in their units.
    #[serde(default)]
    pub parameters: Values,
    /// The model, what macros turn, and controllers.
    pub selection: Saved,
    /// Its fader.
    #[serde(default)]
    pub mix: Settings,
    /// What it listens to.
    #[serde(default)]
    pub input: Input,
    /// MIDI channels that it hears, one bit each.
    #[serde(default = "all_channels")]
    pub midi_channels: u16,
}

fn all_channels() -> u16 {
    u16::MAX
}

/// What a track listens to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// Nothing but notes.
    #[default]
    Nothing,
    /// Channels of the sound card.
    Channels {
        /// The first, counted from 0.
        first: usize,
        /// How many, 1 or 2.
        count: usize,
    },
    /// A recording.
    File {
        /// The file.
        path: PathBuf,
        /// Whether it begins again at its end.
        #[serde(default)]
        looped: bool,
    },
}

impl Input {
    /// The recording, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether it is that recording.
    #[must_use]
    pub fn is_file(&self, file: &Path) -> bool {
        self.file() == Some(file)
    }
}

impl SessionFile {
    /// Reads a session.
    ///
    /// # Errors
    /// One line with the file and what is wrong with it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let length = fs::metadata(path).with_context(|| name.to_string())?.len();
        ensure!(length <= LARGEST, "{name}: it is larger than any session");
        let text = fs::read_to_string(path).with_context(|| name.to_string())?;
        Self::parse(&text).with_context(|| name.to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        /// What is looked at first: what comes after it may be of a later version.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let Ok(head) = serde_json::from_str::<Head>(text) else { bail!("it is no session of Ondes") };
        ensure!(head.format == FORMAT, "it is no session of Ondes");
        ensure!(head.version <= VERSION, "it is of version {}; this Ondes reads up to {VERSION}", head.version);
        Ok(serde_json::from_str(text)?)
    }

    /// Writes the session, in the place of what was there only when all is written.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let write = || -> anyhow::Result<()> {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_it_was_written_and_others_say_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ondes-session");
        let track = SavedTrack {
            name: "Lead".into(),
            product: Product::Instrument,
            parameters: Values::new(),
            selection: Saved::default(),
            mix: Settings { level_db: -3.0, pan: 0.25, ..Settings::default() },
            input: Input::File { path: "a.wav".into(), looped: true },
            midi_channels: 1,
        };
        let session = SessionFile { tracks: vec![track], ..SessionFile::default() };
        session.write(&path).unwrap();
        session.write(&path).unwrap();
        assert_eq!(SessionFile::read(&path).unwrap(), session);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
        for (text, reason) in [
            ("{", "no session"),
            (r#"{"format":"song","version":1}"#, "no session"),
            (r#"{"format":"ondes-session","version":9}"#, "version 9"),
            (r#"{"format":"ondes-session","version":1,"tracks":[{"mix":1}]}"#, "Settings"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", SessionFile::read(&path).unwrap_err());
            assert!(error.starts_with(&path.display().to_string()) && error.contains(reason), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
