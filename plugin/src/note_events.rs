//! Translates the framework's note and MIDI events to the engine's.

use nice_plug::midi::sysex::SysExMessage;
use nice_plug::midi::{Channel, Key, MidiResult, NoteEvent, VoiceID};
use ondes_engine::instrument::{
    EventKind, MidiDecoder, MidiSettings, NoteChange, NoteExpression, controller,
};

/// Number of voice ids kept; the oldest is replaced first.
const MAX_VOICE_IDS: usize = 256;
/// Level of a choked note, dB.
const CHOKED_DB: f32 = -127.0;
/// Longest system-exclusive message that is understood, with its first and last byte: a reset.
const MAX_SYS_EX: usize = 12;

/// Short system-exclusive message.
#[derive(Clone, Debug, PartialEq)]
pub struct SysEx {
    bytes: [u8; MAX_SYS_EX],
    length: usize,
}

impl SysExMessage for SysEx {
    type Buffer = [u8; MAX_SYS_EX];

    fn from_buffer(buffer: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_SYS_EX];
        bytes.get_mut(..buffer.len())?.copy_from_slice(buffer);
        Some(Self {
            bytes,
            length: buffer.len(),
        })
    }

    fn as_buffer(&self) -> (Self::Buffer, usize) {
        (self.bytes, self.length)
    }
}

/// Event decoder. Keeps bend ranges, MPE zones and the notes behind the host's voice ids.
pub struct NoteEventDecoder {
    decoder: MidiDecoder,
    /// Ring of voice id, channel and key.
    voice_ids: [(i32, u8, u8); MAX_VOICE_IDS],
    next: usize,
}

impl Default for NoteEventDecoder {
    fn default() -> Self {
        Self {
            decoder: MidiDecoder::new(),
            voice_ids: [(-1, 0, 0); MAX_VOICE_IDS],
            next: 0,
        }
    }
}

/// One or two changes of a note.
type NoteChanges = (NoteChange, Option<NoteChange>);

/// Notes that an event is for; `None` means all.
#[derive(Clone, Copy)]
struct Addressed {
    channel: Option<u8>,
    key: Option<u8>,
    id: Option<i32>,
}

impl NoteEventDecoder {
    /// Changes the settings of MIDI and passes the events that follow from that to `emit`.
    pub fn set_settings(&mut self, settings: &MidiSettings, emit: impl FnMut(EventKind)) {
        self.decoder.set_settings(settings, emit);
    }

    /// Passes the engine events of a host event to `emit`, in order: none, one or several.
    pub fn decode(&mut self, event: &NoteEvent<SysEx>, mut emit: impl FnMut(EventKind)) {
        let mut decode_bytes = |bytes: &[u8]| {
            let events = self.decoder.decode_bytes(bytes);
            events.into_iter().for_each(&mut emit);
        };
        match event {
            NoteEvent::MidiSysEx { message, .. } => {
                return decode_bytes(&message.bytes[..message.length]);
            }
            NoteEvent::MidiChannelPressure { .. }
            | NoteEvent::MidiPitchBend { .. }
            | NoteEvent::MidiCC { .. } => {
                let is_short = matches!(event, NoteEvent::MidiChannelPressure { .. });
                if let Some(MidiResult::Basic(bytes)) = event.as_midi() {
                    decode_bytes(&bytes[..if is_short { 2 } else { 3 }]);
                }
                return;
            }
            _ => {}
        }
        let Some((voice, channel, key, changes)) = note_changes(event) else {
            return;
        };
        let notes = if let (NoteChange::On(_), _) = changes {
            self.start_note(voice, channel, key)
        } else {
            self.resolve(voice, channel, key)
        };
        let Some(notes) = notes else {
            return;
        };
        for channel in notes.channels() {
            if let Some(key) = notes.key {
                emit(notes.event(channel, key, changes.0));
                if let Some(second) = changes.1 {
                    emit(notes.event(channel, key, second));
                }
            } else if let Some(number) = channel_mode(changes) {
                let value = 0.0;
                emit(EventKind::Controller {
                    channel,
                    number,
                    value,
                });
            }
        }
    }

    /// Returns a note that begins, and keeps its id; `None` without a key.
    fn start_note(&mut self, voice: VoiceID, channel: Channel, key: Key) -> Option<Addressed> {
        let (channel, key, id) = (channel.number().unwrap_or(0), key.number()?, voice.id());
        if let Some(id) = id {
            self.voice_ids[self.next] = (id, channel, key);
            self.next = (self.next + 1) % MAX_VOICE_IDS;
        }
        let (channel, key) = (Some(channel), Some(key));
        Some(Addressed { channel, key, id })
    }

