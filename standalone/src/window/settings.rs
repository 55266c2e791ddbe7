//! What the app remembers: `app.json` among the user's settings, or in the folder that `ONDES_CONFIG` names.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ondes_processor::state::Look;
use serde::{Deserialize, Serialize};

use super::takes::Takes;
use crate::devices::{AudioChoice, MidiChoice};

/// Sessions that are offered again.
const RECENT: usize = 8;

/// The app's own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The sound card.
    pub audio: AudioChoice,
    /// MIDI ports.
    pub midi: MidiChoice,
    /// The session that was open last.
    pub session: Option<PathBuf>,
    /// Sessions of late, the latest first.
    pub recent: Vec<PathBuf>,
    /// How recordings are made.
    pub takes: Takes,
    /// How the window looks.
    pub look: Look,
}

/// The folder for what the app remembers.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("ONDES_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(dirs::config_dir()?.join("ondes")))
}

impl Settings {
    /// Those of a folder; as they are by default where there are none, or they make no sense.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        fs::read(folder.join("app.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes them into a folder, which is made where there is none.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join("app.json");
        let write = || -> anyhow::Result<()> {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.persist(&path)?;
            Ok(())
        };
        write().with_context(|| path.display().to_string())
    }

    /// That session is the one that is open; none for a new one.
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
    fn they_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/down");
        assert_eq!(Settings::read(&folder), Settings::default());
        let mut settings = Settings::default();
        settings.audio.host = Some("JACK".into());
        (0..20).for_each(|number| settings.opened(Some(Path::new(&format!("/{number}.ondes-session")))));
        settings.opened(Some(Path::new("/15.ondes-session")));
        settings.write(&folder).unwrap();
        assert_eq!(Settings::read(&folder), settings);
        assert_eq!((settings.recent.len(), settings.recent[0].to_str()), (RECENT, Some("/15.ondes-session")));
        fs::write(folder.join("app.json"), "{").unwrap();
        assert_eq!(Settings::read(&folder), Settings::default());
    }
}
