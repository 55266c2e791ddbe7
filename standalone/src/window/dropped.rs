//! Files that are dropped on the window: what they are, and presets on their way to a track.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_processor::desk::setting::Setting;
use ondes_processor::preset::{Preset, file};
use ondes_processor::shared::{Kept, Shared};

use crate::rack::{clip, saved};

/// Ending of presets.
const PRESET: &str = "ondes-preset";

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Preset,
    Sound,
    /// Whatever else: who reads models knows what is wrong with it.
    Model,
}

impl Kind {
    pub fn of(path: &Path) -> Self {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            saved::ENDING => Self::Session,
            PRESET => Self::Preset,
            sound if clip::ENDINGS.contains(&sound) => Self::Sound,
            _ => Self::Model,
        }
    }
}

/// A preset that is being read for a track.
pub(super) struct Arrival {
    pub shared: Arc<Shared>,
    pub name: String,
    ticket: u64,
    reader: JoinHandle<Result<Setting, String>>,
}

impl Arrival {
    /// Begins to read. Of presets and models that are asked for in short order the last one counts.
    pub fn begin(shared: Arc<Shared>, path: &Path, wake: impl FnOnce() + Send + 'static) -> Self {
        let (ticket, path) = (shared.ask(), path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let reader = std::thread::spawn(move || {
            let read = || {
                let Preset { sound, .. } = file::read(&path).map_err(|refused| refused.to_string())?;
                let kept = Kept::find(*sound.selection).map_err(|missing| missing.to_string())?;
                Ok(Setting { values: sound.parameters, kept })
            };
            let setting = read();
            wake();
            setting
        });
        Self { shared, name, ticket, reader }
    }

    pub fn is_there(&self) -> bool {
        self.reader.is_finished()
    }

    /// What was read, where it still is what was asked for last; what could not be read is said in the track's status.
    pub fn take(self) -> Option<Setting> {
        match self.reader.join().unwrap_or_else(|_| Err("the preset could not be read".into())) {
            Ok(setting) if self.shared.is_awaited(self.ticket) => {
                let kept = setting.kept.in_place_of(&self.shared.keep());
                Some(Setting { kept, ..setting })
            }
            Ok(_) => None,
            Err(reason) => {
                self.shared.refuse(self.ticket, Some(reason));
                None
            }
        }
    }

    /// It is not wanted any more.
    pub fn give_up(self) {
        self.shared.refuse(self.ticket, None);
        drop(self.reader.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_name_says() {
        for (name, kind) in [
            ("/a/Stage.ondes-session", Kind::Session),
            ("warm.Ondes-Preset", Kind::Preset),
            ("voice.WAV", Kind::Sound),
            ("voice.flac", Kind::Sound),
            ("bowed.ondes", Kind::Model),
            ("percussion.ts", Kind::Model),
            ("README", Kind::Model),
        ] {
            assert_eq!(Kind::of(Path::new(name)), kind, "{name}");
        }
    }
}
