//! What a host gives a pipeline to do at a certain sample.

use crate::instrument::EventKind;

/// Something to do, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cue {
    /// When, in samples at the host's rate since the session began.
    pub at: u64,
    /// What.
    pub action: Action,
}

/// What a host can ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A player does something.
    Play(EventKind),
    /// A knob is turned. The value is in the control's own unit; a model that has no such control takes no notice.
    Control {
        /// Which.
        id: ControlId,
        /// Where to; held within the control's range.
        value: f32,
    },
    /// The host's song is, from this sample on, here and so fast.
    Transport(Transport),
}

/// Where a host is in its song. It reaches models that have ports named `tempo` (beats per minute) and `position` (beats).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Beats per minute.
    pub tempo: f32,
    /// Beats since the start of the song; may be negative, and may jump.
    pub position: f64,
    /// Whether the position moves on.
    pub playing: bool,
}

/// A control by its name, in a form that a queue can hold and an audio thread can compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControlId(u64);

impl ControlId {
    /// The control of that name: its 64-bit FNV-1a hash.
    #[must_use]
    pub const fn of(name: &str) -> Self {
        let (bytes, mut hash, mut index) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
        while index < bytes.len() {
            hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
            index += 1;
        }
        Self(hash)
    }
}

/// A cue for which there is no room: some sound must be made before more cues are given.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("too many cues wait for their time")]
pub struct CueFull(pub Cue);
