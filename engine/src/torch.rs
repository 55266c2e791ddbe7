//! Runs TorchScript programs, and graphs on request, with libtorch where it is installed.
//!
//! This crate does not link libtorch. The library `ondes-torch` does; it is found and opened on
//! first use ([`library`]), behind a versioned C interface ([`interface`]). The library
//! [describes](description) a program, from which [`open`] makes a model, and steps its methods
//! ([`TorchExecutor`]) as a [`PrepareRequest`] says. If a GPU fails, another executor takes over.
//!
//! A TorchScript file contains code. Only [`open`] and [`open_if`] run it; on Linux in a `process`
//! of its own.

pub mod description;
mod error;
mod fallback;
pub mod interface;
pub mod library;
mod library_paths;
mod model;
mod options;
mod prepare_request;
mod prepared_method;
#[cfg(target_os = "linux")]
pub mod process;
mod program_runner;
mod runner;

pub use error::TorchError;
pub(crate) use fallback::FallbackExecutor;
pub use library::{Library, LibraryExecutor};
pub use library_paths::{
    LIBTORCH_VERSION, PROGRAM_HOST_FILE, installed, libraries, library_file, libtorch_folder,
    libtorch_found, program_hosts,
};
pub use model::{open, open_if};
pub use options::{method_names, with_options};
pub use prepare_request::{MethodSource, PrepareRequest, step_values};
pub use prepared_method::PreparedMethod;
pub use runner::TorchExecutor;
