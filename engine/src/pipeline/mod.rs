//! A model made playable: rate conversion → analysis → model → rate conversion, one code for all drivers.
//!
//! [`Playable`] is what a driver steps: a model with a seat for each session. [`Ensemble`] is the instrument; [`Pipeline`] is one
//! that a single session has for itself. A [`Cue`] is what a session asks for at a certain sample. Within: `part` is one session's
//! own half (clock, voices, knobs), `synthesis` the network that all share, `rates` the conversions and the latency they add,
//! `controls` the knobs that models list, `playing` those that all have ([`PLAYING_CONTROLS`]), `rest` when a network has nothing
//! to say, [`measured_latency`] the proof of what is stated.
//!
//! What comes out at a host's sample depends only on what went in up to there: not on how the host cuts time into blocks, nor on
//! who else plays.

mod controls;
mod cue;
mod ensemble;
mod instrument;
mod latency;
mod part;
mod playable;
mod playing;
mod rates;
mod rest;
mod synthesis;

pub use controls::{INSTRUMENT_CONTROLS, InstrumentControl};
pub use cue::{Action, ControlId, Cue, CueFull, Transport};
pub use ensemble::{Ensemble, PipelineError, PipelineOptions, Source};
pub use instrument::Pipeline;
pub use latency::measured_latency;
pub use playable::{Followed, Playable, Start, Turn};
pub use playing::{GLIDE, PLAY_MODE, PLAYING_CONTROLS, PlayingControl, TRANSPOSE, VOICES};
