//! Runs graphs and TorchScript programs on libtorch.
//!
//! Training uses it as a crate: [`weights`] converts weights to tensors and back; [`graph`] runs
//! the nodes of a method on whole sequences, with gradients, if need be by [`checkpoint`]ed blocks;
//! `ops` has the ops, one file a family. The engine's native executor
//! computes the same frame by frame; parity tests compare the two.
//!
//! The engine opens it as a library ([`ondes_engine::torch`]): `exports` is its side of the C
//! interface, and `step` the interface of a prepared method, of a `program` or of a graph
//! (`graph_step`). A program is a TorchScript module (`script`) that follows the conventions of
//! `nn_tilde` or `neutone`; `call` calls it by either. `host` transfers samples; `device`,
//! `precision` and `threads` select where and how to compute; `warm_up` lets a GPU choose its
//! algorithms before it plays.

#![deny(unsafe_code)]

mod call;
pub mod checkpoint;
#[expect(unsafe_code, reason = "frees memory of C++")]
pub mod cpp_error;
mod device;
#[expect(unsafe_code, reason = "a C interface")]
mod exports;
pub mod graph;
mod graph_step;
#[expect(unsafe_code, reason = "writes to libtorch's memory")]
mod host;
mod needs;
mod neutone;
mod nn_tilde;
mod ops;
mod precision;
mod program;
mod recurrent_state;
#[expect(unsafe_code, reason = "calls C++")]
mod script;
mod step;
mod streaming;
mod threads;
mod warm_up;
pub mod weights;

pub use graph::{RecurrentState, TorchGraph};
pub use ops::synthesis::Noise;
pub use weights::TorchWeights;
