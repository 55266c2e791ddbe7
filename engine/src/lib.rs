//! The Ondes engine: neural networks as instruments and effects, in real time.
//!
//! Modules, in the order in which a model file becomes sound:
//!
//! - [`model`]: a network as data: graph, weights, controls and card; reads and writes model files
//!   and imports foreign ones.
//! - [`executor`]: steps a method of a model, with [`native`] SIMD code or, through a library
//!   opened at run time, with libtorch ([`torch`]).
//! - [`dsp`]: signal stages around a network, such as resampling, pitch tracking and convolution.
//! - [`instrument`]: turns MIDI events into control frames, one set per voice.
//! - [`pipeline`]: combines these into a playable model at the host's sample rate.
//! - [`realtime`]: plays a pipeline in an audio callback or on a worker thread, and swaps models
//!   without a gap.
//! - [`effects`]: compressor, equaliser, delay and others of our own; [`rig`]: these, models and
//!   impulse responses as blocks one after the other.
//! - [`chain`]: tone controls, cabinet and delay before and after a captured amplifier.
//! - [`media`]: reads and writes audio files; [`files`] any files.
//!
//! To render a file, start with [`pipeline::Pipeline`]; to play live, with
//! [`realtime::SessionController`].

#![deny(unsafe_code)]

pub mod chain;
pub mod dsp;
pub mod effects;
pub mod executor;
pub mod files;
pub mod instrument;
pub mod media;
pub mod model;
pub mod native;
pub mod ops;
pub mod panics;
pub mod pipeline;
pub mod random;
pub mod realtime;
pub mod rig;
pub mod sync;
pub mod torch;

pub use ondes_kernels::Kernels;
