//! Errors of libtorch and its library.

use std::path::PathBuf;

use super::interface::VERSION;
use super::library_paths;

/// Error of libtorch or its library; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TorchError {
    /// The library was not found.
    #[error(
        "needs libtorch, but {} was not found ({NO_LIBRARY}); searched {}",
        library_paths::library_file(),
        names(looked)
    )]
    Missing {
        /// Files that were looked for.
        looked: Vec<PathBuf>,
    },
    /// The library cannot be opened, usually because libtorch is missing.
    #[error("needs libtorch, which cannot be opened ({NO_LIBTORCH}): {}: {reason}", path.display())]
    Broken {
        /// File of the library.
        path: PathBuf,
        /// Reason from the system.
        reason: String,
    },
    /// The library belongs to another version.
    #[error("{} belongs to another version of Ondes (interface {found}, expected {VERSION}): {OTHER_LIBRARY}", path.display())]
    Version {
        /// File of the library.
        path: PathBuf,
        /// Version of its interface.
        found: u32,
    },
    /// The program in which TorchScript programs run was not found.
    #[error(
        "{} runs TorchScript programs and was not found ({NO_LIBRARY}); searched {}",
        library_paths::PROGRAM_HOST_FILE,
        names(looked)
    )]
    NoProgramHost {
        /// Files that were looked for.
        looked: Vec<PathBuf>,
    },
    /// The library reported an error.
    #[error("{0}")]
    Program(String),
    /// The process of a TorchScript program crashed, ended or had to be stopped.
    #[error("{name}: {reason}")]
    Lost {
        /// Name of the program.
        name: String,
        /// Cause, in one line.
        reason: String,
    },
}

/// Remedy for a missing library.
const NO_LIBRARY: &str = "it comes beside the app, and `ondes setup-torch` installs it; from a checkout `cargo xtask install --torch` makes it";

/// Remedy for a missing libtorch.
const NO_LIBTORCH: &str =
    "`ondes setup-torch` installs it; in a checkout `cargo xtask setup --torch` does";

/// Remedy for a library of another version.
const OTHER_LIBRARY: &str = "`ondes setup-torch` of this version replaces it; from a checkout `cargo xtask install --torch` does";

fn names(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
