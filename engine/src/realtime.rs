//! Plays pipelines in real time: in the audio callback, on a worker thread, or offline.
//!
//! A host holds two halves of a session. [`Session`] belongs to its audio thread and processes
//! blocks; [`SessionController`] belongs to all other threads and loads models. Between them are
//! atomics and bounded queues, no locks.
//!
//! Suggested reading order:
//!
//! - [`session`](Session): a block of input and commands in, a block of output out, cross-fades
//!   between models;
//! - `model_instance`: one model in a session, as an `inline_model` in the callback or behind a
//!   `worker_link`; `dropout_fader` covers late output;
//! - `worker`: the thread for models that are too heavy for a callback; sessions of one model form
//!   a batch;
//! - [`driver`](Driver): chooses between callback and worker by the measured cost of a model;
//! - [`quality`](Quality): chooses a variant of the model, fixed or by the load (`callback_load`);
//! - [`session_controller`](SessionController) and `controller_state`: requests from other threads;
//! - [`model_factory`](ModelFactory) and `loader`: build an instance on the thread of
//!   `background_jobs`, and bring it into the session's present state (`snapshot`); `program_watch`
//!   builds one anew whose program has crashed;
//! - [`health`](Health), [`WorkerStats`], [`histogram`], [`trace`](trace::Trace): counters and
//!   traces;
//! - [`audio_callback`], `guard`, [`history`], `session_input`, `session_link`, [`priority`]: what
//!   the others are built on;
//! - [`benchmark`](RealtimeBenchmark): measures a model block by block.

pub mod audio_callback;
mod background_jobs;
mod benchmark;
mod callback_load;
mod controller_state;
mod driver;
mod driver_choice;
mod dropout_fader;
mod guard;
mod health;
pub mod histogram;
pub mod history;
mod inline_model;
mod loader;
mod model_factory;
mod model_instance;
pub mod priority;
mod program_restarts;
mod program_watch;
mod quality;
mod session;
mod session_controller;
mod session_input;
mod session_link;
mod setup;
mod snapshot;
pub mod trace;
mod worker;
mod worker_link;

pub use benchmark::{BenchmarkError, RealtimeBenchmark};
pub use controller_state::LoadStatus;
pub use driver::Driver;
pub use health::{Driven, Health, InvalidOutput};
pub use model_factory::{LoadError, ModelFactory, PlayableModel};
pub use quality::Quality;
pub use session::{BlockCommand, Session};
pub use session_controller::{Load, SessionController};
pub use setup::{Setup, SetupError};
pub use worker::{WorkerStats, trace as worker_trace, worker_stats};
