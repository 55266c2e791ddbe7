//! Translates the framework's note and MIDI events to the engine's.

use nice_plug::midi::{Channel, Key, MidiResult, NoteEvent, VoiceID};
use ondes_engine::instrument::{EventKind, MidiDecoder, NoteExpression, controller};

/// Number of voice ids kept; the oldest is replaced first.
const MAX_VOICE_IDS: usize = 256;
/// Level of a choked note, dB.
const CHOKED_DB: f32 = -127.0;

/// Event decoder. Keeps bend ranges, MPE zones and the notes behind the host's voice ids.
pub struct NoteEventDecoder {
    decoder: MidiDecoder,
    /// Ring of voice id, channel and key.
    voice_ids: [(i32, u8, u8); MAX_VOICE_IDS],
    next: usize,
}

impl Default for NoteEventDecoder {
    fn default() -> Self {
        Self { decoder: MidiDecoder::new(), voice_ids: [(-1, 0, 0); MAX_VOICE_IDS], next: 0 }
    }
}

impl NoteEventDecoder {
    /// Passes the engine events of a host event to `emit`, in order: none, one or several.
    pub fn decode(&mut self, event: &NoteEvent<()>, mut emit: impl FnMut(EventKind)) {
        use NoteExpression::{Expression, Level, Timbre, Tuning, Vibrato};
        type Target = (VoiceID, Channel, Key);
        let mut express = |(voice, channel, key): Target, expression| {
            self.for_each_note(voice, channel, key, |channel, key| {
                emit(EventKind::NoteExpression { channel, key, expression })
            });
        };
        match *event {
            NoteEvent::NoteOn { voice_id, channel, key, velocity, .. } => {
                let (channel, Some(key)) = (channel.number().unwrap_or(0), key.number()) else { return };
                if let Some(id) = voice_id.id() {
                    self.voice_ids[self.next] = (id, channel, key);
                    self.next = (self.next + 1) % MAX_VOICE_IDS;
                }
                emit(EventKind::NoteOn { channel, key, velocity });
            }
            NoteEvent::NoteOff { voice_id, channel, key, velocity, .. } => match self.resolve(voice_id, channel, key) {
                (Some(channel), Some(key)) => emit(EventKind::NoteOff { channel, key, velocity }),
                (None, Some(key)) => (0..16).for_each(|channel| emit(EventKind::NoteOff { channel, key, velocity })),
                (channel, None) => channel_mode(channel, controller::ALL_NOTES_OFF, emit),
            },
            NoteEvent::Choke { voice_id, channel, key, .. } => match self.resolve(voice_id, channel, key) {
                (channel, Some(key)) => {
                    let channels = channel.map_or(0..16, |channel| channel..channel + 1);
                    for channel in channels {
                        emit(EventKind::NoteExpression { channel, key, expression: Level(CHOKED_DB) });
                        emit(EventKind::NoteOff { channel, key, velocity: 1.0 });
                    }
                }
                (channel, None) => channel_mode(channel, controller::ALL_SOUND_OFF, emit),
            },
            NoteEvent::PolyPressure { voice_id, channel, key, pressure, .. } => {
                let value = pressure;
                self.for_each_note(voice_id, channel, key, |channel, key| {
                    emit(EventKind::PolyPressure { channel, key, value })
                });
            }
            NoteEvent::PolyVolume { voice_id, channel, key, gain, .. } => {
                let level_db = if gain > 0.0 { 20.0 * gain.log10() } else { CHOKED_DB };
                express((voice_id, channel, key), Level(level_db));
            }
            NoteEvent::PolyExpression { voice_id, channel, key, expression, .. } => {
                express((voice_id, channel, key), Expression(expression));
            }
            NoteEvent::PolyTuning { voice_id, channel, key, tuning, .. } => {
                express((voice_id, channel, key), Tuning(tuning));
            }
            NoteEvent::PolyVibrato { voice_id, channel, key, vibrato, .. } => {
                express((voice_id, channel, key), Vibrato(vibrato));
            }
            NoteEvent::PolyBrightness { voice_id, channel, key, brightness, .. } => {
                express((voice_id, channel, key), Timbre(brightness));
            }
            NoteEvent::MidiChannelPressure { .. } | NoteEvent::MidiPitchBend { .. } | NoteEvent::MidiCC { .. } => {
                if let Some(MidiResult::Basic(bytes)) = event.as_midi() {
                    let length = if matches!(event, NoteEvent::MidiChannelPressure { .. }) { 2 } else { 3 };
                    self.decoder.decode_bytes(&bytes[..length]).into_iter().for_each(emit);
                }
            }
            _ => {}
        }
    }

