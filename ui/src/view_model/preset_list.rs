//! The list of presets, and the threads that read, save and delete them.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::panics;
use ondes_player::instance::InstanceHandle;
use ondes_player::library::LoadError;
use ondes_player::parameter::Parameter;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::parameter_values::ParameterValue;
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::preset::list::{PresetId, PresetListing, list_presets};
use ondes_player::preset::location::PresetLocation;
use ondes_player::product::Product;
use ondes_player::snapshot::SoundSnapshot;

use crate::view::{EntryOrigin, PresetEntry};

/// Normalized values this close count as equal, since a value that is normalized and converted back
/// may differ in its last digits.
const UNCHANGED: f32 = 1e-5;

/// The presets of a product, and the work in progress on them.
pub struct PresetList {
    /// All presets; empty until the first search has ended.
    pub listing: PresetListing,
    /// Entries for the window.
    pub entries: Vec<PresetEntry>,
    /// The preset that was loaded or saved last, if it is in the list.
    pub current: Option<PresetId>,
    /// Its name, whether it is in the list or not.
    pub current_name: Option<String>,
    /// The preset that has just been saved.
    pub(super) saved: Option<PresetLocation>,
    /// Error of the last save or deletion. Errors of loading are in the instance's status.
    pub problem: Option<String>,
    pub(super) product: Product,
    pub(super) folders: Vec<PathBuf>,
    search: Option<JoinHandle<PresetListing>>,
    /// Files have changed since the search began.
    stale: bool,
    pub(super) pending: Vec<PendingPreset>,
    jobs: Vec<JoinHandle<JobResult>>,
}

/// Result of saving, with the location, or of deleting.
pub(super) type JobResult = Result<Option<PresetLocation>, String>;

/// A preset that is being read.
pub(super) struct PendingPreset {
    pub instance: Arc<InstanceHandle>,
    /// Number of the request.
    pub request: u64,
    pub location: PresetLocation,
    /// Reads its name and its sound.
    pub reader: JoinHandle<Result<(String, SoundSnapshot), LoadError>>,
}

impl PresetList {
    /// Creates the list and starts to search for factory presets and those in `folders`. Presets
    /// are saved to the first folder.
    #[must_use]
    pub fn new(product: Product, folders: Vec<PathBuf>) -> Self {
        let mut presets = Self {
            listing: PresetListing::default(),
            entries: Vec::new(),
            current: None,
            current_name: None,
            saved: None,
            problem: None,
            product,
            folders,
            search: None,
            stale: false,
            pending: Vec::new(),
            jobs: Vec::new(),
        };
        presets.rescan();
        presets
    }

    /// Searches again.
    pub fn rescan(&mut self) {
        self.stale = self.search.is_some();
        if !self.stale {
            let (product, folders) = (self.product, self.folders.clone());
            self.search = Some(std::thread::spawn(move || list_presets(product, &folders)));
        }
    }

