//! Opening and saving sessions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ondes_player::product::Product;
use ondes_player::state::WindowSettings;

use super::AppState;
use crate::rack::Mixer;
use crate::rack::session_file::{self, SessionFile};
use crate::window::view::AppCommand;

/// Session that is being loaded.
pub(super) struct PendingSession {
    pub path: Option<PathBuf>,
    /// Recovered from the autosave: it counts as changed until it is saved.
    pub recovered: bool,
    /// Adds an instrument when it is loaded.
    pub add_instrument: bool,
}

impl AppState {
    /// Returns the session with its devices.
    pub(super) fn session(&self) -> SessionFile {
        let mut session = comparable_session(&self.app.mixer());
        (session.audio, session.midi) = (self.settings.audio.clone(), self.settings.midi.clone());
        session
    }

    /// Opens another session; unsaved changes are lost.
    pub(super) fn start_session(&mut self, command: AppCommand) -> anyhow::Result<()> {
        match command {
            AppCommand::Open(path) => {
                let path = session_path(&path);
                let session = SessionFile::read(&path)?;
                self.restore(
                    session,
                    PendingSession {
                        path: Some(path),
                        recovered: false,
                        add_instrument: false,
                    },
                );
            }
            AppCommand::Recover => return self.recover(),
            _ => self.restore(
                SessionFile::default(),
                PendingSession {
                    path: None,
                    recovered: false,
                    add_instrument: true,
                },
            ),
        }
        self.clear_autosave();
        Ok(())
    }

    /// Loads a session in the background. The devices stay, since it may come from another machine.
    pub(super) fn restore(&mut self, session: SessionFile, pending_session: PendingSession) {
        self.deselect();
        self.pending_session = Some(pending_session);
        self.app.restore(session);
    }

    /// Shows a session that has been loaded.
    pub(super) fn finish_restore(&mut self, problems: Vec<String>) {
        let Some(PendingSession {
            path,
            recovered,
            add_instrument,
        }) = self.pending_session.take()
        else {
            return;
        };
        self.deselect();
        self.problems.extend(problems);
        (self.baseline, self.changed) = (recovered.then(SessionFile::default), recovered);
        if self.settings.session != path || path.is_none() {
            self.settings.opened(path.as_deref());
            self.write_settings();
        }
        self.enable_metering();
        let mut slots: Vec<usize> = self.app.mixer().tracks().map(|(slot, _)| slot).collect();
        // A track whose program may not run comes first: its panels ask.
        let asks = |slot: &usize| self.app.mixer().track(*slot)?.instance.untrusted_program();
        slots.sort_by_key(|slot| asks(slot).is_none());
        self.select(slots.first().copied());
        if add_instrument {
            self.handle(AppCommand::AddTrack(Product::Instrument));
        }
    }

    /// Starts a new session, since the one to be opened cannot be read or restored.
    pub(super) fn start_without_session(&mut self, problem: String) {
        let add_instrument = self.app.mixer().tracks().next().is_none();
        self.pending_session = Some(PendingSession {
            path: None,
            recovered: false,
            add_instrument,
        });
        self.finish_restore(vec![problem]);
    }

    pub(super) fn save(&mut self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        self.session().write(path)?;
        (self.baseline, self.changed) = (Some(comparable_session(&self.app.mixer())), false);
        self.settings.opened(Some(path));
        self.write_settings();
        self.clear_autosave();
        self.question
            .take()
            .map_or(Ok(()), |question| self.proceed(question))
    }
}

/// Returns the session without window settings, for comparison.
pub(super) fn comparable_session(mixer: &Mixer) -> SessionFile {
    let mut session = mixer.saved();
    session
        .tracks
        .iter_mut()
        .for_each(|track| track.selection.window = WindowSettings::default());
    session
}

/// Returns the name of a session.
pub(super) fn session_name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Completes a typed path: adds the extension, and the documents folder if it is relative.
pub(super) fn session_path(typed: &Path) -> PathBuf {
    let mut path = typed.to_owned();
    if path
        .extension()
        .is_none_or(|ending| ending != session_file::EXTENSION)
    {
        path.as_mut_os_string()
            .push(format!(".{}", session_file::EXTENSION));
    }
    match dirs::document_dir().or_else(dirs::home_dir) {
        Some(documents) if path.is_relative() => documents.join("Ondes").join(path),
        _ => path,
    }
}
