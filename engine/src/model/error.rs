//! Errors of models and model files.

use std::path::{Path, PathBuf};

use crate::files::shortened;

/// Error in a model. Each message is one line without a file name; [`ModelFileError`] adds that.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not a model file.
    #[error("not an Ondes model: {0}")]
    NotAModel(String),
    /// The file is something else; says what, and what to do.
    #[error("{0}")]
    Foreign(String),
    /// The file has an unsupported format version.
    #[error("format version {found} is not supported (newest supported version: {supported})")]
    Version {
        /// Version of the file.
        found: u64,
        /// Newest version that is supported.
        supported: u32,
    },
    /// The content does not match its checksum.
    #[error("the file is damaged: its checksum does not match its content")]
    Checksum,
    /// A size exceeds its limit.
    #[error("{quantity} is {found}, more than the limit of {limit}")]
    Limit {
        /// Quantity that is too large.
        quantity: String,
        /// Its value in the file.
        found: u64,
        /// Largest value that is allowed.
        limit: u64,
    },
    /// The file is a TorchScript program, and running code is not allowed here.
    #[error("this is a TorchScript program; programs run only if they are opened explicitly")]
    Program,
    /// The program cannot be run, or libtorch is not available.
    #[error(transparent)]
    Torch(#[from] crate::torch::TorchError),
    /// The file is not a RAVE export, or not a supported one.
    #[error(transparent)]
    Rave(#[from] super::import::rave::RaveError),
    /// The header is invalid.
    #[error("{0}")]
    Header(String),
    /// A node is invalid.
    #[error("method {method:?}, node {node:?}: {reason}")]
    Node {
        /// Name of the method.
        method: String,
        /// Name of the node.
        node: String,
        /// Reason.
        reason: String,
    },
    /// A weight is missing, has the wrong shape or is not finite.
    #[error("weight {name:?} {reason}")]
    Weight {
        /// Name, `NODE.PARAMETER`.
        name: String,
        /// Reason.
        reason: String,
    },
    /// The model does not have the method.
    #[error("the model has no method {0:?}")]
    Method(String),
}

impl ModelError {
    pub(crate) fn weight(name: &str, reason: impl Into<String>) -> Self {
        Self::Weight {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns [`ModelError::Limit`] if `found` exceeds `limit`.
    pub(crate) fn limit(
        quantity: impl Into<String>,
        found: usize,
        limit: usize,
    ) -> Result<(), Self> {
        if found <= limit {
            return Ok(());
        }
        Err(Self::Limit {
            quantity: quantity.into(),
            found: found as u64,
            limit: limit as u64,
        })
    }
}

/// Error in a model file: `PATH: reason`.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", path.display(), shortened(&error.to_string()))]
pub struct ModelFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Error in its content.
    pub error: ModelError,
}

impl ModelFileError {
    pub(crate) fn at(path: &Path) -> impl Fn(ModelError) -> Self + '_ {
        move |error| Self {
            path: path.to_owned(),
            error,
        }
    }
}
