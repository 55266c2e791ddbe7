//! An instance with its view model: played, drawn, saved and opened again.

mod chain;
mod executor;
mod guitar;
mod ownership;
mod undo;
