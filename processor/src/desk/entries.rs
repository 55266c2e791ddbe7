//! The list of models to choose from, and what the user thinks of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::torch;
use ondes_ui::{Entry, EntryId, Source, quality_line};
use serde::{Deserialize, Serialize};

use crate::library::{self, BUNDLED, Facts, Found};

/// Models that count as recent.
const RECENT: usize = 12;

/// Where a model of the list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its place among the bundled ones.
    Bundled(usize),
    /// Its file.
    File(PathBuf),
}

impl Origin {
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
    pub fn id(&self) -> EntryId {
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        EntryId(hasher.finish())
    }

    /// Reads the model; may take its time.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(&self) -> Result<Found, String> {
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
pub struct Marks {
    /// Keys of favourites.
    pub favourites: BTreeSet<String>,
    /// Keys of models that were loaded, the latest first.
    pub recent: VecDeque<String>,
}

impl Marks {
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
type Models = Vec<(Origin, Arc<Facts>)>;

/// The list. Folders are read on a thread of their own.
pub struct Entries {
    /// As they are shown.
    pub list: Vec<Entry>,
    origins: HashMap<EntryId, Origin>,
    hashes: HashMap<String, EntryId>,
    found: Models,
    scan: Option<JoinHandle<Models>>,
    marks: Marks,
    marks_file: Option<PathBuf>,
}

impl Entries {
    /// The bundled models; the user's folders are being read. Marks are kept in that file, if any.
    #[must_use]
    pub fn new(marks_file: Option<PathBuf>) -> Self {
        let marks = marks_file.as_deref().map(Marks::read).unwrap_or_default();
        let mut entries = Self {
            list: Vec::new(),
            origins: HashMap::new(),
            hashes: HashMap::new(),
            found: Vec::new(),
            scan: None,
            marks,
            marks_file,
        };
        entries.rescan();
        entries
    }

    /// Looks for models again.
    pub fn rescan(&mut self) {
        if self.scan.is_none() {
            self.scan = Some(std::thread::spawn(look));
        }
    }

    /// Takes what was found since. Gives whether the search goes on.
    pub fn poll(&mut self) -> bool {
        if self.scan.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(found)) = self.scan.take().map(JoinHandle::join)
        {
            self.found = found;
            self.arrange();
        }
        self.scan.is_some()
    }

    /// Waits for the search.
    pub fn finish(&mut self) {
        if let Some(Ok(found)) = self.scan.take().map(JoinHandle::join) {
            self.found = found;
            self.arrange();
        }
    }

    fn arrange(&mut self) {
        (self.origins, self.hashes) = (HashMap::new(), HashMap::new());
        self.list.clear();
        for (origin, facts) in &self.found {
            let (id, key) = (origin.id(), origin.key());
            self.list.push(Entry {
                id,
                name: facts.card.name.clone(),
                author: facts.card.author.clone(),
                kind: facts.kind,
                source: if matches!(origin, Origin::Bundled(_)) { Source::Bundled } else { Source::User },
                favourite: self.marks.favourites.contains(&key),
                recent: self.marks.recent.contains(&key),
                quality: quality_line(&facts.card),
            });
            self.origins.insert(id, origin.clone());
            self.hashes.entry(facts.hash.clone()).or_insert(id);
        }
    }

    /// Where a model of the list is.
    #[must_use]
    pub fn origin(&self, id: EntryId) -> Option<Origin> {
        self.origins.get(&id).cloned()
    }

    /// The entry of a model, by the hash of its content.
    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Option<EntryId> {
        self.hashes.get(hash).copied()
    }

    /// The entry so many places after that one, around the end; the first where there is none.
    #[must_use]
    pub fn beside(&self, id: Option<EntryId>, steps: isize) -> Option<EntryId> {
        let at = id.and_then(|id| self.list.iter().position(|entry| entry.id == id));
        let count = isize::try_from(self.list.len()).ok().filter(|count| *count > 0)?;
        let next = at.map_or(0, |at| (at as isize + steps).rem_euclid(count));
        self.list.get(next as usize).map(|entry| entry.id)
    }

    /// Marks a model, or takes the mark away.
    pub fn set_favourite(&mut self, id: EntryId, favourite: bool) {
        let Some(key) = self.origins.get(&id).map(Origin::key) else { return };
        self.mark(|marks| {
            if favourite {
                marks.favourites.insert(key);
            } else {
                marks.favourites.remove(&key);
            }
        });
    }

    /// Remembers that a model was loaded.
    pub fn set_recent(&mut self, origin: &Origin) {
        let key = origin.key();
        self.mark(|marks| {
            marks.recent.retain(|other| *other != key);
            marks.recent.push_front(key);
            marks.recent.truncate(RECENT);
        });
    }

    fn mark(&mut self, change: impl FnOnce(&mut Marks)) {
        if let Some(path) = &self.marks_file {
            // Another window may have written since.
            if path.is_file() {
                self.marks = Marks::read(path);
            }
        }
        change(&mut self.marks);
        if let Some(path) = &self.marks_file {
            // Where it cannot be kept it counts for this window at least.
            let _ = self.marks.write(path);
        }
        self.arrange();
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // This code may be unloaded after this.
        self.finish();
    }
}

/// All models that can be chosen.
fn look() -> Models {
    let bundled = BUNDLED.iter().enumerate();
    let bundled = bundled.map(|(index, model)| (Origin::Bundled(index), Arc::new(Facts::of(&model.model()))));
    let files = library::folders().into_iter().flat_map(|folder| library::files(&folder));
    let user = files.filter_map(|path| Some((library::facts(&path)?, path)));
    bundled.chain(user.map(|(facts, path)| (Origin::File(path), facts))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ondes").join("browser.json");
        let mut entries = Entries::new(Some(path.clone()));
        entries.finish();
        let (first, second) = (entries.list[0].id, entries.list[1].id);
        entries.set_favourite(second, true);
        entries.set_recent(&entries.origin(first).unwrap());
        assert!(entries.list[0].recent && entries.list[1].favourite);
        let mut again = Entries::new(Some(path.clone()));
        again.finish();
        assert_eq!(again.list, entries.list);
        again.set_favourite(second, false);
        assert!(!again.list[1].favourite);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        std::fs::write(&path, "{").unwrap();
        assert_eq!(Marks::read(&path), Marks::default());
    }

    #[test]
    fn the_list_is_walked_around_its_end() {
        let mut entries = Entries::new(None);
        entries.finish();
        let ids: Vec<_> = entries.list.iter().map(|entry| entry.id).collect();
        assert_eq!(entries.beside(ids.last().copied(), 1), Some(ids[0]));
        assert_eq!(entries.beside(Some(ids[0]), -1), ids.last().copied());
        assert_eq!(entries.beside(None, 1), Some(ids[0]));
        assert_eq!(entries.with_hash(BUNDLED[1].model().content_hash()), Some(ids[1]));
    }
}
