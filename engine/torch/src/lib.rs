//! Runs a graph on libtorch, whole sequences at once and with gradients.
//!
//! [`weights`] brings weights to libtorch and back; [`graph`] runs the nodes of a method; [`synthesis`] holds the ops that make
//! sound. The native executor of the engine computes the same, frame by frame; parity tests hold the two together.

#![forbid(unsafe_code)]

pub mod graph;
mod synthesis;
pub mod weights;

pub use graph::{Memory, TorchGraph};
pub use weights::TorchWeights;
