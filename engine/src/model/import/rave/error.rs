//! Errors of reading a RAVE export.

use crate::model::ModelError;

/// Reason why a file cannot be imported as a RAVE export.
#[derive(Debug, thiserror::Error)]
pub enum RaveError {
    /// The file is no zip archive of a TorchScript module.
    #[error("not a TorchScript archive: {0}")]
    Archive(String),
    /// The archive lacks a module that every RAVE export has.
    #[error("a TorchScript program, but no RAVE export: it has no module {0:?}")]
    NotRave(&'static str),
    /// A record of the archive cannot be read or has the wrong size or type.
    #[error("record {record:?}: {reason}")]
    Record {
        /// Name of the record inside the archive's folder, such as `data/12`.
        record: String,
        /// Description of the error.
        reason: String,
    },
    /// The pickle that holds the module tree is damaged or uses something that TorchScript does
    /// not.
    #[error("the pickle at byte {offset}: {reason}")]
    Pickle {
        /// Offset of the instruction, bytes.
        offset: usize,
        /// Description of the error.
        reason: String,
    },
    /// A module has an unknown class, an unsupported setting, or misses an attribute.
    #[error("{path} ({class}): {reason}")]
    Module {
        /// Path of the module, such as `encoder.encoder.net.0`; `the root` for the outermost
        /// module.
        path: String,
        /// Class without its Python module.
        class: String,
        /// Description of the error.
        reason: String,
    },
}

impl RaveError {
    pub(super) fn archive(reason: impl std::fmt::Display) -> ModelError {
        Self::Archive(reason.to_string()).into()
    }

    pub(super) fn record(record: &str, reason: impl std::fmt::Display) -> ModelError {
        Self::Record {
            record: record.to_owned(),
            reason: reason.to_string(),
        }
        .into()
    }
}
