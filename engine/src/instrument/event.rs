//! Performance events.

/// Performance event with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Time in samples at the model's rate since the start of the session.
    pub at: u64,
    /// Kind of event.
    pub kind: EventKind,
}

/// Kind of performance event. Channels are 0 to 15, keys are MIDI note numbers, and values are 0 to
/// 1 unless stated otherwise.
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
    NoteExpression {
        channel: u8,
        key: u8,
        expression: NoteExpression,
    },
    /// Event of the note that the host calls `id`, which may be one of several of the same key. The
    /// events above are for all notes of a key, and a note-on of them strikes a sounding note
    /// again.
    Note {
        id: i32,
        channel: u8,
        key: u8,
        change: NoteChange,
    },
    /// Tuning of a channel (RPN 1 and 2), relative to that of all.
    Tuning { channel: u8, semitones: f32 },
    /// Pitch of a key on all channels in semitones, 69 for 440 Hz; `None` for a key that is silent.
    /// Sounding notes keep their pitch.
    KeyPitch { key: u8, pitch: Option<f32> },
    /// Tuning of all channels.
    MasterTuning { semitones: f32 },
    /// Volume of all channels: a fader after the instrument.
    MasterVolume { value: f32 },
    /// Silences all channels and resets controllers, volumes, tunings and modes. Zones and the
    /// pitches of keys stay.
    SystemReset,
    /// MPE zone: events of its manager (channel 0 or 15) apply to the given number of adjacent
    /// member channels, 1 to 15; 0 removes the zone. Notes on channels that change their role are
    /// released, and their controllers reset.
    Zone { manager: u8, members: u8 },
}

/// Change of one note. Values are 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteChange {
    /// Key down, with velocity.
    On(f32),
    /// Key up, with release velocity.
    Off(f32),
    /// Pressure.
    Pressure(f32),
    /// Note expression.
    Expression(NoteExpression),
}

/// Note expression. See [`EventKind::PolyPressure`] for the pressure of a note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteExpression {
    /// Detune in semitones.
    Tuning(f32),
    /// Change of loudness in dB.
    Level(f32),
    /// Timbre from 0 (dark) to 1 (bright), neutral at 0.5; adds to that of the channel
    /// ([`controller::TIMBRE`]).
    Timbre(f32),
    /// Depth of vibrato, 0 to 1; the larger of this and the modulation wheel applies.
    Vibrato(f32),
    /// Dynamics, 0 to 1, neutral at 1; multiplies that of the channel ([`controller::EXPRESSION`]).
    Expression(f32),
}

/// Neutral timbre.
pub(super) const TIMBRE_REST: f32 = 0.5;

impl EventKind {
    /// Returns the channel of the event, 0 to 15; `None` if it applies to all.
    pub fn channel(&self) -> Option<u8> {
        match *self {
            Self::NoteOn { channel, .. }
            | Self::NoteOff { channel, .. }
            | Self::Bend { channel, .. }
            | Self::Pressure { channel, .. }
            | Self::PolyPressure { channel, .. }
            | Self::Controller { channel, .. }
            | Self::NoteExpression { channel, .. }
            | Self::Note { channel, .. }
            | Self::Tuning { channel, .. } => Some(channel),
            Self::Zone { manager, .. } => Some(manager),
            Self::KeyPitch { .. }
            | Self::MasterTuning { .. }
            | Self::MasterVolume { .. }
            | Self::SystemReset => None,
        }
    }

    /// Returns the event as one for all notes of its key, with the id that it is for.
    pub fn without_id(self) -> (Self, Option<i32>) {
        let Self::Note {
            id,
            channel,
            key,
            change,
        } = self
        else {
            return (self, None);
        };
        let kind = match change {
            NoteChange::On(velocity) => Self::NoteOn {
                channel,
                key,
                velocity,
            },
            NoteChange::Off(velocity) => Self::NoteOff {
                channel,
                key,
                velocity,
            },
            NoteChange::Pressure(value) => Self::PolyPressure {
                channel,
                key,
                value,
            },
            NoteChange::Expression(expression) => Self::NoteExpression {
                channel,
                key,
                expression,
            },
        };
        (kind, Some(id))
    }

    /// Returns the event for the note that the host calls `id`, if it is an event of a note.
    #[must_use]
    pub fn with_id(self, id: Option<i32>) -> Self {
        let Some(id) = id else { return self };
        let (channel, key, change) = match self {
            Self::NoteOn {
                channel,
                key,
                velocity,
            } => (channel, key, NoteChange::On(velocity)),
            Self::NoteOff {
                channel,
                key,
                velocity,
            } => (channel, key, NoteChange::Off(velocity)),
            Self::PolyPressure {
                channel,
                key,
                value,
            } => (channel, key, NoteChange::Pressure(value)),
            Self::NoteExpression {
                channel,
                key,
                expression,
            } => (channel, key, NoteChange::Expression(expression)),
            other => return other,
        };
        Self::Note {
            id,
            channel,
            key,
            change,
        }
    }

