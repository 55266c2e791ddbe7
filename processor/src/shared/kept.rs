//! A selection that can be come back to.

use std::collections::BTreeMap;
use std::sync::Arc;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::model::Model;
use ondes_engine::wish::Wish;

use crate::cabinet;
use crate::library::{self, Found, Missing, Reference};
use crate::state::{Look, Saved};

/// A selection with its model, to come back to.
#[derive(Clone)]
pub struct Kept {
    pub(super) saved: Saved,
    pub(super) model: Option<Arc<Model>>,
    pub(super) problem: Option<Missing>,
    pub(super) notice: Option<String>,
    /// The cabinet's file, where it is there.
    pub(super) cabinet: Option<Arc<ImpulseFile>>,
}

impl Kept {
    /// A selection with its model.
    ///
    /// # Errors
    /// When the model is missing.
    pub fn find(saved: Saved) -> Result<Self, Missing> {
        let kept = Self::of(saved, None);
        kept.problem.clone().map_or(Ok(kept), Err)
    }

    /// A selection with its model, if that is there; it need not be looked for where it is the one that was found already.
    pub(super) fn of(saved: Saved, known: Option<&Found>) -> Self {
        // These are the project's, not a sound's.
        let mut saved = Saved {
            look: Look::default(),
            pad: None,
            running: Wish::default(),
            compare: None,
            controllers: BTreeMap::new(),
            ..saved
        };
        let known = known.filter(|(model, _)| saved.model.is_to(model));
        match known.map_or_else(|| saved.model.find(), |known| Ok(known.clone())) {
            Ok((model, path)) => {
                let notice = saved.model.replaced(&model);
                let embedded = saved.model.embedded.take().filter(|_| notice.is_none());
                if notice.is_some() {
                    saved.latents.clear();
                }
                saved.model = Reference { embedded, ..Reference::to(&model, path) };
                Self { saved, model: Some(model), problem: None, notice, cabinet: None }
            }
            Err(problem) => Self { saved, model: None, problem: Some(problem), notice: None, cabinet: None },
        }
    }

    /// The same for a project whose models travel with it, if they did with the other one.
    #[must_use]
    pub fn in_place_of(mut self, other: &Self) -> Self {
        self.saved.embed |= other.saved.embed;
        self
    }

    /// What is written of it: with the model in it where that is wanted, without how a window looks.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let (version, running) = (crate::state::VERSION, Wish::default());
        let mut saved = Saved { version, look: Look::default(), pad: None, running, ..self.saved.clone() };
        match (&self.model, saved.embed) {
            (Some(model), true) => saved.model.embedded = library::pack(model),
            // What is missing here may be all that is left of it.
            (None, true) => {}
            (_, false) => saved.model.embedded = None,
        }
        if let Some(reference) = &mut saved.cabinet {
            match (self.cabinet.as_ref().filter(|file| file.hash == reference.hash), saved.embed) {
                (Some(file), true) => reference.embedded = cabinet::pack(file),
                (None, true) => {}
                (_, false) => reference.embedded = None,
            }
        }
        saved
    }
}
