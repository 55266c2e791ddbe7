//! Codecs: an encoder from sound to a few slow numbers, the latents, and a decoder back to sound,
//! so that one sound can be played with the timbre of another.
//!
//! After Caillon & Esling, "RAVE", arXiv:2111.05011, made small: filters that only look back, a
//! short filter bank, and a hop of a few milliseconds. [`network`] builds the graph on a
//! [`filter_bank`], [`task`] trains it with the [`loss`], and [`principal`] orders the
//! latents when training has ended.

pub mod config;
pub mod evaluate;
pub mod filter_bank;
pub mod loss;
pub mod network;
pub mod principal;
pub mod task;
#[cfg(test)]
mod tests;

pub use config::CodecConfig;
pub use task::CodecTask;
