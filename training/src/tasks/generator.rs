//! Generators: a codec and a prior, a recurrent network that samples the latents of the codec one
//! frame after the other, so that it plays without input.
//!
//! [`network`] builds the graph, with `bar_memory` and `initial_weights`; [`names`] lists its
//! nodes, and [`inspect`] reads a generator. [`latents`] encodes recordings and measures the
//! [`conditions`] that knobs set. [`task`] trains with the [`likelihood`] of each frame after the
//! previous ones, and compares it with that of baselines; [`calibration`] calibrates a knob.
//! [`evaluate`] compares what a [`player`] plays with recordings.

mod bar_memory;
pub mod calibration;
pub mod conditions;
pub mod config;
pub mod evaluate;
mod initial_weights;
pub mod inspect;
pub mod latents;
pub mod likelihood;
pub mod names;
pub mod network;
pub mod player;
pub mod task;
#[cfg(test)]
mod tests;

pub use config::PriorConfig;
pub use task::PriorTask;
