//! Snapshots of what is heard of an instance, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::model::Model;

use crate::cabinet;
use crate::library::{self, FileReference, FoundModel, MissingFile};
use crate::parameter_values::ParameterValues;
use crate::state::{InstanceState, WindowSettings};

/// Everything that is heard: the values of the parameters, and the model with its macro bindings and cabinet.
#[derive(Clone)]
pub struct SoundSnapshot {
    /// Parameter values by id; parameters that are not named keep their values.
    pub values: ParameterValues,
    /// Model, macro bindings, latent knobs and cabinet.
    pub selection: SelectionSnapshot,
}

/// A selection with its loaded model, that can be restored.
#[derive(Clone)]
pub struct SelectionSnapshot {
    pub(crate) state: InstanceState,
    pub(crate) model: Option<Arc<Model>>,
    pub(crate) missing_model: Option<MissingFile>,
    pub(crate) notice: Option<String>,
    /// The cabinet's file, if it was found.
    pub(crate) cabinet: Option<Arc<ImpulseFile>>,
}

impl SelectionSnapshot {
    /// Finds the model of a saved selection.
    ///
    /// # Errors
    /// Returns [`MissingFile`] if the model is not found.
    pub fn find(state: InstanceState) -> Result<Self, MissingFile> {
        let snapshot = Self::of(state, None);
        snapshot.missing_model.clone().map_or(Ok(snapshot), Err)
    }

    /// Finds the model of a saved selection, if it is there; `known` is used if it is the same model.
    pub(crate) fn of(state: InstanceState, known: Option<&FoundModel>) -> Self {
        // These settings belong to the project, not to the sound.
        let mut state = InstanceState {
            window: WindowSettings::default(),
            pad: None,
            executor: ExecutorSelection::default(),
            compare: None,
            midi_controllers: BTreeMap::new(),
            ..state
        };
        let known = known.filter(|(model, _)| state.model.matches(model));
        match known.map_or_else(|| state.model.find(), |known| Ok(known.clone())) {
            Ok((model, path)) => {
                let notice = state.model.replacement_notice(&model);
                let embedded = state.model.embedded.take().filter(|_| notice.is_none());
                if notice.is_some() {
                    state.latents.clear();
                }
                state.model = FileReference { embedded, ..FileReference::to(&model, path) };
                Self { state, model: Some(model), missing_model: None, notice, cabinet: None }
            }
            Err(missing) => Self { state, model: None, missing_model: Some(missing), notice: None, cabinet: None },
        }
    }

    /// Embeds the model if `other` does: a project that embeds its models keeps doing so.
    #[must_use]
    pub fn keeping_embedded(mut self, other: &Self) -> Self {
        self.state.embed |= other.state.embed;
        self
    }

    /// Returns the state to save, with embedded files if that is wanted and without the settings of the window.
    #[must_use]
    pub fn to_state(&self) -> InstanceState {
        let (version, window, executor) =
            (crate::state::VERSION, WindowSettings::default(), ExecutorSelection::default());
        let mut state = InstanceState { version, window, pad: None, executor, ..self.state.clone() };
        match (&self.model, state.embed) {
            (Some(model), true) => state.model.embedded = library::to_base64(model),
            // If the file is missing, the embedded one may be the only copy left.
            (None, true) => {}
            (_, false) => state.model.embedded = None,
        }
        if let Some(reference) = &mut state.cabinet {
            match (self.cabinet.as_ref().filter(|file| file.hash == reference.hash), state.embed) {
                (Some(file), true) => reference.embedded = cabinet::to_base64(file),
                (None, true) => {}
                (_, false) => reference.embedded = None,
            }
        }
        state
    }
}
