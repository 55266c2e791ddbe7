//! Selecting tunings.

use std::path::PathBuf;

use ondes_engine::instrument::KeyTuning;

use super::{Inner, InstanceHandle};
use crate::tuning::TuningFiles;

impl InstanceHandle {
    /// Tunes the instrument by files of Scala; `None` for equal temperament.
    ///
    /// # Errors
    /// Returns the reason, with the path of the file, if one cannot be read. The previous tuning
    /// stays.
    pub fn set_tuning(&self, files: Option<TuningFiles>) -> Result<(), String> {
        let tuning = files
            .as_ref()
            .map_or(Ok(KeyTuning::default()), TuningFiles::read);
        let mut inner = self.inner();
        match tuning {
            Ok(tuning) => {
                (inner.state.tuning, inner.tuning_problem) = (files, None);
                self.tuning_handover.send(tuning);
                self.host_notifier.mark_state_changed();
                Ok(())
            }
            Err(error) => {
                inner.notice = Some(error.to_string());
                Err(error.to_string())
            }
        }
    }

    /// Tunes the instrument by a scale, keeping the keyboard map, or by another keyboard map for
    /// its scale. A file that cannot be read is reported by a notice.
    pub fn load_tuning(&self, path: PathBuf) {
        let files = match self.read_state(|state| state.tuning.clone()) {
            Some(files) if crate::tuning::is_keyboard_map(&path) => TuningFiles {
                keyboard_map: Some(path),
                ..files
            },
            _ if crate::tuning::is_keyboard_map(&path) => {
                let reason = "a keyboard map needs a scale; open the scale (.scl) first";
                self.inner().notice = Some(format!("{}: {reason}", path.display()));
                return;
            }
            files => TuningFiles {
                scale: path,
                keyboard_map: files.and_then(|files| files.keyboard_map),
            },
        };
        // The notice has the reason.
        let _ = self.set_tuning(Some(files));
    }

    /// Removes the tuning: the keys are in equal temperament.
    pub fn remove_tuning(&self) {
        // No file is read, so nothing can fail.
        let _ = self.set_tuning(None);
    }

    /// Returns why the tuning of a saved state cannot be read, if so.
    #[must_use]
    pub fn tuning_problem(&self) -> Option<String> {
        self.inner().tuning_problem.clone()
    }

    /// Restores the tuning of a saved state. One that cannot be read stays in the state, for
    /// machines that have it.
    pub(super) fn restore_tuning(&self, inner: &mut Inner) {
        let tuning = inner
            .state
            .tuning
            .as_ref()
            .map_or(Ok(KeyTuning::default()), TuningFiles::read);
        inner.tuning_problem = tuning.as_ref().err().map(ToString::to_string);
        self.tuning_handover.send(tuning.unwrap_or_default());
    }
}
