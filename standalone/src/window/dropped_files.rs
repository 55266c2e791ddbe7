//! Files that are dropped on the window.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_processor::instance::InstanceHandle;
use ondes_processor::preset::{Preset, file};
use ondes_processor::snapshot::{SelectionSnapshot, SoundSnapshot};

use crate::rack::{clip, session_file};

/// File name extension of presets.
const PRESET: &str = "ondes-preset";

/// Kind of a dropped file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DroppedKind {
    Session,
    Preset,
    Sound,
    /// Any other file; loading it reports the error.
    Model,
}

impl DroppedKind {
    pub fn of(path: &Path) -> Self {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            session_file::EXTENSION => Self::Session,
            PRESET => Self::Preset,
            sound if clip::EXTENSIONS.contains(&sound) => Self::Sound,
            _ => Self::Model,
        }
    }
}

/// Preset that is being loaded for a track.
pub(super) struct PresetLoad {
    pub instance: Arc<InstanceHandle>,
    pub name: String,
    ticket: u64,
    reader: JoinHandle<Result<SoundSnapshot, String>>,
}

impl PresetLoad {
    /// Starts to load. If presets or models are requested in quick succession, the last one wins.
    pub fn begin(instance: Arc<InstanceHandle>, path: &Path, wake: impl FnOnce() + Send + 'static) -> Self {
        let (ticket, path) = (instance.begin_request(), path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let reader = std::thread::spawn(move || {
            let read = || {
                let Preset { sound, .. } = file::read(&path).map_err(|refused| refused.to_string())?;
                let selection = SelectionSnapshot::find(*sound.selection).map_err(|missing| missing.to_string())?;
                Ok(SoundSnapshot { values: sound.parameters, selection })
            };
            let setting = read();
            wake();
            setting
        });
        Self { instance, name, ticket, reader }
    }

    pub fn is_there(&self) -> bool {
        self.reader.is_finished()
    }

    /// Returns the preset, unless something else was requested since; an error is shown in the track's status.
    pub fn take(self) -> Option<SoundSnapshot> {
        match self.reader.join().unwrap_or_else(|_| Err("the preset could not be read".into())) {
            Ok(setting) if self.instance.is_current(self.ticket) => {
                let selection = setting.selection.keeping_embedded(&self.instance.selection_snapshot());
                Some(SoundSnapshot { selection, ..setting })
            }
            Ok(_) => None,
            Err(reason) => {
                self.instance.fail_request(self.ticket, Some(reason));
                None
            }
        }
    }

    /// Cancels the load.
    pub fn give_up(self) {
        self.instance.fail_request(self.ticket, None);
        drop(self.reader.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_extension() {
        for (name, kind) in [
            ("/a/Stage.ondes-session", DroppedKind::Session),
            ("warm.Ondes-Preset", DroppedKind::Preset),
            ("voice.WAV", DroppedKind::Sound),
            ("voice.flac", DroppedKind::Sound),
            ("bowed.ondes", DroppedKind::Model),
            ("percussion.ts", DroppedKind::Model),
            ("README", DroppedKind::Model),
        ] {
            assert_eq!(DroppedKind::of(Path::new(name)), kind, "{name}");
        }
    }
}
