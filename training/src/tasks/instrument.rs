//! Instruments: synthesizers played by pitch and loudness, trained on recordings of one sound.
//!
//! [`config`] reads the recipe, [`controls`] lists the controls, [`network`] builds the graph,
//! [`task`] trains it, and [`teacher`] adds the values of a larger instrument's layers as targets,
//! for distillation.

pub mod config;
pub mod controls;
pub mod network;
pub mod task;
pub mod teacher;
