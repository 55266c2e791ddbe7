//! Where models are: built in, in files, in the user's folders.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ondes_engine::model::{Card, Kind, Model, file};
use ondes_engine::torch;
use serde::{Deserialize, Serialize};

/// The largest file that a project carries with it, bytes.
pub const LARGEST_EMBEDDED: usize = 16 << 20;

/// The variable that names folders of models, in the form of `PATH`.
const FOLDERS: &str = "ONDES_MODELS";

/// A model that is built in.
pub struct Bundled {
    /// Its name among the bundled ones.
    pub name: &'static str,
    bytes: &'static [u8],
    read: OnceLock<Arc<Model>>,
}

impl Bundled {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, bytes, read: OnceLock::new() }
    }

    /// The model; all instances share it.
    ///
    /// # Panics
    /// When this was built from a damaged file.
    #[must_use]
    pub fn model(&self) -> Arc<Model> {
        let read = || Arc::new(file::parse(self.bytes).expect("bundled models are whole"));
        self.read.get_or_init(read).clone()
    }
}

/// The bundled models; the first one is what a new instance plays.
pub static BUNDLED: [Bundled; 6] = [
    Bundled::new("Bowed", include_bytes!("../../assets/models/bowed.ondes")),
    Bundled::new("Plucked", include_bytes!("../../assets/models/plucked.ondes")),
    Bundled::new("Wind", include_bytes!("../../assets/models/wind.ondes")),
    Bundled::new("Overdrive", include_bytes!("../../assets/models/overdrive.ondes")),
    Bundled::new("Triode", include_bytes!("../../assets/models/triode.ondes")),
    Bundled::new("Fuzz", include_bytes!("../../assets/models/fuzz.ondes")),
];

/// What a project remembers of a model, or of the file of a cabinet, so that it is found again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// BLAKE3 hash of its content, hexadecimal: what makes it the same model. Of a model with smaller sizes that of the whole
    /// ([`Model::whole_hash`]), so that it is the same one with others or none. Empty for whichever bundled model has the
    /// name, also when that was trained anew.
    pub hash: String,
    /// Name to show.
    pub name: String,
    /// The file it was read from; none for a bundled one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The file itself in Base64, where it is to travel with the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<String>,
}

impl Reference {
    /// A reference to a model that was read from there.
    #[must_use]
    pub fn to(model: &Model, path: Option<PathBuf>) -> Self {
        let name = model.header().card.name.clone();
        Self { hash: model.whole_hash().into(), name, path, embedded: None }
    }

    /// Whether this is the model that is meant, with whatever smaller sizes. Older projects have the hash of all that a file
    /// holds.
    #[must_use]
    pub fn is_to(&self, model: &Model) -> bool {
        [model.whole_hash(), model.content_hash()].contains(&self.hash.as_str())
    }

    /// Finds the model: in its file, among the bundled ones, in the user's folders, in the project. Where a bundled model was
    /// meant that has been trained anew since, its successor is found; [`Reference::replaced`] tells.
    ///
    /// # Errors
    /// What is missing, and where it was looked for.
    pub fn find(&self) -> Result<Found, Missing> {
        if self.hash.is_empty() {
            let named = BUNDLED.iter().find(|bundled| bundled.name == self.name);
            let missing = || Missing { name: self.name.clone(), looked: vec!["the bundled models".into()] };
            return named.map(|bundled| (bundled.model(), None)).ok_or_else(missing);
        }
        let mut looked = Vec::new();
        if let Some(path) = &self.path {
            match torch::open_known(path, &self.hash).map(|opened| opened.model) {
                Ok(model) if self.is_to(&model) => return Ok((model.into(), Some(path.clone()))),
                Ok(_) => looked.push(format!("{}: another model", path.display())),
                Err(error) => looked.push(error.to_string()),
            }
        }
        if let Some(model) = BUNDLED.iter().map(Bundled::model).find(|model| self.is_to(model)) {
            return Ok((model, None));
        }
        for folder in folders() {
            let found = files(&folder)
                .into_iter()
                .find(|path| facts(path).is_some_and(|facts| [&facts.hash, &facts.whole_hash].contains(&&self.hash)));
            if let Some(path) = found
                && let Ok(model) = file::read(&path)
            {
                return Ok((model.into(), Some(path)));
            }
            looked.push(folder.display().to_string());
        }
        if let Some(model) = self.unpack() {
            return Ok((model.into(), self.path.clone()));
        }
        // What was read from a file is the user's own, whatever its name.
        let successor = BUNDLED.iter().find(|bundled| self.path.is_none() && bundled.name == self.name);
        let missing = || Missing { name: self.name.clone(), looked };
        successor.map(|bundled| (bundled.model(), None)).ok_or_else(missing)
    }

