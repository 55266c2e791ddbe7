//! The list of models to choose from, and what the user thinks of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::torch;
use ondes_processor::library::{self, BUNDLED, FoundModel, ModelSummary};
use serde::{Deserialize, Serialize};

use crate::format::quality_line;
use crate::view::{EntryOrigin, ModelEntry, ModelEntryId};

/// Models that count as recent.
const RECENT: usize = 12;

/// Where a model of the list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLocation {
    /// Its place among the bundled ones.
    Bundled(usize),
    /// Its file.
    File(PathBuf),
}

impl ModelLocation {
    /// What it is remembered by.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Bundled(index) => format!("bundled:{}", BUNDLED.get(*index).map_or("", |bundled| bundled.name)),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// The same key has the same number, also when the list is made anew.
    #[must_use]
    pub fn id(&self) -> ModelEntryId {
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        ModelEntryId(hasher.finish())
    }

    /// Reads the model; may take its time.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(&self) -> Result<FoundModel, String> {
        match self {
            Self::Bundled(index) => Ok((BUNDLED.get(*index).ok_or("no such model")?.model(), None)),
            Self::File(path) => {
                // Opening a pipe would wait for its other end.
                if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                    let what = if path.is_dir() { "a folder" } else { "no file" };
                    return Err(format!("{}: {what}, not a model", path.display()));
                }
                // Whoever has it played by name wants it to run, if it is a program.
                let opened = torch::open(path).map_err(|error| error.to_string())?;
                Ok((opened.model.into(), Some(path.clone())))
            }
        }
    }
}

/// What the user thinks of models, and has loaded lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrowserMarks {
    /// Keys of favourites.
    pub favourites: BTreeSet<String>,
    /// Keys of models that were loaded, the latest first.
    pub recent: VecDeque<String>,
}

impl BrowserMarks {
    /// Those of a file; none where there is none, or it makes no sense.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes them, so that the file is the old one or the new one at any time.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
        std::fs::create_dir_all(folder)?;
        // Two windows, or two hosts, may write at once.
        let own = path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        let mut file = std::fs::File::create(&own)?;
        let written = file.write_all(&serde_json::to_vec_pretty(self)?).and_then(|()| file.sync_all());
        drop(file);
        let moved = written.and_then(|()| std::fs::rename(&own, path));
        if moved.is_err() {
            let _ = std::fs::remove_file(&own);
        }
        moved
    }
}

/// Where the marks are kept: `ondes/browser.json` among the user's settings.
#[must_use]
pub fn marks_file() -> Option<PathBuf> {
    dirs::config_dir().map(|settings| settings.join("ondes").join("browser.json"))
}

/// Models that can be chosen, and what is told of them.
type FoundModels = Vec<(ModelLocation, Arc<ModelSummary>)>;

/// The list. Folders are read on a thread of their own.
pub struct ModelList {
    /// As they are shown.
    pub list: Vec<ModelEntry>,
    locations: HashMap<ModelEntryId, ModelLocation>,
    hashes: HashMap<String, ModelEntryId>,
    found: FoundModels,
    scan: Option<JoinHandle<FoundModels>>,
    marks: BrowserMarks,
    marks_file: Option<PathBuf>,
}

impl ModelList {
    /// The bundled models; the user's folders are being read. Marks are kept in that file, if any.
    #[must_use]
    pub fn new(marks_file: Option<PathBuf>) -> Self {
        let marks = marks_file.as_deref().map(BrowserMarks::read).unwrap_or_default();
        let mut list = Self {
            list: Vec::new(),
            locations: HashMap::new(),
            hashes: HashMap::new(),
            found: Vec::new(),
            scan: None,
            marks,
            marks_file,
        };
        list.rescan();
        list
    }

    /// Looks for models again.
    pub fn rescan(&mut self) {
        if self.scan.is_none() {
            self.scan = Some(std::thread::spawn(find_models));
        }
    }

