//! Loading, stepping through and auditioning models. Files are read on threads of their own.

use std::time::{Duration, Instant};

use super::InstanceViewModel;
use super::model_list::ModelLocation;
use super::undo::LoadedFile;
use crate::command::ModelCommand;
use crate::view::ModelEntryId;

/// Length of an audition.
const AUDITION: Duration = Duration::from_secs(8);

impl InstanceViewModel {
    pub(super) fn handle_model(&mut self, command: ModelCommand) {
        match command {
            ModelCommand::Load(id) => self.load(id),
            ModelCommand::Next => self.step_model(1),
            ModelCommand::Previous => self.step_model(-1),
            ModelCommand::Audition(Some(id)) => self.audition(id),
            ModelCommand::Audition(None) => self.end_audition(),
            ModelCommand::Favourite(id, on) => self.models.set_favourite(id, on),
            ModelCommand::Rescan => self.models.rescan(),
            ModelCommand::Embed(on) => {
                self.record_change("Save model", |this| this.instance.set_embed_model(on));
            }
        }
    }

    /// Applies what other threads have requested, and ends an audition that has lasted long enough.
    pub(super) fn apply_requests(&mut self) {
        self.instance.set_oversampling(self.source.oversampling());
        self.instance.apply_requested_variant();
        if self
            .auditioned
            .is_some_and(|(_, since)| since.elapsed() > AUDITION)
        {
            self.end_audition();
        }
    }

    fn read_model(&mut self, location: ModelLocation, audition: bool) {
        let job = self.instance.load_model(audition, move || location.read());
        self.background_jobs.push(job);
    }

    /// Loads a model, which counts as recent once it has been read.
    pub(super) fn load_location(&mut self, location: ModelLocation) {
        self.loading_begins(LoadedFile::Model);
        self.auditioned = None;
        self.loading = Some(location.clone());
        self.read_model(location, false);
    }

    fn load(&mut self, id: ModelEntryId) {
        if let Some(location) = self.models.location(id) {
            self.load_location(location);
        }
    }

    fn step_model(&mut self, steps: isize) {
        // Steps from the model that is being loaded, if the user is faster than the files.
        let current = self
            .loading
            .as_ref()
            .map(ModelLocation::id)
            .or(self.playing());
        if let Some(id) = self.models.beside(current, steps) {
            self.load(id);
        }
    }

    fn audition(&mut self, id: ModelEntryId) {
        let Some(location) = self.models.location(id) else {
            return;
        };
        self.loading = None;
        self.auditioned = Some((id, Instant::now()));
        self.read_model(location, true);
    }

    fn end_audition(&mut self) {
        if self.auditioned.take().is_some() {
            self.instance.end_audition();
        }
    }
}
