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
    NoteExpression { channel: u8, key: u8, expression: NoteExpression },
    /// An MPE zone: what its manager (channel 0 or 15) does counts for so many member channels next to it (1 … 15), each of
    /// which plays notes of its own. With 0 members there is no such zone. Channels whose place changes are let go and go
    /// to rest.
    Zone { manager: u8, members: u8 },
}

/// What note expression changes about one note. Its pressure is [`EventKind::PolyPressure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteExpression {
    /// Detune in semitones.
    Tuning(f32),
    /// Change of loudness in dB.
    Level(f32),
    /// Timbre, 0 (dark) … 1 (bright); 0.5 is rest. Adds to that of the channel ([`controller::TIMBRE`]).
    Timbre(f32),
    /// Depth of vibrato, 0 … 1, like the modulation wheel; the larger of both counts.
    Vibrato(f32),
    /// Dynamics, 0 … 1; 1 is rest. Multiplies with that of the channel ([`controller::EXPRESSION`]) and has the same law.
    Expression(f32),
}

/// Timbre that changes nothing.
pub(super) const TIMBRE_REST: f32 = 0.5;

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
            | Self::NoteExpression { channel, .. } => channel,
            Self::Zone { manager, .. } => manager,
        }
    }

    /// The same with everything where it may be: channels and keys wrap, values are clamped, and what is not a number is 0
    /// or at rest. A note-on without velocity is a note-off.
    pub(super) fn within_limits(self) -> Self {
        match self {
            Self::NoteOn { channel, key, velocity } => {
                let (channel, key, velocity) = (channel & 15, key & 127, unit(velocity));
                if velocity > 0.0 {
                    Self::NoteOn { channel, key, velocity }
                } else {
                    Self::NoteOff { channel, key, velocity: 0.5 }
                }
            }
            Self::NoteOff { channel, key, velocity } => {
                Self::NoteOff { channel: channel & 15, key: key & 127, velocity: unit(velocity) }
            }
            Self::Bend { channel, semitones } => Self::Bend { channel: channel & 15, semitones: finite(semitones) },
            Self::Pressure { channel, value } => Self::Pressure { channel: channel & 15, value: unit(value) },
            Self::PolyPressure { channel, key, value } => {
                Self::PolyPressure { channel: channel & 15, key: key & 127, value: unit(value) }
            }
            Self::Controller { channel, number, value } => {
                let value = if number == controller::TIMBRE { timbre(value) } else { unit(value) };
                Self::Controller { channel: channel & 15, number, value }
            }
            Self::NoteExpression { channel, key, expression } => {
                let expression = match expression {
                    NoteExpression::Tuning(semitones) => NoteExpression::Tuning(finite(semitones)),
                    NoteExpression::Level(db) => NoteExpression::Level(finite(db)),
                    NoteExpression::Timbre(value) => NoteExpression::Timbre(timbre(value)),
                    NoteExpression::Vibrato(depth) => NoteExpression::Vibrato(unit(depth)),
                    NoteExpression::Expression(position) if position.is_nan() => NoteExpression::Expression(1.0),
                    NoteExpression::Expression(position) => NoteExpression::Expression(position.clamp(0.0, 1.0)),
                };
                Self::NoteExpression { channel: channel & 15, key: key & 127, expression }
            }
            Self::Zone { manager, members } => Self::Zone { manager: manager & 15, members },
        }
    }
}

/// A value that should be 0 … 1; what is not a number is 0.
fn unit(value: f32) -> f32 {
    finite(value).clamp(0.0, 1.0)
}

fn timbre(value: f32) -> f32 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { TIMBRE_REST }
}

/// Semitones or dB; what is not a number is 0.
fn finite(value: f32) -> f32 {
    if value.is_finite() { value.clamp(-127.0, 127.0) } else { 0.0 }
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
    /// Timbre (brightness), 0 (dark) … 1 (bright); 0.5 is rest.
    pub const TIMBRE: u8 = 74;
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
