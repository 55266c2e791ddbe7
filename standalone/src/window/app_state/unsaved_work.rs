//! Keeps unsaved work: notices changes, writes the autosave, and asks before anything would be
//! lost.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use ondes_engine::realtime::LoadStatus;

use super::sessions::{PendingSession, comparable_session};
use super::{AUTOSAVE_INTERVAL, AppState, COMPARE_INTERVAL};
use crate::window::autosave::Autosave;
use crate::window::view::{AppCommand, Prompt};

/// Question to the user, and the command that an answer continues with.
pub(super) struct Question {
    prompt: Prompt,
    then: AppCommand,
}

impl AppState {
    /// Returns the question to show. An autosave of the last run waits for the others.
    pub(super) fn prompt(&self) -> Option<Prompt> {
        let offer = self.offers_autosave.then_some(Prompt::RecoverAutosave);
        self.question
            .as_ref()
            .map(|question| question.prompt)
            .or(offer)
    }

    /// Returns whether the window closes now: nothing would be lost, or the user has decided.
    pub fn quits(&self) -> bool {
        self.quits
    }

    /// Notes that something may have changed: the user, a controller or a finished load has acted.
    pub fn note_activity(&mut self) {
        self.last_activity = Instant::now();
    }

    /// Returns the time after which to tick again even if nothing happens: until changes are
    /// noticed and copied.
    pub fn next_tick(&self) -> Option<Duration> {
        let due = |last: Instant, interval: Duration| {
            (last <= self.last_activity)
                .then(|| (last + interval).saturating_duration_since(Instant::now()))
        };
        let comparison = due(self.last_comparison, COMPARE_INTERVAL);
        comparison.or_else(|| due(self.last_autosave, AUTOSAVE_INTERVAL))
    }

    /// Compares the session with the saved one.
    pub(super) fn update_changed(&mut self) {
        self.last_comparison = Instant::now();
        if self.pending_session.is_some() {
            return;
        }
        let mixer = self.app.mixer();
        let is_loading = || {
            mixer
                .tracks()
                .any(|(_, track)| track.instance.status() == LoadStatus::Loading)
        };
        match &self.baseline {
            Some(baseline) => self.changed = *baseline != comparable_session(&mixer),
            // Models are part of the session once they are loaded.
            None if !self.app.loading().is_empty() || is_loading() => {}
            None => self.baseline = Some(comparable_session(&mixer)),
        }
    }

    /// Copies unsaved changes, or removes the copy if there are none.
    pub(super) fn write_autosave(&mut self) {
        self.last_autosave = Instant::now();
        // A session that is being loaded is incomplete. The last run's copy stays until the user
        // has decided about it.
        if self.pending_session.is_some() || self.offers_autosave {
            return;
        }
        self.update_changed();
        if self.changed {
            let session = self.session();
            let Some(autosave) = &mut self.autosave else {
                return;
            };
            self.problems
                .extend(autosave.write(session, self.settings.session.clone()));
        } else if self.autosave.as_ref().is_some_and(Autosave::is_there) {
            self.clear_autosave();
        }
    }

    /// Removes the copy of unsaved changes, but not one of the last run that the user has not
    /// decided about.
    pub(super) fn clear_autosave(&mut self) {
        if let Some(autosave) = self.autosave.as_mut().filter(|_| !self.offers_autosave) {
            autosave.clear();
        }
    }

    /// Restores the autosaved session.
    pub(super) fn recover(&mut self) -> anyhow::Result<()> {
        let autosave = self
            .autosave
            .as_ref()
            .context("another Ondes window holds the autosave")?;
        let (session, path) = autosave.read()?;
        self.offers_autosave = false;
        self.restore(
            session,
            PendingSession {
                path,
                recovered: true,
                add_instrument: false,
            },
        );
        Ok(())
    }

    /// Replaces the session, or asks first if it has unsaved changes.
    pub(super) fn replace_session(&mut self, then: AppCommand) -> anyhow::Result<()> {
        self.update_changed();
        if !self.changed {
            return self.start_session(then);
        }
        self.question = Some(Question {
            prompt: Prompt::UnsavedChanges,
            then,
        });
        Ok(())
    }

    /// Closes the app, or asks first if it has unsaved changes or a recording is running.
    pub(super) fn quit(&mut self) {
        self.update_changed();
        // The session that is being loaded is saved already.
        let unsaved = self.changed && self.pending_session.is_none();
        if unsaved || self.app.recording().recording.is_some() {
            self.question = Some(Question {
                prompt: Prompt::Quit { unsaved },
                then: AppCommand::Quit,
            });
        } else {
            self.quits = true;
        }
    }

    /// Answers the question, or declines the autosave of the last run; unsaved changes are lost.
    pub(super) fn discard(&mut self) -> anyhow::Result<()> {
        if let Some(question) = self.question.take() {
            return self.proceed(question);
        }
        self.offers_autosave = false;
        self.clear_autosave();
        Ok(())
    }

    /// Continues with the command behind a question; unsaved changes are lost.
    pub(super) fn proceed(&mut self, question: Question) -> anyhow::Result<()> {
        if question.then != AppCommand::Quit {
            return self.start_session(question.then);
        }
        self.clear_autosave();
        // What was given up must not be written as the app ends.
        (self.quits, self.autosave) = (true, None);
        Ok(())
    }
}
