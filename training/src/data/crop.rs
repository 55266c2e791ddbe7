//! Crops of recordings.

use std::collections::BTreeMap;

/// Controls and sound of one crop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crop {
    /// Pitch of each frame, semitones.
    pub pitch: Vec<f32>,
    /// Loudness of each frame, dB.
    pub loudness: Vec<f32>,
    /// Sound.
    pub audio: Vec<f32>,
    /// Position of each knob.
    pub knobs: BTreeMap<String, f32>,
}
