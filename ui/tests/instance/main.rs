//! An instance with its view model: played, drawn, saved and opened again.

mod chain;
mod executor;
mod ownership;
mod undo;
