//! The cabinet that is played through: asked for, found again, missing.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::chain::ImpulseFile;

use super::{Inner, Shared};
use crate::cabinet;
use crate::library::{Missing, Reference};

impl Shared {
    /// Begins to read the file of a cabinet, and plays through it when it is there: on a thread of its own, as with
    /// [`Shared::fetch`]. What cannot be read is [missing](Shared::missing_cabinet), and the one before plays on.
    pub fn fetch_cabinet(self: &Arc<Self>, path: PathBuf) -> JoinHandle<()> {
        let ticket = {
            let mut inner = self.inner();
            inner.cabinets += 1;
            inner.cabinets
        };
        let shared = self.clone();
        std::thread::spawn(move || {
            let found = ImpulseFile::read(&path);
            let mut inner = shared.inner();
            if inner.cabinets != ticket {
                return;
            }
            match found {
                Ok(file) => {
                    let (reference, file) = (cabinet::reference(&file, Some(path)), Arc::new(file));
                    inner.choose_cabinet(Some((reference, file.clone())));
                    inner.cabinet_problem = None;
                    shared.cabinet.send(Some(file));
                }
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    inner.cabinet_problem = Some(Missing { name, looked: vec![error.to_string()] });
                }
            }
            shared.rest.wake();
        })
    }

    /// Looks again for a cabinet that was missing.
    pub fn retry_cabinet(&self) {
        let mut inner = self.inner();
        if inner.cabinet_problem.is_some() {
            self.adopt_cabinet(&mut inner, None);
        }
    }

    /// Plays through no cabinet.
    pub fn remove_cabinet(&self) {
        let mut inner = self.inner();
        inner.cabinets += 1;
        inner.choose_cabinet(None);
        inner.cabinet_problem = None;
        self.cabinet.send(None);
    }

    /// What a project knows of the cabinet.
    #[must_use]
    pub fn cabinet_reference(&self) -> Option<Reference> {
        self.inner().saved.cabinet.clone()
    }

    /// The file of a cabinet that was asked for and is not there, or is no cabinet.
    #[must_use]
    pub fn missing_cabinet(&self) -> Option<Missing> {
        self.inner().cabinet_problem.clone()
    }

    /// Goes to the cabinet that the selection says. `known` need not be looked for again.
    pub(super) fn adopt_cabinet(&self, inner: &mut Inner, known: Option<Arc<ImpulseFile>>) {
        inner.cabinets += 1;
        let known = known.or_else(|| self.cabinet.file());
        let found = inner.saved.cabinet.as_ref().map(|reference| match known {
            Some(file) if file.hash == reference.hash => Ok((file, reference.path.clone())),
            _ => cabinet::find(reference),
        });
        let (file, problem) = match found.transpose() {
            Ok(found) => {
                let file = found.map(|(file, path)| {
                    inner.saved.cabinet = inner.saved.cabinet.take().map(|saved| Reference { path, ..saved });
                    file
                });
                (file, None)
            }
            Err(problem) => (None, Some(problem)),
        };
        inner.cabinet_problem = problem;
        self.cabinet.send(file);
    }
}

impl Inner {
    /// Plays through another cabinet, or none; what comes back after an audition does, too.
    fn choose_cabinet(&mut self, chosen: Option<(Reference, Arc<ImpulseFile>)>) {
        let (reference, file) = chosen.unzip();
        if let Some(before) = &mut self.before {
            (before.saved.cabinet, before.cabinet) = (reference.clone(), file);
        }
        self.saved.cabinet = reference;
    }
}
