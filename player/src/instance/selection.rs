//! Selecting models: loading, auditioning, and saving and restoring the selection.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::model::program::ProgramOptions;
use ondes_engine::panics::contain;

use super::{Inner, InstanceHandle};
use crate::compare_slots::CompareSlot;
use crate::library::{FileReference, FoundModel, LoadError, MissingFile};
use crate::macros::MACRO_COUNT;
use crate::rig::block_state;
use crate::snapshot::{SelectionSnapshot, SoundSnapshot};
use crate::state::{CompareState, InstanceState};

impl InstanceHandle {
    /// Loads the model that `find` returns, on a thread of its own. If several are requested in
    /// short order, the last one is loaded. After an `audition` the previous model returns with
    /// [`InstanceHandle::end_audition`]. The caller must join the thread before this code is
    /// unloaded.
    pub fn load_model(
        self: &Arc<Self>,
        audition: bool,
        find: impl FnOnce() -> Result<FoundModel, LoadError> + Send + 'static,
    ) -> JoinHandle<()> {
        let request = self.begin_request();
        let instance = self.clone();
        std::thread::spawn(move || instance.load_requested(request, audition, find))
    }

    /// Loads the model that `find` returns for a request, on this thread; `find` is not called if
    /// the request is not the last one any more. See [`InstanceHandle::load_model`].
    pub fn load_requested(
        &self,
        request: u64,
        audition: bool,
        find: impl FnOnce() -> Result<FoundModel, LoadError>,
    ) {
        if !self.is_current(request) {
            return;
        }
        let found = contain(find)
            .unwrap_or_else(|reason| Err(format!("the model cannot be read: {reason}").into()));
        let mut inner = self.inner();
        if inner.requests != request {
            return;
        }
        inner.reading = false;
        match found {
            Ok(found) => {
                let now = inner.snapshot(self.cabinet_handover.file());
                let same = now
                    .model
                    .as_ref()
                    .is_some_and(|now| now.content_hash() == found.0.content_hash());
                let before = inner
                    .before_audition
                    .take()
                    .or(Some(now))
                    .filter(|_| audition);
                self.put_model(&mut inner, Ok(found));
                if !same {
                    inner.state.preset = None;
                }
                inner.before_audition = before;
                self.select_automatic_cabinet(&mut inner);
                if !audition {
                    self.host_notifier.mark_state_changed();
                }
            }
            Err(reason) => inner.load_error = Some(reason),
        }
    }

    /// Begins a request for something to be played. Returns its number, for
    /// [`InstanceHandle::is_current`].
    pub fn begin_request(&self) -> u64 {
        let mut inner = self.inner();
        inner.requests += 1;
        (inner.reading, inner.load_error) = (true, None);
        inner.requests
    }

    /// Returns whether this is the last request.
    #[must_use]
    pub fn is_current(&self, request: u64) -> bool {
        self.inner().requests == request
    }

    /// Ends a request without a result; `reason` is shown to the user. The previous model goes on
    /// playing; an audition ends.
    pub fn fail_request(&self, request: u64, reason: Option<LoadError>) {
        let mut inner = self.inner();
        if inner.requests != request {
            return;
        }
        inner.reading = false;
        if let Some(before) = inner.before_audition.take() {
            self.put_selection(&mut inner, before);
        }
        inner.load_error = reason;
    }

    /// Ends an audition: the previous model plays again.
    pub fn end_audition(&self) {
        let mut inner = self.inner();
        (inner.requests, inner.reading) = (inner.requests + 1, false);
        if let Some(before) = inner.before_audition.take() {
            self.put_selection(&mut inner, before);
        }
    }

    /// Returns whether a model is being auditioned.
    #[must_use]
    pub fn is_auditioning(&self) -> bool {
        self.inner().before_audition.is_some()
    }

    /// Takes a snapshot of the selection.
    #[must_use]
    pub fn selection_snapshot(&self) -> SelectionSnapshot {
        self.inner().snapshot(self.cabinet_handover.file())
    }

    /// Takes a snapshot of the selection that a project saves: a model that is only auditioned is
    /// not part of it.
    #[must_use]
    pub fn saved_selection(&self) -> SelectionSnapshot {
        let inner = self.inner();
        inner
            .before_audition
            .clone()
            .unwrap_or_else(|| inner.snapshot(self.cabinet_handover.file()))
    }

    /// Restores a snapshot; the settings of the window, the executor and the rate conversion are
    /// kept.
    pub fn restore_selection(&self, snapshot: SelectionSnapshot) {
        let mut inner = self.inner();
        (inner.requests, inner.reading, inner.before_audition) = (inner.requests + 1, false, None);
        self.put_selection(&mut inner, snapshot);
        self.host_notifier.mark_state_changed();
    }

    fn put_selection(&self, inner: &mut Inner, snapshot: SelectionSnapshot) {
        let same = match (&inner.model, &snapshot.model) {
            // A card has the levels of a capture, which its identity leaves out.
            (Some(now), Some(then)) => {
                now.content_hash() == then.content_hash() && now.header() == then.header()
            }
            _ => false,
        };
        if same {
            let bound: Vec<String> = (0..MACRO_COUNT)
                .filter_map(|index| Some(inner.macro_control(index)?.name.clone()))
                .collect();
            inner.turned_latents.extend(bound);
            inner
                .turned_latents
                .extend(inner.state.latents.keys().cloned());
        }
        let InstanceState {
            window,
            pad,
            tuning,
            executor,
            resampling,
            programs,
            ..
        } = std::mem::take(&mut inner.state);
        inner.state = InstanceState {
            window,
            pad,
            tuning,
            executor,
            resampling,
            programs,
            ..snapshot.state
        };
        (inner.missing_model, inner.load_error, inner.notice) =
            (snapshot.missing_model, None, snapshot.notice);
        self.restore_cabinet(inner, snapshot.cabinet);
        self.send_rig(&inner.state);
        if same {
            self.send_mapping(inner.control_mapping());
        } else {
            inner.set_model(snapshot.model);
            self.load(inner);
        }
    }