    /// Returns the event with all values in range: channels and keys wrap, other values are
    /// clamped, and non-finite values become neutral. A note-on without velocity becomes a
    /// note-off.
    pub(crate) fn within_limits(self) -> Self {
        match self {
            Self::NoteOn {
                channel,
                key,
                velocity,
            } => {
                let (channel, key, velocity) = (channel & 15, key & 127, unit(velocity));
                if velocity > 0.0 {
                    Self::NoteOn {
                        channel,
                        key,
                        velocity,
                    }
                } else {
                    Self::NoteOff {
                        channel,
                        key,
                        velocity: 0.5,
                    }
                }
            }
            Self::NoteOff {
                channel,
                key,
                velocity,
            } => Self::NoteOff {
                channel: channel & 15,
                key: key & 127,
                velocity: unit(velocity),
            },
            Self::Bend { channel, semitones } => Self::Bend {
                channel: channel & 15,
                semitones: finite(semitones),
            },
            Self::Pressure { channel, value } => Self::Pressure {
                channel: channel & 15,
                value: unit(value),
            },
            Self::PolyPressure {
                channel,
                key,
                value,
            } => Self::PolyPressure {
                channel: channel & 15,
                key: key & 127,
                value: unit(value),
            },
            Self::Controller {
                channel,
                number,
                value,
            } => {
                let value = if number == controller::TIMBRE {
                    timbre(value)
                } else {
                    unit(value)
                };
                Self::Controller {
                    channel: channel & 15,
                    number,
                    value,
                }
            }
            Self::NoteExpression {
                channel,
                key,
                expression,
            } => {
                let expression = match expression {
                    NoteExpression::Tuning(semitones) => NoteExpression::Tuning(finite(semitones)),
                    NoteExpression::Level(db) => NoteExpression::Level(finite(db)),
                    NoteExpression::Timbre(value) => NoteExpression::Timbre(timbre(value)),
                    NoteExpression::Vibrato(depth) => NoteExpression::Vibrato(unit(depth)),
                    NoteExpression::Expression(position) if position.is_nan() => {
                        NoteExpression::Expression(1.0)
                    }
                    NoteExpression::Expression(position) => {
                        NoteExpression::Expression(position.clamp(0.0, 1.0))
                    }
                };
                Self::NoteExpression {
                    channel: channel & 15,
                    key: key & 127,
                    expression,
                }
            }
            Self::Note { .. } => {
                let (kind, id) = self.without_id();
                kind.within_limits().with_id(id)
            }
            Self::Tuning { channel, semitones } => Self::Tuning {
                channel: channel & 15,
                semitones: finite(semitones),
            },
            Self::KeyPitch { key, pitch } => Self::KeyPitch {
                key: key & 127,
                pitch: pitch.filter(|pitch| pitch.is_finite()).map(finite),
            },
            Self::MasterTuning { semitones } => Self::MasterTuning {
                semitones: finite(semitones),
            },
            Self::MasterVolume { value } if value.is_nan() => Self::MasterVolume { value: 1.0 },
            Self::MasterVolume { value } => Self::MasterVolume {
                value: value.clamp(0.0, 1.0),
            },
            Self::SystemReset => Self::SystemReset,
            Self::Zone { manager, members } => Self::Zone {
                manager: manager & 15,
                members,
            },
        }
    }
}

/// Clamps a value to 0 to 1; non-finite values become 0.
fn unit(value: f32) -> f32 {
    finite(value).clamp(0.0, 1.0)
}

fn timbre(value: f32) -> f32 {
    if value.is_finite() {
        value.clamp(0.0, 1.0)
    } else {
        TIMBRE_REST
    }
}

/// Clamps semitones or dB; non-finite values become 0.
fn finite(value: f32) -> f32 {
    if value.is_finite() {
        value.clamp(-127.0, 127.0)
    } else {
        0.0
    }
}

/// Numbers of the control changes that have an effect.
pub mod controller {
    /// Modulation wheel: depth of vibrato.
    pub const MOD_WHEEL: u8 = 1;
    /// Breath: dynamics, from the first value received.
    pub const BREATH: u8 = 2;
    /// Portamento time, coarse: see [`PORTAMENTO`].
    pub const PORTAMENTO_TIME: u8 = 5;
    /// Data entry, coarse: value of the selected registered parameter.
    pub const DATA_ENTRY: u8 = 6;
    /// Channel volume: a fader after the instrument, without influence on timbre.
    pub const VOLUME: u8 = 7;
    /// Expression: dynamics, which also change the timbre.
    pub const EXPRESSION: u8 = 11;
    /// Portamento time, fine.
    pub const PORTAMENTO_TIME_FINE: u8 = 37;
    /// Data entry, fine.
    pub const DATA_ENTRY_FINE: u8 = 38;
    /// Sustain pedal: down from 0.5.
    pub const SUSTAIN: u8 = 64;
    /// Portamento, on from 0.5: notes glide from the pitch of the previous one.
    pub const PORTAMENTO: u8 = 65;
    /// Sostenuto pedal, down from 0.5: holds the notes whose keys are held when it goes down.
    pub const SOSTENUTO: u8 = 66;
    /// Soft pedal, down from 0.5: notes are struck more softly.
    pub const SOFT: u8 = 67;
    /// Legato pedal, down from 0.5: the channel has one voice, which overlapping notes slur.
    pub const LEGATO: u8 = 68;
    /// Timbre (brightness), from 0 (dark) to 1 (bright), neutral at 0.5.
    pub const TIMBRE: u8 = 74;
    /// Portamento control: the key (of 127) from which the next note glides.
    pub const PORTAMENTO_CONTROL: u8 = 84;
    /// Data increment: value of the selected registered parameter plus one step.
    pub const DATA_INCREMENT: u8 = 96;
    /// Data decrement.
    pub const DATA_DECREMENT: u8 = 97;
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
    /// Mono mode: the channel has one voice.
    pub const MONO: u8 = 126;
    /// Poly mode.
    pub const POLY: u8 = 127;
}
