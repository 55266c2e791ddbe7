//! A model made playable: rate conversion → analysis → model → rate conversion, one code for all drivers.
//!
//! [`Pipeline`] is what a driver steps. `rates` holds the conversions and the latency they add, `synthesis` makes one hop of sound
//! from what the voices want, `controls` are the knobs.
//!
//! What comes out at a host's sample depends only on what went in up to there: not on how the host cuts time into blocks.

mod controls;
mod instrument;
mod rates;
mod synthesis;

pub use controls::{INSTRUMENT_CONTROLS, InstrumentControl};
pub use instrument::{Pipeline, PipelineError, PipelineOptions, Source};
