//! An instance with its view model: played, drawn, saved and opened again.

mod chain;
mod consent;
mod executor;
mod guitar;
mod ownership;
mod rig;
mod tuning;
mod undo;