    /// Resolves voice id, channel and key; `None` if the id is that of no known note, and channel
    /// and key do not say which.
    fn resolve(&self, voice: VoiceID, channel: Channel, key: Key) -> Option<Addressed> {
        let (channel, key, id) = (channel.number(), key.number(), voice.id());
        let Some(id) = id.filter(|_| channel.is_none() || key.is_none()) else {
            return Some(Addressed { channel, key, id });
        };
        let newest_first = (1..=MAX_VOICE_IDS)
            .map(|age| self.voice_ids[(self.next + MAX_VOICE_IDS - age) % MAX_VOICE_IDS]);
        let (_, known_channel, known_key) = { newest_first }.find(|(known, ..)| *known == id)?;
        let (channel, key) = (channel.or(Some(known_channel)), key.or(Some(known_key)));
        Some(Addressed {
            channel,
            key,
            id: Some(id),
        })
    }
}

impl Addressed {
    fn channels(self) -> std::ops::Range<u8> {
        self.channel.map_or(0..16, |channel| channel..channel + 1)
    }

    /// Returns the event that changes these notes, on one channel and key of theirs.
    fn event(self, channel: u8, key: u8, change: NoteChange) -> EventKind {
        let event = EventKind::Note {
            id: self.id.unwrap_or_default(),
            channel,
            key,
            change,
        };
        if self.id.is_some() {
            event
        } else {
            event.without_id().0
        }
    }
}

/// Returns the notes that an event is for, and how it changes them. The second change is that of a
/// choke.
fn note_changes(event: &NoteEvent<SysEx>) -> Option<(VoiceID, Channel, Key, NoteChanges)> {
    use NoteChange::{Expression, Off, On, Pressure};
    macro_rules! table {
        ($($event:ident($($value:ident)?) => $change:expr, $second:expr;)*) => {
            match *event {
                $(NoteEvent::$event { voice_id, channel, key, $($value,)? .. } => {
                    Some((voice_id, channel, key, ($change, $second)))
                })*
                _ => None,
            }
        };
    }
    table! {
        NoteOn(velocity) => On(velocity), None;
        NoteOff(velocity) => Off(velocity), None;
        Choke() => Expression(NoteExpression::Level(CHOKED_DB)), Some(Off(1.0));
        PolyPressure(pressure) => Pressure(pressure), None;
        PolyVolume(gain) => Expression(NoteExpression::Level(level_db(gain))), None;
        PolyExpression(expression) => Expression(NoteExpression::Expression(expression)), None;
        PolyTuning(tuning) => Expression(NoteExpression::Tuning(tuning)), None;
        PolyVibrato(vibrato) => Expression(NoteExpression::Vibrato(vibrato)), None;
        PolyBrightness(brightness) => Expression(NoteExpression::Timbre(brightness)), None;
    }
}

/// Returns the level of a gain, dB.
fn level_db(gain: f32) -> f32 {
    if gain > 0.0 {
        20.0 * gain.log10()
    } else {
        CHOKED_DB
    }
}

