//! Models that can be trained: each task has a configuration, a network, and an implementation of
//! [`Task`](crate::trainer::Task).

pub mod capture;
pub mod codec;
mod control;
pub mod generator;
mod graph_builder;
pub mod instrument;
