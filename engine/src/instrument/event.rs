//! Performance events.

/// Performance event with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Time in samples at the model's rate since the start of the session.
    pub at: u64,
    /// Kind of event.
    pub kind: EventKind,
}

/// Kind of performance event. Channels are 0 to 15, keys are MIDI note numbers, and values are 0 to 1 unless stated
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // The fields are documented above for all variants.
pub enum EventKind {
    /// Key down.
    NoteOn { channel: u8, key: u8, velocity: f32 },
    /// Key up, with release velocity.
    NoteOff { channel: u8, key: u8, velocity: f32 },
    /// Pitch wheel, scaled by its range.
    Bend { channel: u8, semitones: f32 },
    /// Channel aftertouch.
    Pressure { channel: u8, value: f32 },
    /// Polyphonic aftertouch.
    PolyPressure { channel: u8, key: u8, value: f32 },
    /// Control change; see [`controller`] for the numbers that have an effect.
    Controller { channel: u8, number: u8, value: f32 },
    /// Note expression of a single note.
    NoteExpression { channel: u8, key: u8, expression: NoteExpression },
    /// MPE zone: events of its manager (channel 0 or 15) apply to the given number of adjacent member channels, 1 to
    /// 15; 0 removes the zone. Notes on channels that change their role are released, and their controllers reset.
    Zone { manager: u8, members: u8 },
}

/// Note expression. See [`EventKind::PolyPressure`] for the pressure of a note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteExpression {
    /// Detune in semitones.
    Tuning(f32),
    /// Change of loudness in dB.
    Level(f32),
    /// Timbre from 0 (dark) to 1 (bright), neutral at 0.5; adds to that of the channel ([`controller::TIMBRE`]).
    Timbre(f32),
    /// Depth of vibrato, 0 to 1; the larger of this and the modulation wheel applies.
    Vibrato(f32),
    /// Dynamics, 0 to 1, neutral at 1; multiplies that of the channel ([`controller::EXPRESSION`]).
    Expression(f32),
}

/// Neutral timbre.
pub(super) const TIMBRE_REST: f32 = 0.5;

impl EventKind {
    /// Returns the channel of the event, 0 to 15.
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

    /// Returns the event with all values in range: channels and keys wrap, other values are clamped, and non-finite
    /// values become neutral. A note-on without velocity becomes a note-off.
    pub(crate) fn within_limits(self) -> Self {
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

/// Clamps a value to 0 to 1; non-finite values become 0.
fn unit(value: f32) -> f32 {
    finite(value).clamp(0.0, 1.0)
}

fn timbre(value: f32) -> f32 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { TIMBRE_REST }
}

/// Clamps semitones or dB; non-finite values become 0.
fn finite(value: f32) -> f32 {
    if value.is_finite() { value.clamp(-127.0, 127.0) } else { 0.0 }
}

/// Numbers of the control changes that have an effect.
pub mod controller {
    /// Modulation wheel: depth of vibrato.
    pub const MOD_WHEEL: u8 = 1;
    /// Breath: dynamics, from the first value received.
    pub const BREATH: u8 = 2;
    /// Data entry, coarse: value of the selected registered parameter.
    pub const DATA_ENTRY: u8 = 6;
    /// Channel volume: a fader after the instrument, without influence on timbre.
    pub const VOLUME: u8 = 7;
    /// Expression: dynamics, which also change the timbre.
    pub const EXPRESSION: u8 = 11;
    /// Data entry, fine.
    pub const DATA_ENTRY_FINE: u8 = 38;
    /// Sustain pedal: down from 0.5.
    pub const SUSTAIN: u8 = 64;
    /// Timbre (brightness), from 0 (dark) to 1 (bright), neutral at 0.5.
    pub const TIMBRE: u8 = 74;
    /// Non-registered parameter number, fine: deselects a registered parameter.
    pub const NRPN_FINE: u8 = 98;
    /// Non-registered parameter number, coarse: deselects a registered parameter.
    pub const NRPN_COARSE: u8 = 99;
    /// Registered parameter number, fine.
    pub const RPN_FINE: u8 = 100;
    /// Registered parameter number, coarse.
    pub const RPN_COARSE: u8 = 101;
    /// All sound off: silences the channel at once.
    pub const ALL_SOUND_OFF: u8 = 120;
    /// Reset all controllers.
    pub const RESET: u8 = 121;
    /// All notes off. 124 to 127, which change modes, have the same effect.
    pub const ALL_NOTES_OFF: u8 = 123;
}
