//! Finding models: bundled, in files, in the user's folders, or embedded in a project.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ondes_engine::model::{Card, Kind, Model, file};
use ondes_engine::sync::lock;
use ondes_engine::torch;
use serde::{Deserialize, Serialize};

use crate::folder;
use crate::product::Product;
use crate::trust::{self, UntrustedProgram};

/// Largest model file that is embedded in a project, bytes.
pub const LARGEST_EMBEDDED: usize = 16 << 20;

/// Environment variable with the folders of models, in the form of `PATH`.
const FOLDERS: &str = "ONDES_MODELS";

/// A model that is compiled into the program.
pub struct BundledModel {
    /// Name, unique among the bundled models.
    pub name: &'static str,
    bytes: &'static [u8],
    read: OnceLock<Arc<Model>>,
}

impl BundledModel {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            name,
            bytes,
            read: OnceLock::new(),
        }
    }

    /// Returns the model that a new instance of a product plays.
    ///
    /// # Panics
    /// Panics if there is no model of that name, which a test excludes.
    #[must_use]
    pub fn initial(product: Product) -> &'static Self {
        BUNDLED
            .iter()
            .find(|bundled| bundled.name == product.initial_model())
            .expect("the initial model is bundled")
    }

    /// Finds a bundled model by its name; case does not matter, and hyphens may stand for spaces.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let wanted = short(name.trim());
        BUNDLED
            .iter()
            .find(|bundled| bundled.short_name() == wanted)
    }

    /// Returns the name as the command line lists it: `bass-saxophone`.
    #[must_use]
    pub fn short_name(&self) -> String {
        short(self.name)
    }

    /// Returns the size of the model file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the model; parsed once and shared by all instances.
    ///
    /// # Panics
    /// Panics if the program was built with a damaged file.
    #[must_use]
    pub fn model(&self) -> Arc<Model> {
        let read = || Arc::new(file::parse(self.bytes).expect("bundled models are whole"));
        self.read.get_or_init(read).clone()
    }
}

/// Returns a name in lower case, with hyphens for spaces.
fn short(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

/// The bundled models in the order of lists: instruments from recordings, synthetic ones, captures,
/// codecs, generators. A new instance loads its product's [`Product::initial_model`].
pub static BUNDLED: [BundledModel; 21] = [
    BundledModel::new("Violin", include_bytes!("../../assets/models/violin.ondes")),
    BundledModel::new(
        "Saxophone",
        include_bytes!("../../assets/models/saxophone.ondes"),
    ),
    BundledModel::new("Cello", include_bytes!("../../assets/models/cello.ondes")),
    BundledModel::new(
        "Clarinet",
        include_bytes!("../../assets/models/clarinet.ondes"),
    ),
    BundledModel::new(
        "Bass saxophone",
        include_bytes!("../../assets/models/bass-saxophone.ondes"),
    ),
    BundledModel::new(
        "Trumpet",
        include_bytes!("../../assets/models/trumpet.ondes"),
    ),
    BundledModel::new("Flute", include_bytes!("../../assets/models/flute.ondes")),
    BundledModel::new("Voice", include_bytes!("../../assets/models/voice.ondes")),
    BundledModel::new("Bowed", include_bytes!("../../assets/models/bowed.ondes")),
    BundledModel::new(
        "Plucked",
        include_bytes!("../../assets/models/plucked.ondes"),
    ),
    BundledModel::new("Wind", include_bytes!("../../assets/models/wind.ondes")),
    BundledModel::new(
        "Overdrive",
        include_bytes!("../../assets/models/overdrive.ondes"),
    ),
    BundledModel::new("Triode", include_bytes!("../../assets/models/triode.ondes")),
    BundledModel::new("Fuzz", include_bytes!("../../assets/models/fuzz.ondes")),
    BundledModel::new("Crunch", include_bytes!("../../assets/models/crunch.ondes")),
    BundledModel::new(
        "Silicon fuzz",
        include_bytes!("../../assets/models/silicon-fuzz.ondes"),
    ),
    BundledModel::new(
        "Germanium fuzz",
        include_bytes!("../../assets/models/germanium-fuzz.ondes"),
    ),
    BundledModel::new(
        "Strings",
        include_bytes!("../../assets/models/strings.ondes"),
    ),
    BundledModel::new("Winds", include_bytes!("../../assets/models/winds.ondes")),
    BundledModel::new("Voices", include_bytes!("../../assets/models/voices.ondes")),
    BundledModel::new("Drums", include_bytes!("../../assets/models/drums.ondes")),
];

/// Reference to a model file or a cabinet file, as saved in projects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReference {
    /// Identity of the content, hexadecimal: of a model [`Model::base_hash`], which neither names
    /// nor variants change, of a cabinet
    /// [`ImpulseFile::hash`](ondes_engine::chain::ImpulseFile::hash). Empty for whatever is at the
    /// path, or, if there is no path, for what is bundled under the name, in whichever version this
    /// program has.
    pub hash: String,
    /// Name to show; case does not matter in those of bundled models.
    pub name: String,
    /// The file's path; `None` for what is bundled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The file in Base64, if it is embedded in the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<String>,
}