/// Returns the controller that changes all notes of a channel in this way, if there is one.
fn channel_mode(changes: NoteChanges) -> Option<u8> {
    match changes {
        (NoteChange::Off(_), None) => Some(controller::ALL_NOTES_OFF),
        (_, Some(_)) => Some(controller::ALL_SOUND_OFF),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(notes: &mut NoteEventDecoder, event: NoteEvent<SysEx>) -> Vec<EventKind> {
        let mut emitted = Vec::new();
        notes.decode(&event, |kind| emitted.push(kind));
        emitted
    }

    #[test]
    fn a_voice_id_resolves_to_its_note() {
        let mut notes = NoteEventDecoder::default();
        let (voice_id, channel, key) = (VoiceID::ID(7), Channel::Number(3), Key::Number(60));
        decode(
            &mut notes,
            NoteEvent::NoteOn {
                timing: 0,
                voice_id,
                channel,
                key,
                velocity: 0.5,
            },
        );
        let (channel, key) = (Channel::Wildcard, Key::Wildcard);
        let emitted = decode(
            &mut notes,
            NoteEvent::PolyTuning {
                timing: 0,
                voice_id,
                channel,
                key,
                tuning: 2.0,
            },
        );
        let change = NoteChange::Expression(NoteExpression::Tuning(2.0));
        assert_eq!(
            emitted,
            [EventKind::Note {
                id: 7,
                channel: 3,
                key: 60,
                change
            }]
        );
        let unknown = NoteEvent::NoteOff {
            timing: 0,
            voice_id: VoiceID::ID(8),
            channel,
            key,
            velocity: 0.5,
        };
        assert!(decode(&mut notes, unknown).is_empty(), "other notes go on");
        let emitted = decode(
            &mut notes,
            NoteEvent::NoteOff {
                timing: 0,
                voice_id,
                channel,
                key,
                velocity: 0.5,
            },
        );
        assert_eq!(
            emitted,
            [EventKind::Note {
                id: 7,
                channel: 3,
                key: 60,
                change: NoteChange::Off(0.5)
            }]
        );
    }

    #[test]
    fn a_note_off_without_id_is_for_all_notes_of_its_key() {
        let mut notes = NoteEventDecoder::default();
        let (channel, key) = (Channel::Number(3), Key::Number(60));
        for id in [1, 2] {
            let voice_id = VoiceID::ID(id);
            let emitted = decode(
                &mut notes,
                NoteEvent::NoteOn {
                    timing: 0,
                    voice_id,
                    channel,
                    key,
                    velocity: 0.5,
                },
            );
            assert_eq!(
                emitted,
                [EventKind::Note {
                    id,
                    channel: 3,
                    key: 60,
                    change: NoteChange::On(0.5)
                }]
            );
        }
        let voice_id = VoiceID::Wildcard;
        let emitted = decode(
            &mut notes,
            NoteEvent::NoteOff {
                timing: 0,
                voice_id,
                channel,
                key,
                velocity: 0.5,
            },
        );
        assert_eq!(
            emitted,
            [EventKind::NoteOff {
                channel: 3,
                key: 60,
                velocity: 0.5
            }]
        );
    }

    #[test]
    fn system_exclusive_messages_are_decoded() {
        let mut notes = NoteEventDecoder::default();
        let message = SysEx::from_buffer(&[0xF0, 0x7F, 0x7F, 0x04, 0x04, 0, 62, 0xF7]).unwrap();
        let emitted = decode(&mut notes, NoteEvent::MidiSysEx { timing: 0, message });
        assert_eq!(emitted, [EventKind::MasterTuning { semitones: -2.0 }]);
        assert_eq!(SysEx::from_buffer(&[0; 13]), None);
    }

    #[test]
    fn pitch_bend_uses_the_received_range() {
        let mut notes = NoteEventDecoder::default();
        let bend = NoteEvent::MidiPitchBend {
            timing: 0,
            channel: 2,
            value: 0.0,
        };
        assert_eq!(
            decode(&mut notes, bend.clone()),
            [EventKind::Bend {
                channel: 2,
                semitones: -2.0
            }]
        );
        for (cc, value) in [(101, 0.0), (100, 0.0), (6, 12.0 / 127.0)] {
            decode(
                &mut notes,
                NoteEvent::MidiCC {
                    timing: 0,
                    channel: 2,
                    cc,
                    value,
                },
            );
        }
        assert_eq!(
            decode(&mut notes, bend),
            [EventKind::Bend {
                channel: 2,
                semitones: -12.0
            }]
        );
        let rest = NoteEvent::MidiPitchBend {
            timing: 0,
            channel: 2,
            value: 8192.0 / 16383.0,
        };
        assert_eq!(
            decode(&mut notes, rest),
            [EventKind::Bend {
                channel: 2,
                semitones: 0.0
            }]
        );
    }

    #[test]
    fn pedal_pressure_and_choke_are_decoded() {
        let mut notes = NoteEventDecoder::default();
        let pedal = decode(
            &mut notes,
            NoteEvent::MidiCC {
                timing: 0,
                channel: 1,
                cc: 64,
                value: 1.0,
            },
        );
        assert_eq!(
            pedal,
            [EventKind::Controller {
                channel: 1,
                number: controller::SUSTAIN,
                value: 1.0
            }]
        );
        let pressure = decode(
            &mut notes,
            NoteEvent::MidiChannelPressure {
                timing: 0,
                channel: 4,
                pressure: 1.0,
            },
        );
        assert_eq!(
            pressure,
            [EventKind::Pressure {
                channel: 4,
                value: 1.0
            }]
        );
        let (voice_id, channel, key) = (VoiceID::Wildcard, Channel::Wildcard, Key::Wildcard);
        assert_eq!(
            decode(
                &mut notes,
                NoteEvent::Choke {
                    timing: 0,
                    voice_id,
                    channel,
                    key
                }
            )
            .len(),
            16
        );
    }
}
