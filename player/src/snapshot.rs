//! Snapshots of what is heard of an instance, in memory.

use std::sync::Arc;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::model::Model;
use ondes_engine::model::program::ProgramOptions;

use crate::cabinet;
use crate::library::{self, FileReference, FoundModel, MissingFile};
use crate::parameter_values::ParameterValues;
use crate::preset::location::PresetLocation;
use crate::rig::block_state;
use crate::state::{InstanceState, WindowSettings};

/// Everything that is heard: the values of the parameters, and the model with its macro bindings
/// and cabinet.
#[derive(Clone, PartialEq)]
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

/// Two selections are equal if they save the same.
impl PartialEq for SelectionSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl SelectionSnapshot {
    /// Finds the model of a saved selection.
    ///
    /// # Errors
    /// Returns [`MissingFile`] if the model is not found.
    pub fn find(state: InstanceState) -> Result<Self, MissingFile> {
        let snapshot = Self::new(state, None);
        snapshot.missing_model.clone().map_or(Ok(snapshot), Err)
    }

    /// Finds the model of a saved selection, if it is there; `known` is used if it is the same
    /// model.
    pub(crate) fn new(state: InstanceState, known: Option<&FoundModel>) -> Self {
        let mut state = state.sound_only();
        block_state::find_all(&mut state.blocks);
        let known = known.filter(|(model, _)| state.model.matches(model));
        match known.map_or_else(|| state.model.find(), |known| Ok(known.clone())) {
            Ok((model, path)) => {
                let notice = state.model.replacement_notice(&model);
                let embedded = state.model.embedded.take().filter(|_| notice.is_none());
                if notice.is_some() {
                    state.latents.clear();
                    state.program = ProgramOptions::default();
                }
                state.model = FileReference {
                    embedded,
                    ..FileReference::to(&model, path)
                };
                let (model, problem) = state.with_program_options(model);
                Self {
                    state,
                    model: Some(model),
                    missing_model: None,
                    notice: notice.or(problem),
                    cabinet: None,
                }
            }
            Err(missing) => Self {
                state,
                model: None,
                missing_model: Some(missing),
                notice: None,
                cabinet: None,
            },
        }
    }

    /// Returns the snapshot without the settings that belong to the project, and without embedded
    /// files that are in memory anyway; [`Self::to_state`] encodes them anew.
    #[must_use]
    pub fn for_history(mut self) -> Self {
        self.state = self.state.sound_only();
        if self.model.is_some() {
            self.state.model.embedded = None;
        }
        if let Some(reference) = self
            .state
            .cabinet
            .as_mut()
            .filter(|_| self.cabinet.is_some())
        {
            reference.embedded = None;
        }
        self
    }

    /// Returns the name of the model and of the cabinet, if any.
    #[must_use]
    pub fn names(&self) -> (&str, Option<&str>) {
        (
            &self.state.model.name,
            self.state
                .cabinet
                .as_ref()
                .map(|cabinet| cabinet.name.as_str()),
        )
    }

    /// Returns the preset that was loaded or saved last.
    #[must_use]
    pub fn preset(&self) -> Option<&PresetLocation> {
        self.state.preset.as_ref()
    }

    /// Adopts what a preset leaves open from the selection before it: a project that embeds its
    /// models keeps doing so, and without a cabinet of its own the choice of one stays automatic.
    #[must_use]
    pub fn keeping_choices(mut self, other: &Self) -> Self {
        self.state.embed |= other.state.embed;
        self.state.automatic_cabinet |=
            self.state.cabinet.is_none() && other.state.automatic_cabinet;
        self
    }

    /// Returns the state to save, with embedded files if that is wanted and without the settings of
    /// the window.
    #[must_use]
    pub fn to_state(&self) -> InstanceState {
        let mut state = InstanceState {
            version: crate::state::VERSION,
            window: WindowSettings::default(),
            pad: None,
            tuning: None,
            executor: ExecutorSelection::default(),
            resampling: Resampling::default(),
            programs: Vec::new(),
            ..self.state.clone()
        };
        match (&self.model, state.embed) {
            (Some(model), true) => state.model.embedded = library::to_base64(model),
            // If the file is missing, the embedded one may be the only copy left.
            (None, true) => {}
            (_, false) => state.model.embedded = None,
        }
        for block in &mut state.blocks {
            block.embed(state.embed);
        }
        if let Some(reference) = &mut state.cabinet {
            match (
                self.cabinet
                    .as_ref()
                    .filter(|file| file.hash == reference.hash),
                state.embed,
            ) {
                (Some(file), true) => reference.embedded = cabinet::to_base64(file),
                (None, true) => {}
                (_, false) => reference.embedded = None,
            }
        }
        state
    }
}