impl FileReference {
    /// Returns a reference to a model that was read from `path`.
    #[must_use]
    pub fn to(model: &Model, path: Option<PathBuf>) -> Self {
        let name = model.header().card.name.clone();
        Self {
            hash: model.base_hash().into(),
            name,
            path,
            embedded: None,
        }
    }

    /// Returns whether the reference means this model, with any variants.
    #[must_use]
    pub fn matches(&self, model: &Model) -> bool {
        [model.base_hash(), model.content_hash()].contains(&self.hash.as_str())
    }

    /// Finds the model: at its path, among the bundled models, in the user's folders, or embedded
    /// in the project. A bundled model that has been retrained since is replaced by its newer
    /// version, which [`FileReference::replacement_notice`] reports. A TorchScript program runs
    /// only if the user has allowed it ([`trust`]); the reference is no consent, even if it knows
    /// the hash.
    ///
    /// # Errors
    /// Returns [`MissingFile`] with the places that were searched, or with the program that may not
    /// run.
    pub fn find(&self) -> Result<FoundModel, MissingFile> {
        if self.hash.is_empty() {
            return self.find_unidentified();
        }
        let mut searched = Vec::new();
        if let Some(path) = &self.path {
            match open_if(path, |hash| hash == self.hash && trust::may_run(hash)) {
                Ok(model) if self.matches(&model) => return Ok((model, Some(path.clone()))),
                Err(LoadError::Untrusted(program)) if program.hash == self.hash => {
                    return Err(MissingFile {
                        program: Some(program),
                        ..MissingFile::new(&self.name, Vec::new())
                    });
                }
                Ok(_) | Err(LoadError::Untrusted(_)) => {
                    searched.push(format!("{}: another model", path.display()))
                }
                Err(LoadError::Failed(reason)) => searched.push(reason),
            }
        }
        if let Some(model) = BUNDLED
            .iter()
            .map(BundledModel::model)
            .find(|model| self.matches(model))
        {
            return Ok((model, None));
        }
        let folders = folders();
        if let Some(found) = self.find_in(&folders) {
            return Ok(found);
        }
        searched.extend(folders.iter().map(|folder| folder.display().to_string()));
        if let Some(model) = self.decode_embedded() {
            return Ok((model.into(), self.path.clone()));
        }
        // A reference with a path means the user's own file, whatever its name.
        let successor = BundledModel::named(&self.name).filter(|_| self.path.is_none());
        let missing = || MissingFile::new(&self.name, searched);
        successor
            .map(|bundled| (bundled.model(), None))
            .ok_or_else(missing)
    }

