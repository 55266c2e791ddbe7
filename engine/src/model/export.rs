//! Exporters: turn a graph and its weights into files of other programs.
//!
//! [`nn_tilde`] writes the methods of a model as a TorchScript program for nn~: `nodes` translates
//! each node, with the larger functions of `functions`, and [`torchscript`] lays out the archive.

mod functions;
pub mod nn_tilde;
mod nodes;
pub mod torchscript;
