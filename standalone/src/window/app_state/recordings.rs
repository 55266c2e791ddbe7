//! Recording the master and the tracks.

use super::sessions::session_name;
use super::{AppState, DismissedErrors};
use crate::window::recording_settings::RecordingFiles;

impl AppState {
    /// Starts a recording of the master, and of the tracks if that is enabled.
    pub(super) fn start_recording(&mut self) -> anyhow::Result<()> {
        let RecordingFiles { master, tracks } = self.recording_files()?;
        self.app.record(
            &master,
            tracks,
            self.settings.recording_settings.format,
            false,
        )?;
        (self.recording, self.notice, self.dismissed) =
            (Some(master), None, DismissedErrors::default());
        Ok(())
    }

    /// Saves the last 30 s of the master, and of the tracks if that is enabled.
    pub(super) fn save_preroll(&mut self) -> anyhow::Result<()> {
        let RecordingFiles { master, tracks } = self.recording_files()?;
        self.app
            .save_preroll(&master, tracks, self.settings.recording_settings.format)?;
        self.dismissed.error = None;
        self.finishing_notice = Some(format!("Saved the last 30 s to {}", master.display()));
        Ok(())
    }

    /// Announces a completed recording, and stops a failed one.
    pub(super) fn update_recording(&mut self) {
        if self.recording.is_none() && self.finishing_notice.is_none() {
            return;
        }
        let status = self.app.recording();
        if self.recording.is_some() && status.recording.is_none() && status.error.is_some() {
            self.app.stop_in_background();
            self.recording = None;
        }
        if status.finishing == 0
            && let Some(notice) = self.finishing_notice.take()
        {
            self.notice = Some(notice).filter(|_| status.error.is_none());
        }
    }

    /// Returns the files of a recording that starts now.
    pub(super) fn recording_files(&self) -> anyhow::Result<RecordingFiles> {
        let title = self
            .settings
            .session
            .as_deref()
            .map_or("Ondes".into(), session_name);
        let tracks: Vec<_> = self
            .app
            .mixer()
            .tracks()
            .map(|(slot, track)| (slot, track.title()))
            .collect();
        self.settings.recording_settings.files(&title, &tracks)
    }
}
