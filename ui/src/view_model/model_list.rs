//! The list of models, and the user's favourites and recent models.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::files;
use ondes_player::library::{self, BUNDLED, FoundModel, LoadError, ModelSummary};
use ondes_player::product::Product;
use serde::{Deserialize, Serialize};

use crate::format::{quality_line, subtitle};
use crate::view::{EntryOrigin, ModelEntry, ModelEntryId};

/// Number of models that count as recent.
const RECENT: usize = 12;

/// Location of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLocation {
    /// Index among the bundled models.
    Bundled(usize),
    /// File.
    File(PathBuf),
}

impl ModelLocation {
    /// Returns the key under which the model is remembered.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Bundled(index) => format!(
                "bundled:{}",
                BUNDLED.get(*index).map_or("", |bundled| bundled.name)
            ),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Returns the id, a hash of the key, which is the same when the list is read again.
    #[must_use]
    pub fn id(&self) -> ModelEntryId {
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        ModelEntryId(hasher.finish())
    }

    /// Reads the model; may take long.
    ///
    /// # Errors
    /// Returns what is wrong with the file, or the program that may not run.
    pub fn read(&self) -> Result<FoundModel, LoadError> {
        match self {
            Self::Bundled(index) => Ok((
                BUNDLED
                    .get(*index)
                    .ok_or_else(|| "no such model".to_owned())?
                    .model(),
                None,
            )),
            Self::File(path) => {
                // Opening a pipe would block until its other end is opened.
                if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                    let what = if path.is_dir() { "a folder" } else { "no file" };
                    return Err(format!("{}: {what}, not a model", path.display()).into());
                }
                Ok((library::open(path)?, Some(path.clone())))
            }
        }
    }
}

/// Favourites, recent models, and hints that the user has dismissed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrowserMarks {
    /// Keys of favourites.
    pub favourites: BTreeSet<String>,
    /// Keys of loaded models, the latest first.
    pub recent: VecDeque<String>,
    /// Keys of dismissed hints.
    pub dismissed_hints: BTreeSet<String>,
}

impl BrowserMarks {
    /// Reads the marks from a file; none if there is no valid file.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let bytes = files::read(path, MAX_BYTES).ok();
        bytes
            .and_then(|bytes| serde_json::from_slice(files::without_mark(&bytes)).ok())
            .unwrap_or_default()
    }

    /// Writes the marks atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        files::write(path, &serde_json::to_vec_pretty(self)?)
    }
}

/// Returns the file of the marks: `ondes/browser.json` in the user's configuration folder.
#[must_use]
pub fn marks_file() -> Option<PathBuf> {
    dirs::config_dir().map(|settings| settings.join("ondes").join("browser.json"))
}

/// Largest file of the marks, bytes; far above any real one.
const MAX_BYTES: u64 = 16 << 20;

/// Models with their summaries.
type FoundModels = Vec<(ModelLocation, Arc<ModelSummary>)>;

/// The list of models. Folders are read on a thread of its own.
pub struct ModelList {
    /// Entries for the window.
    pub list: Vec<ModelEntry>,
    locations: HashMap<ModelEntryId, ModelLocation>,
    hashes: HashMap<String, ModelEntryId>,
    found: FoundModels,
    scan: Option<JoinHandle<FoundModels>>,
    marks: BrowserMarks,
    marks_file: Option<PathBuf>,
    product: Product,
}

impl ModelList {
    /// Creates the list of bundled models and starts to read the user's folders. Models that suit
    /// the product come first. Marks are saved in `marks_file`, if given.
    #[must_use]
    pub fn new(product: Product, marks_file: Option<PathBuf>) -> Self {
        let marks = marks_file
            .as_deref()
            .map(BrowserMarks::read)
            .unwrap_or_default();
        let mut list = Self {
            list: Vec::new(),
            locations: HashMap::new(),
            hashes: HashMap::new(),
            found: Vec::new(),
            scan: None,
            marks,
            marks_file,
            product,
        };
        list.rescan();
        list
    }

