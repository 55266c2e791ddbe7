//! One loop for everything that learns.
//!
//! In reading order: a [`task`] says what a batch is, what the loss is and how it is validated; [`options`] are the
//! settings of a run; [`Trainer`] (`run`) owns the order of things: batch, forward, loss, backward, accumulation, clipping,
//! optimiser, schedule, callbacks. [`parameters`] holds the weights of an optimiser in one buffer, [`precision`]
//! sets the precision of the forward pass. [`callback`]s
//! observe: [`progress`], [`metrics`], [`tensorboard`], [`early_stopping`]. [`checkpoint`] makes runs resumable, [`interrupt`] lets
//! Ctrl-C end them in order.

pub mod callback;
pub mod checkpoint;
pub mod early_stopping;
pub mod interrupt;
pub mod metrics;
pub mod options;
pub mod parameters;
pub mod precision;
pub mod progress;
mod run;
pub mod task;
pub mod tensorboard;
#[cfg(test)]
mod tests;

pub use checkpoint::{Checkpoint, Progress};
pub use options::{Length, RunFiles, TrainerOptions, device};
pub use parameters::{Clip, Parameters};
pub use precision::Precision;
pub use run::{Outcome, Trainer};
pub use task::{Phase, Task, Validation};
