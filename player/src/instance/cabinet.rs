//! Selecting cabinets: loading, restoring, and cabinets that are missing.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::chain::ImpulseFile;
use ondes_engine::panics::contain;

use super::{Inner, InstanceHandle};
use crate::cabinet;
use crate::cabinet::bundled::BundledCabinet;
use crate::library::{FileReference, MissingFile};

impl InstanceHandle {
    /// Loads a cabinet from a file, on a thread of its own as with [`InstanceHandle::load_model`].
    /// A file that cannot be read is reported by [`InstanceHandle::missing_cabinet`] and the
    /// previous cabinet stays.
    pub fn load_cabinet(self: &Arc<Self>, path: PathBuf) -> JoinHandle<()> {
        let request = {
            let mut inner = self.inner();
            inner.cabinet_requests += 1;
            inner.cabinet_requests
        };
        let instance = self.clone();
        std::thread::spawn(move || {
            let read = || ImpulseFile::read(&path).map_err(|error| error.to_string());
            let found = contain(read)
                .unwrap_or_else(|reason| Err(format!("the cabinet cannot be read: {reason}")));
            let mut inner = instance.inner();
            if inner.cabinet_requests != request {
                return;
            }
            match found {
                Ok(file) => {
                    let (reference, file) = (cabinet::reference(&file, Some(path)), Arc::new(file));
                    inner.choose_cabinet(Some((reference, file.clone())));
                    inner.missing_cabinet = None;
                    instance.cabinet_handover.send(Some(file));
                    instance.host_notifier.mark_state_changed();
                }
                Err(reason) => {
                    let name = path
                        .file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned();
                    inner.missing_cabinet = Some(MissingFile::new(&name, vec![reason]));
                }
            }
            instance.sleep_state.wake_host();
        })
    }

    /// Selects a bundled cabinet.
    pub fn choose_bundled_cabinet(&self, cabinet: &BundledCabinet) {
        let mut inner = self.inner();
        inner.cabinet_requests += 1;
        inner.choose_cabinet(Some((cabinet.reference(), cabinet.file())));
        inner.missing_cabinet = None;
        self.cabinet_handover.send(Some(cabinet.file()));
        self.host_notifier.mark_state_changed();
    }

    /// Sets whether each model that is loaded brings the bundled cabinet that suits it, or none. If
    /// so, the present model does at once.
    pub fn set_automatic_cabinet(&self, automatic: bool) {
        let mut inner = self.inner();
        inner.set_automatic_cabinet(automatic);
        self.select_automatic_cabinet(&mut inner);
        self.host_notifier.mark_state_changed();
    }

    /// Selects the cabinet that suits the model, if that is left to it. The first time a notice
    /// tells of it.
    pub(super) fn select_automatic_cabinet(&self, inner: &mut Inner) {
        if !inner.state.automatic_cabinet {
            return;
        }
        let card = inner.model.as_ref().map(|model| &model.header().card);
        let cabinet = card.and_then(|card| BundledCabinet::for_gear(card.gear.as_ref()?));
        let name = card.map_or_else(String::new, |card| card.name.clone());
        inner.cabinet_requests += 1;
        inner.missing_cabinet = None;
        inner.state.cabinet = cabinet.map(BundledCabinet::reference);
        self.cabinet_handover
            .send(cabinet.map(BundledCabinet::file));
        if let Some(cabinet) = cabinet
            && !std::mem::replace(&mut inner.cabinet_announced, true)
        {
            let cabinet = cabinet.name;
            inner.notice = Some(format!(
                "“{name}” was captured without a loudspeaker, so it plays through “{cabinet}”; page Chain has others"
            ));
        }
    }

    /// Searches for a missing cabinet again.
    pub fn retry_missing_cabinet(&self) {
        let mut inner = self.inner();
        if inner.missing_cabinet.is_some() {
            self.restore_cabinet(&mut inner, None);
        }
    }

    /// Removes the cabinet.
    pub fn remove_cabinet(&self) {
        let mut inner = self.inner();
        inner.cabinet_requests += 1;
        inner.choose_cabinet(None);
        inner.missing_cabinet = None;
        self.cabinet_handover.send(None);
        self.host_notifier.mark_state_changed();
    }

    /// Returns the cabinet's file if it was not found or is invalid.
    #[must_use]
    pub fn missing_cabinet(&self) -> Option<MissingFile> {
        self.inner().missing_cabinet.clone()
    }

    /// Restores the cabinet of the selection. `known` is used if it is the same file.
    pub(super) fn restore_cabinet(&self, inner: &mut Inner, known: Option<Arc<ImpulseFile>>) {
        inner.cabinet_requests += 1;
        let known = known.or_else(|| self.cabinet_handover.file());
        let found = inner.state.cabinet.as_ref().map(|reference| match known {
            Some(file) if file.hash == reference.hash => Ok((file, reference.path.clone())),
            _ => cabinet::find(reference),
        });
        let (file, missing) = match found.transpose() {
            Ok(found) => {
                let file = found.map(|(file, path)| {
                    inner.state.cabinet = inner
                        .state
                        .cabinet
                        .take()
                        .map(|reference| FileReference { path, ..reference });
                    file
                });
                (file, None)
            }
            Err(missing) => (None, Some(missing)),
        };
        inner.missing_cabinet = missing;
        self.cabinet_handover.send(file);
    }
}

impl Inner {
    /// Selects a cabinet, or none, as the user wants; an audition that ends keeps it.
    fn choose_cabinet(&mut self, chosen: Option<(FileReference, Arc<ImpulseFile>)>) {
        let (reference, file) = chosen.unzip();
        if let Some(before) = &mut self.before_audition {
            (before.state.cabinet, before.cabinet) = (reference.clone(), file);
        }
        self.state.cabinet = reference;
        self.set_automatic_cabinet(false);
    }

    fn set_automatic_cabinet(&mut self, automatic: bool) {
        self.state.automatic_cabinet = automatic;
        if let Some(before) = &mut self.before_audition {
            before.state.automatic_cabinet = automatic;
        }
    }
}
