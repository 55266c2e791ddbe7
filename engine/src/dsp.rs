//! Signal stages before and after a model.
//!
//! [`pitch`], [`loudness`] and [`analysis`] extract the features that drive an instrument from
//! sound; [`tuner`] reads the pitch of a string, and [`onsets`] finds where sounds begin in a whole
//! one. [`noise`] and [`filtered_noise`] are part of synthesis, [`convolution`] adds rooms.
//! [`resample`] converts between the rates of host and model. [`noise_gate`], [`tone`],
//! [`dc_blocker`] and [`cabinet`] surround an amplifier model, and [`oversample`] reduces its
//! aliasing. [`reverb`] adds a room to any model, and `tilt` colours a note by how it is struck. [`ramp`] smooths parameters; [`level`] has
//! decibels, moving means and peaks.
//!
//! All stages but [`onsets`] stream: they accept blocks of any length unless they state a fixed
//! one, allocate only on construction, and their output does not depend on how the input was
//! divided into blocks, to the bit; `tilt` has the hops of a model.

pub mod analysis;
pub mod bessel;
pub mod cabinet;
pub mod convolution;
pub mod dc_blocker;
pub(crate) mod decorrelator;
pub mod delay_line;
pub mod filtered_noise;
pub(crate) mod fourier;
pub mod level;
pub mod lfo;
pub mod limiter;
pub mod loudness;
pub mod noise;
pub mod noise_gate;
pub mod onsets;
pub mod oversample;
pub mod pitch;
pub mod ramp;
pub mod resample;
pub mod reverb;
pub mod svf;
pub(crate) mod tilt;
pub mod tone;
pub mod tuner;