    /// Resolves voice id, channel and key to channel and key; `None` means all.
    fn resolve(&self, voice: VoiceID, channel: Channel, key: Key) -> (Option<u8>, Option<u8>) {
        let (mut channel, mut key) = (channel.number(), key.number());
        if let Some(id) = voice.id().filter(|_| channel.is_none() || key.is_none()) {
            let newest_first =
                (1..=MAX_VOICE_IDS).map(|age| self.voice_ids[(self.next + MAX_VOICE_IDS - age) % MAX_VOICE_IDS]);
            if let Some((_, known_channel, known_key)) = { newest_first }.find(|(known, ..)| *known == id) {
                (channel, key) = (channel.or(Some(known_channel)), key.or(Some(known_key)));
            }
        }
        (channel, key)
    }

    /// Calls `apply` with channel and key of each addressed note; does nothing if all keys are addressed.
    fn for_each_note(&self, voice: VoiceID, channel: Channel, key: Key, mut apply: impl FnMut(u8, u8)) {
        match self.resolve(voice, channel, key) {
            (Some(channel), Some(key)) => apply(channel, key),
            (None, Some(key)) => (0..16).for_each(|channel| apply(channel, key)),
            (_, None) => {}
        }
    }
}

/// Emits a channel mode message on one channel or on all.
fn channel_mode(channel: Option<u8>, number: u8, mut emit: impl FnMut(EventKind)) {
    let channels = channel.map_or(0..16, |channel| channel..channel + 1);
    channels.for_each(|channel| emit(EventKind::Controller { channel, number, value: 0.0 }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(notes: &mut NoteEventDecoder, event: NoteEvent<()>) -> Vec<EventKind> {
        let mut emitted = Vec::new();
        notes.decode(&event, |kind| emitted.push(kind));
        emitted
    }

    #[test]
    fn a_voice_id_resolves_to_its_note() {
        let mut notes = NoteEventDecoder::default();
        let (voice_id, channel, key) = (VoiceID::ID(7), Channel::Number(3), Key::Number(60));
        decode(&mut notes, NoteEvent::NoteOn { timing: 0, voice_id, channel, key, velocity: 0.5 });
        let (channel, key) = (Channel::Wildcard, Key::Wildcard);
        let emitted = decode(&mut notes, NoteEvent::PolyTuning { timing: 0, voice_id, channel, key, tuning: 2.0 });
        let expression = NoteExpression::Tuning(2.0);
        assert_eq!(emitted, [EventKind::NoteExpression { channel: 3, key: 60, expression }]);
        let emitted = decode(&mut notes, NoteEvent::NoteOff { timing: 0, voice_id, channel, key, velocity: 0.5 });
        assert_eq!(emitted, [EventKind::NoteOff { channel: 3, key: 60, velocity: 0.5 }]);
    }

    #[test]
    fn pitch_bend_uses_the_received_range() {
        let mut notes = NoteEventDecoder::default();
        let bend = NoteEvent::MidiPitchBend { timing: 0, channel: 2, value: 0.0 };
        assert_eq!(decode(&mut notes, bend), [EventKind::Bend { channel: 2, semitones: -2.0 }]);
        for (cc, value) in [(101, 0.0), (100, 0.0), (6, 12.0 / 127.0)] {
            decode(&mut notes, NoteEvent::MidiCC { timing: 0, channel: 2, cc, value });
        }
        assert_eq!(decode(&mut notes, bend), [EventKind::Bend { channel: 2, semitones: -12.0 }]);
        let rest = NoteEvent::MidiPitchBend { timing: 0, channel: 2, value: 8192.0 / 16383.0 };
        assert_eq!(decode(&mut notes, rest), [EventKind::Bend { channel: 2, semitones: 0.0 }]);
    }

    #[test]
    fn pedal_pressure_and_choke_are_decoded() {
        let mut notes = NoteEventDecoder::default();
        let pedal = decode(&mut notes, NoteEvent::MidiCC { timing: 0, channel: 1, cc: 64, value: 1.0 });
        assert_eq!(pedal, [EventKind::Controller { channel: 1, number: controller::SUSTAIN, value: 1.0 }]);
        let pressure = decode(&mut notes, NoteEvent::MidiChannelPressure { timing: 0, channel: 4, pressure: 1.0 });
        assert_eq!(pressure, [EventKind::Pressure { channel: 4, value: 1.0 }]);
        let (voice_id, channel, key) = (VoiceID::Wildcard, Channel::Wildcard, Key::Wildcard);
        assert_eq!(decode(&mut notes, NoteEvent::Choke { timing: 0, voice_id, channel, key }).len(), 16);
    }
}
