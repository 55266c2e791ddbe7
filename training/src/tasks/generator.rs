//! Priors: recurrent networks that make the latents of a codec by themselves, one frame after the
//! other, so that sound goes on without input.
//!
//! [`network`] builds the graph: what is known of a frame is a mixture of Gaussians, from which one
//! is drawn and read with the next frame. [`latents`] encodes recordings and measures the
//! [`conditions`] that knobs set, [`task`] trains with the [`likelihood`] of each frame after those
//! before it, and compares it with that of models without memory, and [`knobs`] calibrates.
//! [`evaluate`] compares what a [`player`] plays with recordings.

pub mod conditions;
pub mod config;
pub mod evaluate;
pub mod knobs;
pub mod latents;
pub mod likelihood;
pub mod network;
pub mod player;
pub mod task;
#[cfg(test)]
mod tests;

pub use config::PriorConfig;
pub use task::PriorTask;
