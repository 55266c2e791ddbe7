//! The audio callback, and the choice of its devices.

use serde::{Deserialize, Serialize};

/// Audio callback. Lives on the audio thread and is dropped elsewhere.
pub trait Callback: Send {
    /// Plays one block: reads `input[channel][frame]`, writes all of `output[channel][frame]`.
    ///
    /// All channels have the same length, at least one frame and at most the largest block of the
    /// opened devices; it may differ from block to block. Must not allocate, lock or block. After a
    /// panic the callback is not called again and the output is silent.
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]);
}

/// Requested audio devices. Whatever is `None` is left to the system.
///
/// A device is named by its identifier, its name, or a part that only one has; case does not
/// matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioChoice {
    /// Sound system, "ALSA", "JACK" …; by default JACK if its server runs, otherwise the system's
    /// own.
    pub host: Option<String>,
    /// Output device.
    pub output: Option<String>,
    /// Input device. Nothing is recorded if neither this nor `input_channels` is given.
    pub input: Option<String>,
    /// Sample rate, Hz.
    pub sample_rate: Option<u32>,
    /// Block length, frames; the nearest that the device allows. The JACK server has its own.
    pub block: Option<u32>,
    /// Number of output channels, 1 … 64.
    pub output_channels: Option<u16>,
    /// Number of input channels, 0 … 64; 0 records nothing.
    pub input_channels: Option<u16>,
}

impl AudioChoice {
    pub(crate) fn wants_input(&self) -> bool {
        self.input_channels
            .map_or(self.input.is_some(), |channels| channels > 0)
    }
}
