//! Real time: one pipeline, three drivers, and never a glitch.
//!
//! A host holds two halves of one session. [`Session`] belongs to its audio thread and plays blocks; [`Remote`] belongs to
//! everybody else and loads models. Between them stands no lock. In reading order:
//!
//! - [`session`](Session): blocks in, blocks out, one model taking over from another;
//! - `lane`: one model at work in a session, in the callback or, through a `queue`, by the worker;
//! - `fader`: what is heard where sound comes late;
//! - `worker`: the thread that plays what is too heavy for a callback, all sessions of one model as one batch;
//! - `driver`: which of the two, decided by what a model costs here;
//! - [`quality`](Quality): which of its sizes, decided by the user or by the load, which `strain` knows of the whole thread;
//! - [`remote`](Remote), `loader`, [`maker`](Maker): models are made ready elsewhere, warmed up with what is being played, and
//!   taken back when they have left;
//! - [`health`](Health), [`workforce`], [`histogram`], [`trace`](trace::Trace): what can be seen of all this;
//! - [`gate`], `snapshot`, [`history`], [`priority`]: what the others stand on.

mod driver;
mod fader;
pub mod gate;
mod health;
pub mod histogram;
pub mod history;
mod lane;
mod loader;
mod maker;
pub mod priority;
mod quality;
mod queue;
mod remote;
mod session;
mod snapshot;
mod strain;
mod sync;
pub mod trace;
mod worker;

pub use driver::Driver;
pub use health::{Driven, Health};
pub use lane::Failure;
pub use maker::{Maker, Patch};
pub use quality::Quality;
pub use remote::{Load, Remote, SetupError, Status};
pub use session::{BlockCue, Session, Setup};
pub use worker::{Workforce, trace as worker_trace, workforce};
