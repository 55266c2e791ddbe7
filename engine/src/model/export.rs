//! Exporters: turn a graph and its weights into files of other programs.
//!
//! [`nn_tilde`] writes the methods of a model as a TorchScript program for nn~: each
//! [op](crate::ops) writes its `node_line`, and [`torchscript`] lays out the archive.

pub mod nn_tilde;
pub(crate) mod node_line;
pub mod torchscript;
