//! One loop for everything that learns.
//!
//! In reading order: a [`task`] says what a batch is, what the loss is and how it is validated;
//! [`options`] are the settings of a run; [`Trainer`] (`run`) owns the order of things: batch,
//! forward, loss, backward, accumulation, clipping, optimiser, schedule, callbacks; `step` takes
//! one step, and `pass` is its forward and backward. [`parameters`] holds the weights of an
//! optimiser in one buffer, [`precision`] sets the precision of the forward pass, [`profile`]
//! measures where the time goes, `kineto` traces it, and [`operators`] sums up libtorch's.
//! [`memory`] is bounded, `batch_size` fills it, and all passes run through a [`guard`].
//! [`callback`]s observe: [`progress`], [`metrics`] with [`alerts`] and an [`endpoint`],
//! [`tensorboard`], [`early_stopping`]. [`checkpoint`] makes runs resumable, [`interrupt`] lets
//! Ctrl-C end them in order.

pub mod alerts;
mod batch_size;
pub mod callback;
pub mod checkpoint;
pub mod early_stopping;
pub mod endpoint;
pub mod guard;
pub mod interrupt;
mod kept;
pub(crate) mod kineto;
pub mod log_line;
pub mod memory;
pub mod metrics;
pub mod operators;
pub mod options;
pub mod parameters;
mod pass;
pub mod precision;
pub mod profile;
pub mod progress;
pub mod recipe;
pub mod recipe_file;
mod resource_usage;
mod run;
mod step;
pub mod task;
pub mod tensorboard;
#[cfg(test)]
mod tests;
pub mod training_config;

pub use alerts::AlertsConfig;
pub use checkpoint::{Checkpoint, Progress};
pub use options::{RunFiles, TrainerOptions, device};
pub use parameters::{Clip, Parameters};
pub use precision::Precision;
pub use profile::ProfileOptions;
pub use run::{Outcome, Trainer};
pub use task::{Task, Validation};
pub use training_config::Length;
