//! A pipeline makes a model playable at the host's rate: rate conversion → analysis → network →
//! rate conversion.
//!
//! [`build_playable`] makes a [`Playable`]: a model with a slot for each of several sessions.
//! Drivers ([`crate::realtime`]) send it a [`ProcessRequest`] per slot and [`TimedCommand`]s.
//! [`Pipeline`] wraps one with a single session for offline rendering.
//!
//! Suggested reading order:
//!
//! - `playable`: the interface between drivers and models; [`options`](PipelineOptions);
//! - `batch`: a network and the sessions that share it, for all kinds of model;
//! - `timeline`: a session's clock, rate conversion and latency;
//! - `method_ports`, [`controls`](controls()), `control_ports`: inputs of a method, the controls of
//!   a model, and their smoothed values;
//! - `effect` and `codec`: audio models; `effect_stream` cuts a session's input into hops,
//!   `method_runner` runs a method for all sessions, `prior` plays a codec's own latents, with a
//!   `bar_memory` and a `prior_loop`, `spread` computes a long step over many host blocks;
//! - `instrument`: `instrument_stream` turns a session's notes or input into control frames,
//!   `attacks` begin notes as recorded, `width` makes two channels, `silence_detector` skips the
//!   network in silence.
//!
//! The output at a host sample depends only on input and commands up to there: neither on the size
//! of host blocks nor on other sessions.

mod attacks;
mod bar_memory;
mod bar_positions;
mod batch;
mod codec;
mod control_ports;
mod controls;
mod effect;
mod effect_stream;
mod held_keys;
mod instrument;
mod instrument_stream;
mod method_ports;
mod method_runner;
mod offline;
mod options;
mod playable;
mod prior;
mod prior_loop;
mod silence_detector;
mod spread;
mod timeline;
mod width;

pub use bar_memory::BarMemory;
pub use bar_positions::{BarPositions, Moment};
pub(crate) use codec::codec_steps;
pub use control_ports::bars_after;
pub use controls::{
    GLIDE, INSTRUMENT_CONTROLS, InstrumentControl, PERFORMANCE_CONTROLS, PLAY_MODE,
    PerformanceControl, TRANSPOSE, VOICES, controls, latent_controls,
};
pub use method_ports::latent_count;
pub use offline::{Pipeline, build_playable, validate};
pub use options::{ControlSource, InputChannels, PipelineError, PipelineOptions};
pub use playable::{
    Action, CommandQueueFull, ControlId, ENDLESS, InputAnalysis, Playable, ProcessRequest,
    SessionStart, SlotStats, TimedCommand, Transport,
};
pub(crate) use timeline::all_finite;
pub use timeline::latency_at;
