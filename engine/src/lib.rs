//! The Ondes engine: neural networks as instruments, in real time.
//!
//! [`model`] is a network as data; [`native`] runs it, or [`torch`] does where it is a program or a [`wish`] says so, and
//! [`executor`] is what both have in common; [`dsp`] holds the stages around it; [`instrument`] turns notes into what it plays;
//! [`pipeline`] puts these together into something that a host can play, and [`realtime`] plays it in time; [`chain`] is what
//! stands before and after an amplifier; [`media`] reads and writes sound files; [`trial`] measures what a model takes.

#![deny(unsafe_code)]

pub mod chain;
pub mod dsp;
pub mod executor;
pub mod instrument;
pub mod media;
pub mod model;
pub mod native;
pub mod pipeline;
pub mod realtime;
pub mod torch;
pub mod trial;
pub mod wish;

pub use ondes_kernels::Kernels;