    /// Reads the folders again.
    pub fn rescan(&mut self) {
        if self.scan.is_none() {
            self.scan = Some(std::thread::spawn(find_models));
        }
    }

    /// Takes the result of the thread, if it has ended. Returns whether it is still running.
    pub fn poll(&mut self) -> bool {
        if self.scan.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(found)) = self.scan.take().map(JoinHandle::join)
        {
            self.found = found;
            self.rebuild();
        }
        self.scan.is_some()
    }

    /// Waits for the thread.
    pub fn finish(&mut self) {
        if let Some(Ok(found)) = self.scan.take().map(JoinHandle::join) {
            self.found = found;
            self.rebuild();
        }
    }

    fn rebuild(&mut self) {
        (self.locations, self.hashes) = (HashMap::new(), HashMap::new());
        self.list.clear();
        let kinds = self.product.kinds();
        let rank = |summary: &ModelSummary| kinds.iter().position(|kind| *kind == summary.kind);
        let is_user = |location: &ModelLocation| matches!(location, ModelLocation::File(_));
        self.found
            .sort_by_key(|(location, summary)| (is_user(location), rank(summary)));
        for (location, summary) in &self.found {
            let (id, key) = (location.id(), location.key());
            self.list.push(ModelEntry {
                id,
                name: summary.card.name.clone(),
                author: summary.card.author.clone(),
                kind: summary.kind,
                origin: if matches!(location, ModelLocation::Bundled(_)) {
                    EntryOrigin::Bundled
                } else {
                    EntryOrigin::User
                },
                favourite: self.marks.favourites.contains(&key),
                recent: self.marks.recent.iter().position(|recent| *recent == key),
                about: subtitle(&summary.card),
                quality: quality_line(&summary.card),
                path: match location {
                    ModelLocation::Bundled(_) => None,
                    ModelLocation::File(path) => Some(path.clone()),
                },
            });
            self.locations.insert(id, location.clone());
            self.hashes.entry(summary.hash.clone()).or_insert(id);
        }
    }

    /// Returns the location of a model.
    #[must_use]
    pub fn location(&self, id: ModelEntryId) -> Option<ModelLocation> {
        self.locations.get(&id).cloned()
    }

    /// Returns the entry of the model with this content hash.
    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Option<ModelEntryId> {
        self.hashes.get(hash).copied()
    }

    /// Returns the entry `steps` after this one, wrapping around; the first if there is none.
    #[must_use]
    pub fn beside(&self, id: Option<ModelEntryId>, steps: isize) -> Option<ModelEntryId> {
        let at = id.and_then(|id| self.list.iter().position(|entry| entry.id == id));
        let count = isize::try_from(self.list.len())
            .ok()
            .filter(|count| *count > 0)?;
        let next = at.map_or(0, |at| (at as isize + steps).rem_euclid(count));
        self.list.get(next as usize).map(|entry| entry.id)
    }

    /// Marks a model as a favourite, or removes the mark.
    pub fn set_favourite(&mut self, id: ModelEntryId, favourite: bool) {
        let Some(key) = self.locations.get(&id).map(ModelLocation::key) else {
            return;
        };
        self.mark(|marks| {
            if favourite {
                marks.favourites.insert(key);
            } else {
                marks.favourites.remove(&key);
            }
        });
    }

    /// Adds a model to the recent ones.
    pub fn set_recent(&mut self, location: &ModelLocation) {
        let key = location.key();
        self.mark(|marks| {
            marks.recent.retain(|other| *other != key);
            marks.recent.push_front(key);
            marks.recent.truncate(RECENT);
        });
    }

    /// Returns whether the user has dismissed the hint of this key.
    #[must_use]
    pub fn is_dismissed(&self, hint: &str) -> bool {
        self.marks.dismissed_hints.contains(hint)
    }

    /// Remembers that the user has dismissed a hint.
    pub fn dismiss_hint(&mut self, hint: &str) {
        if !self.is_dismissed(hint) {
            self.mark(|marks| {
                marks.dismissed_hints.insert(hint.to_owned());
            });
        }
    }

    fn mark(&mut self, change: impl FnOnce(&mut BrowserMarks)) {
        if let Some(path) = &self.marks_file {
            // Another window may have written in the meantime.
            if path.is_file() {
                self.marks = BrowserMarks::read(path);
            }
        }
        change(&mut self.marks);
        if let Some(path) = &self.marks_file {
            // If the file cannot be written, the mark holds for this window only.
            let _ = self.marks.write(path);
        }
        self.rebuild();
    }
}