    /// What the user is told where the model that was found is not the one that was meant, but its successor.
    #[must_use]
    pub fn replaced(&self, found: &Model) -> Option<String> {
        let other = !self.hash.is_empty() && !self.is_to(found);
        other.then(|| format!("“{}” was trained anew since this was saved: it may sound different", self.name))
    }

    fn unpack(&self) -> Option<Model> {
        let text = self.embedded.as_ref().filter(|text| text.len() / 4 * 3 <= LARGEST_EMBEDDED + 3)?;
        let model = file::parse(&BASE64_STANDARD.decode(text).ok()?).ok()?;
        self.is_to(&model).then_some(model)
    }
}

/// A model, and the file that it was read from.
pub type Found = (Arc<Model>, Option<PathBuf>);

/// A model that is not where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Where it was looked for, and what was wrong there.
    pub looked: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the model {:?} is missing; looked for it in: {}", self.name, self.looked.join("; "))
    }
}

/// Whether a model may travel with a project: it is small enough, going by its weights, and no program, which would run wherever
/// the project is opened.
#[must_use]
pub fn may_travel(model: &Model) -> bool {
    model.program().is_none() && size_of::<f32>() * model.parameters() < LARGEST_EMBEDDED
}

/// A model's file in Base64; none where it is too large to travel with a project.
#[must_use]
pub fn pack(model: &Model) -> Option<String> {
    let bytes = file::serialize(model).ok().filter(|bytes| bytes.len() <= LARGEST_EMBEDDED)?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// The user's folders of models: those of `ONDES_MODELS`, else `ondes/models` among the user's data.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named).collect();
    }
    dirs::data_dir().map(|data| data.join("ondes").join("models")).into_iter().collect()
}

/// The files in a folder that may be models, by their endings, in the order of their names; of those of other programs not all
/// are, which [`facts`] tells.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_known = |end: &OsStr| file::EXTENSIONS.iter().any(|known| end.eq_ignore_ascii_case(known));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(is_known)).collect();
    paths.sort();
    paths
}

/// What tells whether a file is still as it was read.
type Mark = (u64, SystemTime);

/// What is known of a file, and when it was.
type Marked = (Mark, Arc<Facts>);

/// What a list tells of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Hash of its content ([`Model::content_hash`]).
    pub hash: String,
    /// That of its content without smaller sizes ([`Model::whole_hash`]), as in [`Reference::hash`].
    pub whole_hash: String,
    /// What it is to a player.
    pub kind: Kind,
    /// Who made it and how good it is.
    pub card: Card,
}

impl Facts {
    /// The facts of a model.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let header = model.header();
        let (hash, whole_hash) = (model.content_hash().into(), model.whole_hash().into());
        Self { hash, whole_hash, kind: header.kind, card: header.card.clone() }
    }
}

