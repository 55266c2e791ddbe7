//! libtorch, where it is there: TorchScript programs are played by it, and our own graphs, where somebody wants so.
//!
//! Nothing here links libtorch. What does is a library of its own, `ondes-torch`, which is looked for and opened when it is
//! needed for the first time ([`library`]); between the two stands a C interface with a version ([`interface`]). The library
//! says what is in a program ([`description`]), from which a model is made ([`model`]), and steps it ([`Runner`]), as an
//! [`Order`] says. Where a GPU fails, another executor takes over ([`fallback`]).
//!
//! A TorchScript file is a program. [`open`] runs it; nothing else does.

pub mod description;
mod fallback;
pub mod interface;
pub mod library;
mod model;
mod order;
mod places;
mod runner;

pub(crate) use fallback::Fallback;
pub use library::{Library, TorchError};
pub use model::{open, open_known};
pub use order::{Order, Work};
pub use places::{LIBTORCH_VERSION, installed, libraries, library_file, libtorch_folder, libtorch_found};
pub use runner::Runner;
