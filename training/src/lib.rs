//! Training of Ondes models.
//!
//! - Instruments: [`ondes_corpus`] generates recordings, [`dataset`] analyses a folder of audio, [`network`] builds the
//!   graph, [`trainer`] trains it with [`loss`] and [`optimiser`], [`checkpoint`] makes runs resumable, and
//!   [`evaluate`] measures quality on held-out recordings.
//! - Captures of amplifiers and pedals: [`capture`], with simulated [circuits](ondes_corpus::circuits) to try it on.
//! - Compression: [`quantize`], [`prune`] and [`distill`], with further training by [`fine_tune`],
//!   [`fake_quantization`], [`feature_matching`] and [`instrument_teacher`]; [`compare`] measures models side by side,
//!   and [`variants`] puts several sizes into one file.

#![deny(unsafe_code)]

pub mod capture;
pub mod checkpoint;
pub mod compare;
pub mod config;
pub mod dataset;
pub mod distill;
pub mod evaluate;
pub mod fake_quantization;
pub mod feature_matching;
pub mod fine_tune;
pub mod instrument_teacher;
pub mod loss;
pub mod network;
pub mod optimiser;
pub mod prune;
pub mod quantize;
pub mod trainer;
pub mod variants;