    /// Finds a model of which only the path or the name is known, as in files that people write.
    fn find_unidentified(&self) -> Result<FoundModel, MissingFile> {
        let missing = |searched: String| MissingFile::new(&self.shown_name(), vec![searched]);
        let Some(path) = &self.path else {
            let named = BundledModel::named(&self.name).map(|bundled| (bundled.model(), None));
            return named.ok_or_else(|| missing("the bundled models".into()));
        };
        open(path)
            .map(|model| (model, Some(path.clone())))
            .map_err(|error| match error {
                LoadError::Untrusted(program) => MissingFile {
                    program: Some(program),
                    ..MissingFile::new(&self.shown_name(), Vec::new())
                },
                LoadError::Failed(reason) => missing(reason),
            })
    }

    /// Returns the name to show, by default that of the file.
    pub(crate) fn shown_name(&self) -> String {
        let stem = self
            .path
            .as_deref()
            .and_then(Path::file_stem)
            .filter(|_| self.name.is_empty());
        stem.map_or_else(
            || self.name.clone(),
            |stem| stem.to_string_lossy().into_owned(),
        )
    }

    /// Finds the model in the user's folders, by its identity.
    fn find_in(&self, folders: &[PathBuf]) -> Option<FoundModel> {
        let paths: Vec<PathBuf> = folders.iter().flat_map(|folder| files(folder)).collect();
        let read = |path: &PathBuf| Some((file::read(path).ok()?.into(), Some(path.clone())));
        let known = paths
            .iter()
            .find(|path| summary(path).is_some_and(|summary| summary.is_known_as(&self.hash)));
        known.and_then(read)
    }

    /// Returns a notice for the user if `found` is a newer version of the bundled model that was
    /// saved.
    #[must_use]
    pub fn replacement_notice(&self, found: &Model) -> Option<String> {
        let other = !self.hash.is_empty() && !self.matches(found);
        other.then(|| {
            format!(
                "“{}” was trained anew since this was saved: it may sound different",
                self.name
            )
        })
    }

    fn decode_embedded(&self) -> Option<Model> {
        let text = self
            .embedded
            .as_ref()
            .filter(|text| text.len() / 4 * 3 <= LARGEST_EMBEDDED + 3)?;
        let model = file::parse(&BASE64_STANDARD.decode(text).ok()?).ok()?;
        self.matches(&model).then_some(model)
    }
}

/// A model and the path that it was read from; no path if it is bundled or embedded.
pub type FoundModel = (Arc<Model>, Option<PathBuf>);

/// A file that was not found, or may not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// Name to show.
    pub name: String,
    /// Places that were searched, with the problem found there.
    pub searched: Vec<String>,
    /// The file, if it is there but is a program that may not run.
    pub program: Option<UntrustedProgram>,
}

impl MissingFile {
    /// Creates the report of a file that was not found.
    #[must_use]
    pub fn new(name: &str, searched: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            searched,
            program: None,
        }
    }

    /// Describes the missing file in one line; `kind` says what it is.
    #[must_use]
    pub fn describe(&self, kind: &str) -> String {
        format!(
            "the {kind} {:?} is missing; searched: {}",
            self.name,
            self.searched.join("; ")
        )
    }
}

impl fmt::Display for MissingFile {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            Some(program) => write!(to, "{program}"),
            None => to.write_str(&self.describe("model")),
        }
    }
}

/// Reason why a model cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file is a program that may not run.
    Untrusted(UntrustedProgram),
    /// Another reason, one line.
    Failed(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(program) => write!(to, "{program}"),
            Self::Failed(reason) => to.write_str(reason),
        }
    }
}

