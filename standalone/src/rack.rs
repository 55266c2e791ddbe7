//! Up to sixteen mixed tracks: what the app plays and a session render writes.
//!
//! [`Mixer`] adds, loads and saves tracks, on any thread but the audio thread. [`Rack`] is the
//! audio thread's half: a [`strip`] for each [`track`] with its own instance and a
//! [`compensation_delay`], then the [`master`] with its limiter. Built strips (a [`strip_plan`]
//! builds one) and replaced ones pass between both halves as [`changes`]; [`fader`] settings and
//! the [`meter`] are shared. A [`Bounce`] renders offline what the rack plays, to the bit.

pub mod bounce;
mod changes;
pub mod clip;
pub mod compensation_delay;
pub mod fader;
pub mod master;
pub mod meter;
pub mod mixer;
pub mod model_request;
pub mod rack_callback;
pub mod remaining_events;
pub mod session_file;
pub mod strip;
pub mod strip_plan;
pub mod track;

pub use bounce::Bounce;
pub use meter::MasterMeter;
pub use mixer::Mixer;
pub use rack_callback::Rack;
pub use session_file::SessionFile;
pub use track::{TRACKS, Track};