    /// Takes the results of threads that have ended. Returns whether any work is in progress.
    pub fn poll(&mut self) -> bool {
        if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
            if let Some(Ok(listing)) = self.search.take().map(JoinHandle::join) {
                self.entries = entries(&listing);
                self.listing = listing;
            }
            if self.stale {
                self.rescan();
            }
        }
        for job in self
            .jobs
            .extract_if(.., |job| job.is_finished())
            .collect::<Vec<_>>()
        {
            match job.join() {
                Ok(Ok(location)) => self.saved = location.or(self.saved.take()),
                Ok(Err(problem)) => self.problem = Some(problem),
                Err(panic) => {
                    self.problem = Some(format!("internal error: {}", panics::message(&*panic)))
                }
            }
            self.rescan();
        }
        self.search.is_some() || !self.jobs.is_empty() || !self.pending.is_empty()
    }

    /// Shows the preset at this location as the current one.
    pub(super) fn set_current(&mut self, location: Option<&PresetLocation>) {
        let known = location.and_then(|location| self.listing.at(location));
        self.current = known.map(|preset| preset.id);
        self.current_name = location.and_then(|location| self.name(location));
    }

    /// Returns the name of a preset, whether it is in the list or not.
    pub(super) fn name(&self, location: &PresetLocation) -> Option<String> {
        if let Some(known) = self.listing.at(location) {
            return Some(known.name.clone());
        }
        match location {
            PresetLocation::Factory(key) => Some(FactoryPreset::find(key)?.preset().ok()?.name),
            PresetLocation::File(path) => Some(path.file_stem()?.to_string_lossy().into_owned()),
        }
    }

    /// Returns whether the sound has changed since the current preset was loaded or saved.
    #[must_use]
    pub fn is_changed(&self, source: &dyn ParameterSource, instance: &InstanceHandle) -> bool {
        let Some(preset) = self
            .listing
            .presets
            .iter()
            .find(|preset| Some(preset.id) == self.current)
        else {
            return false;
        };
        let distance = |id: &str, saved: &ParameterValue| {
            let id = Parameter::find(id)?;
            let parameter = Parameter::get(id)?;
            Some(
                (source.normalized(id)? - parameter.normalize(saved.for_parameter(parameter)?))
                    .abs(),
            )
        };
        let mut values = preset.parameters.iter();
        values.any(|(id, saved)| distance(id, saved).is_some_and(|distance| distance > UNCHANGED))
            || instance.read_state(|state| {
                preset.latents != state.latents
                    || preset.cabinet.as_ref() != state.cabinet.as_ref().map(|file| &file.hash)
            })
    }

    /// Returns whether there is a folder to save to.
    #[must_use]
    pub fn can_save(&self) -> bool {
        !self.folders.is_empty()
    }

    /// Returns whether the user has a preset of this name.
    #[must_use]
    pub fn is_taken(&self, name: &str) -> bool {
        let mut own = self
            .listing
            .presets
            .iter()
            .filter(|preset| !preset.is_factory());
        own.any(|preset| preset.name.eq_ignore_ascii_case(name.trim()))
    }

    pub(super) fn location(&self, id: PresetId) -> Option<PresetLocation> {
        self.listing.location(id).cloned()
    }

    /// Returns the preset `steps` after this one, wrapping around; the first if there is none.
    pub(super) fn beside(&self, id: Option<PresetId>, steps: isize) -> Option<PresetId> {
        let list = &self.listing.presets;
        let index = id.and_then(|id| list.iter().position(|preset| preset.id == id));
        let count = isize::try_from(list.len())
            .ok()
            .filter(|count| *count > 0)?;
        let next = index.map_or(0, |index| (index as isize + steps).rem_euclid(count));
        list.get(next as usize).map(|preset| preset.id)
    }

    pub(super) fn start_job(&mut self, job: impl FnOnce() -> JobResult + Send + 'static) {
        self.problem = None;
        self.jobs.push(std::thread::spawn(job));
    }
}

/// Returns the entries for the window; presets that cannot be loaded come last.
fn entries(listing: &PresetListing) -> Vec<PresetEntry> {
    let readable = listing.presets.iter().map(|preset| {
        let about = [
            preset.model.as_str(),
            &preset.tags.join(", "),
            &preset.comment,
            &preset.author,
        ];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        let origin = if preset.is_factory() {
            EntryOrigin::Bundled
        } else {
            EntryOrigin::User
        };
        let (name, about, path) = (
            preset.name.clone(),
            about.join(" · "),
            file(&preset.location),
        );
        PresetEntry {
            id: preset.id,
            name,
            about,
            origin,
            path,
            problem: None,
        }
    });
    let unreadable = listing.unreadable.iter().map(|preset| {
        let (name, origin) = match &preset.location {
            PresetLocation::Factory(key) => (key.clone(), EntryOrigin::Bundled),
            PresetLocation::File(path) => (
                path.file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                EntryOrigin::User,
            ),
        };
        let (path, problem) = (file(&preset.location), Some(preset.reason.clone()));
        PresetEntry {
            id: preset.id,
            name,
            about: String::new(),
            origin,
            path,
            problem,
        }
    });
    readable.chain(unreadable).collect()
}

fn file(location: &PresetLocation) -> Option<PathBuf> {
    match location {
        PresetLocation::Factory(_) => None,
        PresetLocation::File(path) => Some(path.clone()),
    }
}

impl Drop for PresetList {
    fn drop(&mut self) {
        // Joined, since a plugin's code may be unloaded after this.
        let _ = self.search.take().map(JoinHandle::join);
        self.jobs.drain(..).for_each(|job| drop(job.join()));
        for PendingPreset {
            instance,
            request,
            reader,
            ..
        } in self.pending.drain(..)
        {
            let _ = reader.join();
            instance.fail_request(request, None);
        }
    }
}