impl From<MissingFile> for LoadError {
    fn from(missing: MissingFile) -> Self {
        missing
            .program
            .clone()
            .map_or_else(|| Self::Failed(missing.to_string()), Self::Untrusted)
    }
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

/// Opens a model file of any format. A TorchScript program runs only if the user has allowed it
/// ([`trust`]).
///
/// # Errors
/// Returns [`LoadError`] if the file is not a valid model, or a program that may not run.
pub fn open(path: &Path) -> Result<Arc<Model>, LoadError> {
    open_if(path, trust::may_run)
}

/// Returns the program that a file is, without running it.
///
/// # Errors
/// Returns [`LoadError::Failed`] if the file cannot be read or is not a TorchScript program.
pub fn program(path: &Path) -> Result<UntrustedProgram, LoadError> {
    match open_if(path, |_| false) {
        Err(LoadError::Untrusted(program)) => Ok(program),
        Err(error) => Err(error),
        Ok(_) => Err(LoadError::Failed(format!(
            "{}: not a TorchScript program",
            path.display()
        ))),
    }
}

/// Opens a model; a program only if `may_run` returns true for its content hash.
fn open_if(path: &Path, may_run: impl FnOnce(&str) -> bool) -> Result<Arc<Model>, LoadError> {
    let mut refused = None;
    let opened = torch::open_if(path, |hash| {
        let runs = may_run(hash);
        refused = (!runs).then(|| UntrustedProgram {
            path: path.to_owned(),
            hash: hash.to_owned(),
        });
        runs
    });
    match refused {
        Some(program) => Err(LoadError::Untrusted(program)),
        None => opened
            .map(|opened| opened.model.into())
            .map_err(|error| error.to_string().into()),
    }
}

/// Returns whether a model may be embedded in a project: its weights are small enough, and it is no
/// TorchScript program, which would run code wherever the project is opened.
#[must_use]
pub fn is_embeddable(model: &Model) -> bool {
    model.program().is_none() && size_of::<f32>() * model.parameters() < LARGEST_EMBEDDED
}

/// Encodes a model's file in Base64; `None` if it is larger than [`LARGEST_EMBEDDED`].
#[must_use]
pub fn to_base64(model: &Model) -> Option<String> {
    let bytes = file::serialize(model)
        .ok()
        .filter(|bytes| bytes.len() <= LARGEST_EMBEDDED)?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// Returns the user's model folders: `ONDES_MODELS`, or `ondes/models` in the user's data folder.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&named).collect();
    }
    dirs::data_dir()
        .map(|data| data.join("ondes").join("models"))
        .into_iter()
        .collect()
}

/// Lists the files in a folder and its subfolders ([`folder::files`]) whose extension may be a
/// model's. Not every `.json` or `.nam` file is a model; [`summary`] tells.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let is_known = |end: &OsStr| {
        file::EXTENSIONS
            .iter()
            .any(|known| end.eq_ignore_ascii_case(known))
    };
    folder::files(folder, |path| path.extension().is_some_and(is_known))
}

/// Length and modification time, to detect changes.
type FileStamp = (u64, SystemTime);

/// A cached summary, and the stamp of the file when it was read.
type StampedSummary = (FileStamp, Arc<ModelSummary>);

/// Facts about a model for a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSummary {
    /// Hash of the content ([`Model::content_hash`]).
    pub hash: String,
    /// Hash without variants ([`Model::base_hash`]), as in [`FileReference::hash`].
    pub base_hash: String,
    /// Kind of the model.
    pub kind: Kind,
    /// The model's card.
    pub card: Card,
}

impl ModelSummary {
    /// Returns the summary of a model.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        let header = model.header();
        Self {
            hash: model.content_hash().into(),
            base_hash: model.base_hash().into(),
            kind: header.kind,
            card: header.card.clone(),
        }
    }

    /// Returns whether a saved hash means this model.
    fn is_known_as(&self, hash: &str) -> bool {
        self.hash == hash || self.base_hash == hash
    }
}

/// Returns the summary of a model file; `None` if it cannot be read. Results are cached until the
/// file changes.
#[must_use]
pub fn summary(path: &Path) -> Option<Arc<ModelSummary>> {
    static KNOWN: LazyLock<Mutex<HashMap<PathBuf, StampedSummary>>> = LazyLock::new(Mutex::default);
    let metadata = std::fs::metadata(path).ok()?;
    let mark = (metadata.len(), metadata.modified().ok()?);
    let known = || lock(&KNOWN);
    if let Some((_, summary)) = known().get(path).filter(|(then, _)| *then == mark) {
        return Some(summary.clone());
    }
    let summary = Arc::new(ModelSummary::new(&file::read(path).ok()?));
    known().insert(path.into(), (mark, summary.clone()));
    Some(summary)
}

#[cfg(test)]
mod tests;