    /// Takes what was found since. Gives whether the search goes on.
    pub fn poll(&mut self) -> bool {
        if self.scan.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(found)) = self.scan.take().map(JoinHandle::join)
        {
            self.found = found;
            self.rebuild();
        }
        self.scan.is_some()
    }

    /// Waits for the search.
    pub fn finish(&mut self) {
        if let Some(Ok(found)) = self.scan.take().map(JoinHandle::join) {
            self.found = found;
            self.rebuild();
        }
    }

    fn rebuild(&mut self) {
        (self.locations, self.hashes) = (HashMap::new(), HashMap::new());
        self.list.clear();
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
                recent: self.marks.recent.contains(&key),
                quality: quality_line(&summary.card),
            });
            self.locations.insert(id, location.clone());
            self.hashes.entry(summary.hash.clone()).or_insert(id);
        }
    }

    /// Where a model of the list is.
    #[must_use]
    pub fn location(&self, id: ModelEntryId) -> Option<ModelLocation> {
        self.locations.get(&id).cloned()
    }

    /// The entry of a model, by the hash of its content.
    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Option<ModelEntryId> {
        self.hashes.get(hash).copied()
    }

    /// The entry so many places after that one, around the end; the first where there is none.
    #[must_use]
    pub fn beside(&self, id: Option<ModelEntryId>, steps: isize) -> Option<ModelEntryId> {
        let at = id.and_then(|id| self.list.iter().position(|entry| entry.id == id));
        let count = isize::try_from(self.list.len()).ok().filter(|count| *count > 0)?;
        let next = at.map_or(0, |at| (at as isize + steps).rem_euclid(count));
        self.list.get(next as usize).map(|entry| entry.id)
    }

    /// Marks a model, or takes the mark away.
    pub fn set_favourite(&mut self, id: ModelEntryId, favourite: bool) {
        let Some(key) = self.locations.get(&id).map(ModelLocation::key) else { return };
        self.mark(|marks| {
            if favourite {
                marks.favourites.insert(key);
            } else {
                marks.favourites.remove(&key);
            }
        });
    }

    /// Remembers that a model was loaded.
    pub fn set_recent(&mut self, location: &ModelLocation) {
        let key = location.key();
        self.mark(|marks| {
            marks.recent.retain(|other| *other != key);
            marks.recent.push_front(key);
            marks.recent.truncate(RECENT);
        });
    }

    fn mark(&mut self, change: impl FnOnce(&mut BrowserMarks)) {
        if let Some(path) = &self.marks_file {
            // Another window may have written since.
            if path.is_file() {
                self.marks = BrowserMarks::read(path);
            }
        }
        change(&mut self.marks);
        if let Some(path) = &self.marks_file {
            // Where it cannot be kept it counts for this window at least.
            let _ = self.marks.write(path);
        }
        self.rebuild();
    }
}

impl Drop for ModelList {
    fn drop(&mut self) {
        // This code may be unloaded after this.
        self.finish();
    }
}

/// All models that can be chosen.
fn find_models() -> FoundModels {
    let bundled = BUNDLED.iter().enumerate();
    let bundled =
        bundled.map(|(index, model)| (ModelLocation::Bundled(index), Arc::new(ModelSummary::of(&model.model()))));
    let files = library::folders().into_iter().flat_map(|folder| library::files(&folder));
    let user = files.filter_map(|path| Some((library::summary(&path)?, path)));
    bundled.chain(user.map(|(summary, path)| (ModelLocation::File(path), summary))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ondes").join("browser.json");
        let mut list = ModelList::new(Some(path.clone()));
        list.finish();
        let (first, second) = (list.list[0].id, list.list[1].id);
        list.set_favourite(second, true);
        list.set_recent(&list.location(first).unwrap());
        assert!(list.list[0].recent && list.list[1].favourite);
        let mut again = ModelList::new(Some(path.clone()));
        again.finish();
        assert_eq!(again.list, list.list);
        again.set_favourite(second, false);
        assert!(!again.list[1].favourite);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        std::fs::write(&path, "{").unwrap();
        assert_eq!(BrowserMarks::read(&path), BrowserMarks::default());
    }

    #[test]
    fn the_list_is_walked_around_its_end() {
        let mut list = ModelList::new(None);
        list.finish();
        let ids: Vec<_> = list.list.iter().map(|entry| entry.id).collect();
        assert_eq!(list.beside(ids.last().copied(), 1), Some(ids[0]));
        assert_eq!(list.beside(Some(ids[0]), -1), ids.last().copied());
        assert_eq!(list.beside(None, 1), Some(ids[0]));
        assert_eq!(list.with_hash(BUNDLED[1].model().content_hash()), Some(ids[1]));
    }
}
