//! Training sound from physical models: reproducible, and free of third-party rights.
//!
//! In reading order: [`performance`] composes phrases and [`curves`] turns them into bow and breath
//! control; [`bowed`], [`wind`] and [`plucked`] are the instruments, built from [`delay`] and
//! [`filter`] and corrected by [`tuning`]; [`body`] and [`room`] shape their sound; [`recorder`]
//! plays one file and [`generate`](mod@generate) writes a corpus. Each file has its own seed, so a
//! corpus does not depend on the number of threads. [`circuits`] simulates pedals and an amplifier
//! stage, [`loudspeaker`] guitar cabinets. [`drums`] plays grooves with recorded hits.

#![forbid(unsafe_code)]

pub mod body;
pub mod bowed;
pub mod circuits;
pub mod curves;
pub mod delay;
pub mod drums;
pub mod filter;
pub mod generate;
pub mod instrument;
pub mod loudspeaker;
pub mod performance;
pub mod plucked;
mod ramp;
pub mod recorder;
pub mod room;
#[cfg(test)]
mod tests;
pub mod tuning;
pub mod wind;

pub use generate::{CorpusOptions, CorpusSummary, generate};
pub use instrument::{Instrument, OUTPUT_RATE_HZ};
pub use recorder::{Recorder, Recording, names};
