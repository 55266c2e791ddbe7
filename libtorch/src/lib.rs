//! libtorch for the CPU, out of the published wheels.
//!
//! A [`Recipe`] says which wheels there are and what is taken out of them; [`Recipe::published`] is the one for the libtorch
//! that Ondes runs on. [`install`] fetches them ([`fetch`]), or takes them from a folder, checks them, and unpacks them
//! ([`unpack`]) beside the place where they belong; a folder has its name only when it is whole. The app (`ondes setup-torch`)
//! and `cargo xtask setup` both stand on this.

#![forbid(unsafe_code)]

mod fetch;
mod install;
mod recipe;
mod unpack;

use std::io;
use std::path::{Path, PathBuf};

pub use install::{Done, Source, install};
pub use recipe::{Content, Recipe, VERSION, Wheel};

/// What goes on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is done.
    pub work: Work,
    /// The wheel's file name.
    pub wheel: &'a str,
    /// Bytes of it that are done.
    pub done: u64,
    /// Bytes of it.
    pub all: u64,
}

/// What is done to a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It is fetched from where it is published.
    Fetching,
    /// Its hash is taken.
    Checking,
    /// What is needed is taken out of it.
    Unpacking,
}

/// Why there is no libtorch. Each is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The network, or who answers there.
    #[error("{url}: {reason}")]
    Network {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// A wheel that is not in the folder.
    #[error("{}: there is no {file}, which is published at {url}", folder.display())]
    Absent {
        /// The folder.
        folder: PathBuf,
        /// The name of the wheel's file.
        file: String,
        /// Where it can be had.
        url: String,
    },
    /// A wheel of another length, cut off or longer.
    #[error("{}: has {found} bytes where {expected} are published", path.display())]
    Length {
        /// The wheel.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length that is published.
        expected: u64,
    },
    /// A wheel with another content.
    #[error("{}: is not what was published (SHA-256 {found} where {expected} is due)", path.display())]
    Hash {
        /// The wheel.
        path: PathBuf,
        /// Its hash.
        found: String,
        /// The hash that is published.
        expected: String,
    },
    /// A wheel that does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Wheel {
        /// The wheel.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What was made is not whole.
    #[error("{0}")]
    Fault(String),
}

impl Error {
    /// For `map_err`: what happened to that file.
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |reason| Self::File { path: path.into(), reason }
    }
}
