//! Files that are dropped on the window.

use std::path::Path;

use crate::rack::{clip, session_file};

/// Kind of a dropped file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DroppedKind {
    Session,
    Sound,
    /// Any other file: the track opens it or reports the error.
    ForTrack,
}

impl DroppedKind {
    pub fn from_path(path: &Path) -> Self {
        let ending = path
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        match ending.as_str() {
            session_file::EXTENSION => Self::Session,
            sound if clip::EXTENSIONS.contains(&sound) => Self::Sound,
            _ => Self::ForTrack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_extension() {
        for (name, kind) in [
            ("/a/Stage.ondes-session", DroppedKind::Session),
            ("warm.Ondes-Preset", DroppedKind::ForTrack),
            ("voice.WAV", DroppedKind::Sound),
            ("voice.flac", DroppedKind::Sound),
            ("bowed.ondes", DroppedKind::ForTrack),
            ("percussion.ts", DroppedKind::ForTrack),
            ("README", DroppedKind::ForTrack),
        ] {
            assert_eq!(DroppedKind::from_path(Path::new(name)), kind, "{name}");
        }
    }
}
