//! A model made playable: rate conversion → analysis → model → rate conversion, one code for all drivers.
//!
//! [`Playable`] is what a driver steps: a model with a seat for each session. [`Ensemble`] is one of any kind; [`Pipeline`] is one
//! that a single session has for itself. A [`Cue`] is what a session asks for at a certain sample.
//!
//! Within, `batch` is what all kinds have in common: seats, one session's own half of a model each, before a network that all
//! share. Each seat has a `stream`, its way through time, with `rates`, the conversions and the latency they add, and `ports`, what
//! knobs and the host's song feed to the network; `controls` are the knobs that models list, `playing` those that all instruments
//! have ([`PLAYING_CONTROLS`]). The kinds:
//!
//! - `instrument`: a seat is a `part`, with voices or an analysis of the input; the network is `synthesis`; `rest` says when it has
//!   nothing to say;
//! - `effect` and `codec`: a seat is a `line`, with the input in hops; the network is one `stage`, or two with a `bend` between
//!   them; the latents of a codec may be those of a `prior`.
//!
//! [`measured_latency`] is the proof of what is stated.
//!
//! What comes out at a host's sample depends only on what went in up to there: not on how the host cuts time into blocks, nor on
//! who else plays.

mod batch;
mod bend;
mod codec;
mod controls;
mod cue;
mod effect;
mod ensemble;
mod instrument;
mod latency;
mod line;
mod options;
mod part;
mod playable;
mod playing;
mod ports;
mod prior;
mod rates;
mod rest;
mod solo;
mod stage;
mod stream;
mod synthesis;

pub use codec::{latent_controls, latents};
pub use controls::{INSTRUMENT_CONTROLS, InstrumentControl, controls};
pub use cue::{Action, ControlId, Cue, CueFull, Transport};
pub use ensemble::Ensemble;
pub use latency::measured_latency;
pub(crate) use options::hears;
pub use options::{PipelineError, PipelineOptions, Source};
pub use playable::{Followed, Playable, Start, Turn};
pub use playing::{GLIDE, PLAY_MODE, PLAYING_CONTROLS, PlayingControl, TRANSPOSE, VOICES};
pub use solo::Pipeline;
