//! What a player does, and when.

/// Something that a player does at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When, in samples at the model's rate since the session began.
    pub at: u64,
    /// What.
    pub kind: EventKind,
}

/// What a player does. Channels are 0 … 15 and keys are MIDI note numbers; values are 0 … 1 unless a unit is named.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // `channel`, `key`, `velocity` and `value` are what the line above says everywhere
pub enum EventKind {
    /// A key goes down.
    NoteOn { channel: u8, key: u8, velocity: f32 },
    /// A key comes up. The velocity is that of the release.
    NoteOff { channel: u8, key: u8, velocity: f32 },
    /// The pitch wheel, already scaled by its range.
    Bend { channel: u8, semitones: f32 },
    /// Aftertouch of the whole channel.
    Pressure { channel: u8, value: f32 },
    /// Aftertouch of one key.
    PolyPressure { channel: u8, key: u8, value: f32 },
    /// A control change; [`controller`] names the numbers that instruments listen to.
    Controller { channel: u8, number: u8, value: f32 },
    /// Note expression: one sounding note is changed and its neighbours are not.
    Note { channel: u8, key: u8, expression: NoteExpression },
}

/// What note expression changes about one note.
///
/// Timbre will join when models offer a control for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteExpression {
    /// Detune in semitones.
    Tuning(f32),
    /// Change of loudness in dB.
    Level(f32),
}

impl EventKind {
    /// The channel that the event is for, 0 … 15.
    pub fn channel(&self) -> u8 {
        match *self {
            Self::NoteOn { channel, .. }
            | Self::NoteOff { channel, .. }
            | Self::Bend { channel, .. }
            | Self::Pressure { channel, .. }
            | Self::PolyPressure { channel, .. }
            | Self::Controller { channel, .. }
            | Self::Note { channel, .. } => channel,
        }
    }
}

/// Controller numbers that instruments listen to.
pub mod controller {
    /// Modulation wheel: depth of vibrato.
    pub const MOD_WHEEL: u8 = 1;
    /// Breath: dynamics, once a value has arrived.
    pub const BREATH: u8 = 2;
    /// Data entry, coarse: sets what a registered parameter number selected.
    pub const DATA_ENTRY: u8 = 6;
    /// Channel volume: a fader behind the instrument, which leaves its timbre alone.
    pub const VOLUME: u8 = 7;
    /// Expression: dynamics, which change timbre as they do on the real instrument.
    pub const EXPRESSION: u8 = 11;
    /// Data entry, fine.
    pub const DATA_ENTRY_FINE: u8 = 38;
    /// Sustain pedal: down from 0.5.
    pub const SUSTAIN: u8 = 64;
    /// Non-registered parameter number, fine: deselects a registered one.
    pub const NRPN_FINE: u8 = 98;
    /// Non-registered parameter number, coarse: deselects a registered one.
    pub const NRPN_COARSE: u8 = 99;
    /// Registered parameter number, fine.
    pub const RPN_FINE: u8 = 100;
    /// Registered parameter number, coarse.
    pub const RPN_COARSE: u8 = 101;
    /// Everything on the channel falls silent at once.
    pub const ALL_SOUND_OFF: u8 = 120;
    /// Controllers go back to their rest positions.
    pub const RESET: u8 = 121;
    /// Every key comes up. 124 … 127 mean the same besides changing modes that we do not have.
    pub const ALL_NOTES_OFF: u8 = 123;
}
