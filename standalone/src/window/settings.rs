//! Settings of the app: `app.json` in the user's configuration folder, or in the folder of
//! `ONDES_CONFIG`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ondes_engine::files;
use ondes_player::state::WindowSettings;
use serde::{Deserialize, Serialize};

use super::recording_settings::RecordingSettings;
use crate::io::{AudioChoice, MidiChoice};

/// Largest file of settings, bytes; far above any real one.
const MAX_BYTES: u64 = 1 << 20;
/// Number of recent sessions.
const RECENT: usize = 8;

/// Settings of the app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppSettings {
    /// Audio devices.
    pub audio: AudioChoice,
    /// MIDI ports.
    pub midi: MidiChoice,
    /// Session that was open last.
    pub session: Option<PathBuf>,
    /// Recent sessions, the latest first.
    pub recent: Vec<PathBuf>,
    /// Settings of recordings.
    #[serde(rename = "takes")]
    pub recording_settings: RecordingSettings,
    /// Settings of the window.
    #[serde(rename = "look")]
    pub window: WindowSettings,
}

/// Returns the folder of the app's settings.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("ONDES_CONFIG")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    named.or_else(|| Some(dirs::config_dir()?.join("ondes")))
}

impl AppSettings {
    /// Reads the settings in a folder; returns the defaults if there are none or they are invalid.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let content = files::read(&folder.join("app.json"), MAX_BYTES);
        content
            .ok()
            .and_then(|bytes| serde_json::from_slice(files::without_mark(&bytes)).ok())
            .unwrap_or_default()
    }

    /// Writes the settings to a folder, which is created if necessary.
    ///
    /// # Errors
    /// Returns an error that names the file and the reason.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join("app.json");
        let write = || -> anyhow::Result<()> {
            fs::create_dir_all(folder)?;
            Ok(files::write(&path, &serde_json::to_vec_pretty(self)?)?)
        };
        write().with_context(|| path.display().to_string())
    }

    /// Sets the open session, `None` for a new one, and adds it to the recent ones.
    pub fn opened(&mut self, session: Option<&Path>) {
        self.session = session.map(Path::to_owned);
        if let Some(session) = session {
            self.recent.retain(|other| other != session);
            self.recent.insert(0, session.to_owned());
            self.recent.truncate(RECENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_writing_and_reading() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/down");
        assert_eq!(AppSettings::read(&folder), AppSettings::default());
        let mut settings = AppSettings::default();
        settings.audio.host = Some("JACK".into());
        (0..20).for_each(|number| {
            settings.opened(Some(Path::new(&format!("/{number}.ondes-session"))))
        });
        settings.opened(Some(Path::new("/15.ondes-session")));
        settings.write(&folder).unwrap();
        assert_eq!(AppSettings::read(&folder), settings);
        assert_eq!(
            (settings.recent.len(), settings.recent[0].to_str()),
            (RECENT, Some("/15.ondes-session"))
        );
        fs::write(folder.join("app.json"), "{").unwrap();
        assert_eq!(AppSettings::read(&folder), AppSettings::default());
    }
}
