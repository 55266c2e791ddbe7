//! Tuning of an instance: files of Scala, and handing their tuning over to the audio thread.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crossbeam_queue::ArrayQueue;
use ondes_engine::instrument::{KeyTuning, ScaleFileError};
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};

/// File name extension of scales.
pub const SCALE_EXTENSION: &str = "scl";
/// File name extension of keyboard maps.
pub const KEYBOARD_MAP_EXTENSION: &str = "kbm";

/// Files of a tuning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningFiles {
    /// Scale (`.scl`).
    pub scale: PathBuf,
    /// Keyboard map (`.kbm`), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyboard_map: Option<PathBuf>,
}

impl TuningFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns [`ScaleFileError`] if one of them cannot be read.
    pub fn read(&self) -> Result<KeyTuning, ScaleFileError> {
        KeyTuning::read(&self.scale, self.keyboard_map.as_deref())
    }

    /// Returns the names of the files without their extensions, such as "just, white keys".
    #[must_use]
    pub fn name(&self) -> String {
        let names = std::iter::once(&self.scale)
            .chain(&self.keyboard_map)
            .filter_map(|path| path.file_stem());
        names
            .map(|name| name.to_string_lossy())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Iterates over the paths.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        std::iter::once(&mut self.scale).chain(&mut self.keyboard_map)
    }
}

/// Returns whether a file's name has the extension of a scale.
#[must_use]
pub fn is_scale(path: &Path) -> bool {
    has_extension(path, SCALE_EXTENSION)
}

/// Returns whether a file's name has the extension of a keyboard map.
#[must_use]
pub fn is_keyboard_map(path: &Path) -> bool {
    has_extension(path, KEYBOARD_MAP_EXTENSION)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// Hands tunings over to the audio thread.
pub struct TuningHandover {
    current: Mutex<KeyTuning>,
    /// A tuning is copied, so that the audio thread has nothing to free.
    arrival: ArrayQueue<KeyTuning>,
}

impl Default for TuningHandover {
    fn default() -> Self {
        Self {
            current: Mutex::default(),
            arrival: ArrayQueue::new(1),
        }
    }
}

impl TuningHandover {
    /// Sends a tuning.
    pub fn send(&self, tuning: KeyTuning) {
        *lock(&self.current) = tuning;
        self.arrival.force_push(tuning);
    }

    /// Returns the current tuning.
    #[must_use]
    pub fn current(&self) -> KeyTuning {
        *lock(&self.current)
    }

    /// For the audio thread: returns a tuning that has arrived. Wait-free.
    #[must_use]
    pub fn receive(&self) -> Option<KeyTuning> {
        self.arrival.pop()
    }
}
