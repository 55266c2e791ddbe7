//! An instance with its view model: played, drawn, saved and opened again.

mod chain;
mod consent;
mod effects;
mod executor;
mod guitar;
mod ownership;
mod tuning;
mod undo;