/// The facts of a model file; each file is read once, until it changes. None for what cannot be read.
#[must_use]
pub fn facts(path: &Path) -> Option<Arc<Facts>> {
    static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Marked>>> = LazyLock::new(Mutex::default);
    let metadata = std::fs::metadata(path).ok()?;
    let mark = (metadata.len(), metadata.modified().ok()?);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, facts)) = known().get(path).filter(|(then, _)| *then == mark) {
        return Some(facts.clone());
    }
    let facts = Arc::new(Facts::of(&file::read(path).ok()?));
    known().insert(path.into(), (mark, facts.clone()));
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_found_among_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let capture = r#"{ "version": "0.5.4", "architecture": "Linear", "weights": [1.0],
            "config": { "receptive_field": 1, "bias": false } }"#;
        for (name, text) in [
            ("a.NAM", capture),
            ("b.json", capture),
            ("c.json", "{ \"theme\": 1 }"),
            ("d.txt", capture),
            ("e.nam", "{"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found = files(folder.path()).into_iter().filter_map(|path| Some((facts(&path)?.card.name.clone(), path)));
        let found: Vec<_> = found.map(|(name, path)| (name, path.file_name().unwrap().to_owned())).collect();
        assert_eq!(found, [("a".into(), "a.NAM".into()), ("b".into(), "b.json".into())]);
        // A project finds it again by what it is.
        let path = folder.path().join("b.json");
        let reference = Reference::to(&file::read(&path).unwrap(), Some(path.clone()));
        assert_eq!(reference.find().unwrap().1, Some(path));
    }

    #[test]
    fn a_bundled_model_is_found_by_its_name_alone() {
        for bundled in &BUNDLED {
            let reference = Reference { name: bundled.name.into(), ..Reference::default() };
            let (model, path) = reference.find().unwrap();
            assert_eq!((model.content_hash(), path), (bundled.model().content_hash(), None));
        }
        let other = Reference { name: "Old Bell".into(), ..Reference::default() };
        assert_eq!(other.find().unwrap_err().looked, ["the bundled models"]);
    }

    #[test]
    fn smaller_sizes_do_not_make_it_another_model() {
        let mut held = 0;
        for bundled in &BUNDLED {
            let model = bundled.model();
            let header = model.header().without_variants();
            let mut weights = ondes_engine::model::Weights::default();
            model.weights().of(&header.methods).for_each(|(name, tensor)| weights.insert(name, tensor.clone()));
            let whole = Model::new(header, weights).unwrap();
            held += model.header().variants.len();
            // Saved before the file held sizes, or by a version that took all of the file for the model.
            for hash in [whole.content_hash(), model.content_hash()] {
                let reference = Reference { hash: hash.into(), name: "Another Name".into(), ..Reference::default() };
                let (found, _) = reference.find().unwrap();
                assert_eq!((found.content_hash(), reference.replaced(&found)), (model.content_hash(), None));
            }
            assert_eq!(Reference::to(&model, None).hash, whole.content_hash());

            // A file of the user's with the same whole is found where it was, rather than the bundled one.
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("mine.ondes");
            file::write(&whole, &path).unwrap();
            let mine = Reference::to(&model, Some(path.clone()));
            let (found, there) = mine.find().unwrap();
            assert_eq!((found.content_hash(), there), (whole.content_hash(), Some(path)));
        }
        assert!(held > 0, "bundled models hold smaller sizes");
    }

    #[test]
    fn a_bundled_model_that_was_trained_anew_is_followed_by_its_successor() {
        let older = Reference { hash: "0".repeat(64), name: BUNDLED[1].name.into(), ..Reference::default() };
        let (model, path) = older.find().unwrap();
        assert_eq!((model.content_hash(), path), (BUNDLED[1].model().content_hash(), None));
        assert!(older.replaced(&model).is_some_and(|told| told.contains(BUNDLED[1].name)));
        for same in [Reference::to(&model, None), Reference { hash: String::new(), ..older.clone() }] {
            assert_eq!(same.replaced(&same.find().unwrap().0), None);
        }
        // A file is the user's, and its hash a promise that a name does not keep.
        assert!(Reference { path: Some("/nowhere/mine.ondes".into()), ..older }.find().is_err());
    }
}
