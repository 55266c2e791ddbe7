//! What can be wrong with a model.

use std::path::{Path, PathBuf};

/// Why a model cannot be used. Each message is one line without the file's name; [`ModelFileError`] adds that.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The system could not read or write the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not a model file.
    #[error("not an Ondes model: {0}")]
    NotAModel(String),
    /// Written by another version of the format.
    #[error("format version {found} is not supported (this is version {supported})")]
    Version {
        /// The file's version.
        found: u64,
        /// The version read here.
        supported: u32,
    },
    /// The content does not match its checksum.
    #[error("damaged: the checksum does not match the content")]
    Checksum,
    /// The file asks for more than a model may.
    #[error("{what} is {found}, more than the limit of {limit}")]
    Limit {
        /// What is too large.
        what: String,
        /// Its size in the file.
        found: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A program, where none is to be run.
    #[error("a TorchScript program, which only runs where it is opened by name")]
    Program,
    /// A program cannot be run, or libtorch is not there.
    #[error(transparent)]
    Torch(#[from] crate::torch::TorchError),
    /// The file is no RAVE export, or one that is not supported.
    #[error(transparent)]
    Rave(#[from] super::import::rave::RaveError),
    /// Something in the header makes no sense.
    #[error("{0}")]
    Header(String),
    /// A node that cannot work.
    #[error("method {method:?}, node {node:?}: {reason}")]
    Node {
        /// The method's name.
        method: String,
        /// The node's name.
        node: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A weight that is missing, misshapen or not finite.
    #[error("weight {name:?} {reason}")]
    Weight {
        /// `NODE.PARAMETER`.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The model cannot do what is asked of it.
    #[error("the model has no method {0:?}")]
    Method(String),
}

impl ModelError {
    pub(crate) fn weight(name: &str, reason: impl Into<String>) -> Self {
        Self::Weight { name: name.to_owned(), reason: reason.into() }
    }

    /// An error unless `found` is within `limit`.
    pub(crate) fn limit(what: impl Into<String>, found: usize, limit: usize) -> Result<(), Self> {
        if found <= limit {
            return Ok(());
        }
        Err(Self::Limit { what: what.into(), found: found as u64, limit: limit as u64 })
    }
}

/// A [`ModelError`] and the file it is in: `PATH: reason`.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct ModelFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: ModelError,
}

impl ModelFileError {
    pub(crate) fn at(path: &Path) -> impl Fn(ModelError) -> Self + '_ {
        move |error| Self { path: path.to_owned(), error }
    }
}
