//! Runs graphs and TorchScript programs on libtorch.
//!
//! As a crate it is for training: [`weights`] brings weights to libtorch and back; [`graph`] runs the nodes of a method, whole
//! sequences at once and with gradients; [`synthesis`] holds the ops that make sound. The native executor of the engine computes
//! the same, frame by frame; parity tests hold the two together.
//!
//! As a library it is opened by the engine where it is there ([`ondes_engine::torch`]): [`exports`] is its C interface, [`step`]
//! what it steps, which is [`program`] or [`graph_step`]. A program is a module of TorchScript ([`script`]) that keeps to what
//! [`nn_tilde`] or [`neutone`] has agreed on; [`call`] calls it by either. [`host`] brings samples there and back; [`device`],
//! [`precision`] and [`threads`] say where, in what, and on how many cores; [`warm_up`] is what a GPU tries before it plays.

#![deny(unsafe_code)]

mod call;
mod device;
#[expect(unsafe_code, reason = "a C interface")]
mod exports;
pub mod graph;
mod graph_step;
#[expect(unsafe_code, reason = "writes where libtorch reads")]
mod host;
mod neutone;
mod nn_tilde;
mod precision;
mod program;
#[expect(unsafe_code, reason = "calls C++")]
mod script;
mod step;
mod streaming;
mod synthesis;
mod threads;
mod warm_up;
pub mod weights;

pub use graph::{Memory, TorchGraph};
pub use weights::TorchWeights;
