//! Signal stages: what happens to sound before and after a model.
//!
//! Read [`pitch`], [`loudness`] and [`analysis`] for what an instrument is driven by when it follows a sound, [`noise`] and
//! [`filtered_noise`] for the air in its own sound, [`resample`] for what stands between the rate of a host and the rate of a
//! model, and [`convolution`] for the room at the end of a synthesiser. Around an amplifier stand a [`noise_gate`], [`tone`], a
//! [`dc_blocker`] and a [`cabinet`], within it [`oversample`] keeps overtones from folding; [`ramp`] is how knobs turn.
//!
//! All stages stream: they take blocks of any length (or of one fixed length, where they say so), allocate nothing after
//! construction, and their output is the same bit for bit however the input was split.

pub mod analysis;
pub mod cabinet;
pub mod convolution;
pub mod dc_blocker;
pub mod filtered_noise;
pub(crate) mod fourier;
pub mod level;
pub mod loudness;
pub mod noise;
pub mod noise_gate;
pub mod oversample;
pub mod pitch;
pub mod ramp;
pub mod resample;
pub mod tone;