impl Drop for ModelList {
    fn drop(&mut self) {
        // Joined, since a plugin's code may be unloaded after this.
        self.finish();
    }
}

/// Finds all models.
fn find_models() -> FoundModels {
    let bundled = BUNDLED.iter().enumerate();
    let bundled = bundled.map(|(index, model)| {
        (
            ModelLocation::Bundled(index),
            Arc::new(ModelSummary::new(&model.model())),
        )
    });
    let files = library::folders()
        .into_iter()
        .flat_map(|folder| library::files(&folder));
    let user = files.filter_map(|path| Some((library::summary(&path)?, path)));
    bundled
        .chain(user.map(|(summary, path)| (ModelLocation::File(path), summary)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ondes").join("browser.json");
        let mut list = ModelList::new(Product::Instrument, Some(path.clone()));
        list.finish();
        let (first, second) = (list.list[0].id, list.list[1].id);
        list.set_favourite(second, true);
        list.set_recent(&list.location(first).unwrap());
        assert!(list.list[0].recent == Some(0) && list.list[1].favourite);
        list.set_recent(&list.location(second).unwrap());
        assert_eq!(
            [0, 1].map(|entry| list.list[entry].recent),
            [Some(1), Some(0)]
        );
        list.set_recent(&list.location(first).unwrap());
        list.dismiss_hint("keyboard");
        let mut again = ModelList::new(Product::Instrument, Some(path.clone()));
        again.finish();
        assert_eq!(again.list, list.list);
        assert!(again.is_dismissed("keyboard") && !again.is_dismissed("input"));
        again.set_favourite(second, false);
        assert!(!again.list[1].favourite);
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left behind"
        );
        std::fs::write(&path, "{").unwrap();
        assert_eq!(BrowserMarks::read(&path), BrowserMarks::default());
    }

    #[test]
    fn what_suits_the_product_comes_first() {
        for product in [Product::Instrument, Product::Effect] {
            let mut list = ModelList::new(product, None);
            list.finish();
            let bundled = list
                .list
                .iter()
                .filter(|entry| entry.origin == EntryOrigin::Bundled);
            let kinds: Vec<_> = bundled.map(|entry| entry.kind).collect();
            assert_eq!(kinds[0], product.kinds()[0]);
            let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert_eq!((kinds.len(), changes), (BUNDLED.len(), 3), "{kinds:?}");
            assert!(
                list.list
                    .iter()
                    .all(|entry| !entry.about.is_empty() && !entry.about.contains("spectral"))
            );
        }
    }

    #[test]
    fn the_list_is_walked_around_its_end() {
        let mut list = ModelList::new(Product::Instrument, None);
        list.finish();
        let ids: Vec<_> = list.list.iter().map(|entry| entry.id).collect();
        assert_eq!(list.beside(ids.last().copied(), 1), Some(ids[0]));
        assert_eq!(list.beside(Some(ids[0]), -1), ids.last().copied());
        assert_eq!(list.beside(None, 1), Some(ids[0]));
        assert_eq!(
            list.with_hash(BUNDLED[1].model().content_hash()),
            Some(ids[1])
        );
    }
}