    fn adopt_model(&self, found: Result<FoundModel, MissingFile>) {
        let mut inner = self.inner();
        let notice = found
            .as_ref()
            .ok()
            .and_then(|(model, _)| inner.state.model.replacement_notice(model));
        self.put_model(&mut inner, found);
        inner.notice = notice.or(inner.notice.take());
    }

    fn put_model(&self, inner: &mut Inner, found: Result<FoundModel, MissingFile>) {
        inner.requests += 1;
        (
            inner.reading,
            inner.load_error,
            inner.notice,
            inner.before_audition,
        ) = (false, None, None, None);
        match found {
            Ok((model, path)) => {
                let embedded = inner.state.model.embedded.take();
                let embedded = embedded.filter(|_| inner.state.model.matches(&model));
                // Latent values belong to the previous model, unless the reference named a bundled
                // model without its hash.
                if !inner.state.model.hash.is_empty() && !inner.state.model.matches(&model) {
                    inner.state.latents.clear();
                    inner.state.program = ProgramOptions::default();
                }
                inner.state.model = FileReference {
                    embedded,
                    ..FileReference::to(&model, path)
                };
                inner.missing_model = None;
                let (model, problem) = inner.state.with_program_options(model);
                inner.notice = problem;
                inner.set_model(Some(model));
            }
            Err(missing) => {
                inner.missing_model = Some(missing);
                inner.set_model(None);
            }
        }
        self.load(inner);
    }

    /// Searches for a missing model again. Returns whether the model is there.
    pub fn retry_missing_model(&self) -> bool {
        let reference = {
            let inner = self.inner();
            if inner.missing_model.is_none() {
                return true;
            }
            inner.state.model.clone()
        };
        let found = reference.find();
        let is_found = found.is_ok();
        match found {
            Ok(found) => self.adopt_model(Ok(found)),
            // The reason may be another one by now.
            Err(missing) => {
                if let Some(before) = &mut self.inner().missing_model {
                    *before = missing;
                }
            }
        }
        is_found
    }

    /// Loads a missing model from `path`, if its hash matches.
    pub fn locate_missing_model(&self, path: PathBuf) {
        let reference = {
            let inner = self.inner();
            if inner.missing_model.is_none() {
                return;
            }
            FileReference {
                path: Some(path),
                ..inner.state.model.clone()
            }
        };
        self.adopt_model(reference.find());
        self.host_notifier.mark_state_changed();
    }

    /// Returns the model that was not found, if any.
    #[must_use]
    pub fn missing_model(&self) -> Option<MissingFile> {
        self.inner().missing_model.clone()
    }

    /// Returns the state that a project saves besides the parameters.
    #[must_use]
    pub fn state(&self) -> InstanceState {
        let (selection, window, pad, tuning, executor, resampling, programs) = {
            let inner = self.inner();
            // The audition is not part of the project.
            let before = inner.before_audition.clone();
            let InstanceState {
                window,
                pad,
                tuning,
                executor,
                resampling,
                programs,
                ..
            } = &inner.state;
            let selection = before.unwrap_or_else(|| inner.snapshot(self.cabinet_handover.file()));
            (
                selection,
                *window,
                pad.clone(),
                tuning.clone(),
                *executor,
                *resampling,
                programs.clone(),
            )
        };
        let (compare, midi_controllers) =
            (self.compare_slots.state(), self.midi_bindings.bindings());
        let of_project = InstanceState {
            window,
            pad,
            tuning,
            executor,
            resampling,
            programs,
            compare,
            midi_controllers,
            ..selection.to_state()
        };
        let mut state = of_project;
        if let Some(CompareState {
            other: Some(other), ..
        }) = &mut state.compare
            && other.selection.model.hash == state.model.hash
        {
            // One copy of the file is enough.
            other.selection.model.embedded = None;
        }
        state
    }

    /// Restores a saved state. Reads the model, which may take long.
    pub fn restore_state(&self, mut state: InstanceState) {
        self.midi_bindings
            .restore(&std::mem::take(&mut state.midi_controllers));
        let slots = state.compare.take().unwrap_or_default();
        self.history.clear();
        let found = state.model.find();
        block_state::find_all(&mut state.blocks);
        let other = slots.other.map(|sound| {
            let selection = SelectionSnapshot::new(*sound.selection, found.as_ref().ok());
            SoundSnapshot {
                values: sound.parameters,
                selection,
            }
        });
        self.compare_slots.restore(
            if slots.b_is_active {
                CompareSlot::B
            } else {
                CompareSlot::A
            },
            other,
        );
        {
            let mut inner = self.inner();
            inner.state = state;
            self.audio
                .set_has_programs(!inner.state.programs.is_empty());
            self.restore_cabinet(&mut inner, None);
            self.send_rig(&inner.state);
            self.restore_tuning(&mut inner);
        }
        self.adopt_model(found);
    }
}

impl Inner {
    fn snapshot(&self, cabinet: Option<Arc<ImpulseFile>>) -> SelectionSnapshot {
        SelectionSnapshot {
            state: self.state.clone(),
            model: self.model.clone(),
            missing_model: self.missing_model.clone(),
            notice: self.notice.clone(),
            cabinet,
        }
    }
}
