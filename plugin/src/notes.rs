//! What a host tells about notes becomes what the engine plays.

use nice_plug::midi::{Channel, Key, MidiResult, NoteEvent, VoiceID};
use ondes_engine::instrument::{EventKind, MidiDecoder, NoteExpression, controller};

/// Notes whose names a host gave us that are remembered; older ones are forgotten first.
const NAMES: usize = 256;
/// Level of a note that was choked, dB.
const CHOKED_DB: f32 = -127.0;

/// Reads note events. It remembers bend ranges and MPE zones, and which note a host means by its number.
pub struct Notes {
    decoder: MidiDecoder,
    names: [(i32, u8, u8); NAMES],
    next: usize,
}

impl Default for Notes {
    fn default() -> Self {
        Self { decoder: MidiDecoder::new(), names: [(-1, 0, 0); NAMES], next: 0 }
    }
}

impl Notes {
    /// Tells what an event means to the engine, in order: nothing, one thing or several.
    pub fn read(&mut self, event: &NoteEvent<()>, mut tell: impl FnMut(EventKind)) {
        use NoteExpression::{Expression, Level, Timbre, Tuning, Vibrato};
        type Named = (VoiceID, Channel, Key);
        let mut express = |(voice, channel, key): Named, expression| {
            self.each(voice, channel, key, |channel, key| tell(EventKind::Note { channel, key, expression }));
        };
        match *event {
            NoteEvent::NoteOn { voice_id, channel, key, velocity, .. } => {
                let (channel, Some(key)) = (channel.number().unwrap_or(0), key.number()) else { return };
                if let Some(name) = voice_id.id() {
                    self.names[self.next] = (name, channel, key);
                    self.next = (self.next + 1) % NAMES;
                }
                tell(EventKind::NoteOn { channel, key, velocity });
            }
            NoteEvent::NoteOff { voice_id, channel, key, velocity, .. } => match self.named(voice_id, channel, key) {
                (Some(channel), Some(key)) => tell(EventKind::NoteOff { channel, key, velocity }),
                (None, Some(key)) => (0..16).for_each(|channel| tell(EventKind::NoteOff { channel, key, velocity })),
                (channel, None) => silence(channel, controller::ALL_NOTES_OFF, tell),
            },
            NoteEvent::Choke { voice_id, channel, key, .. } => match self.named(voice_id, channel, key) {
                (channel, Some(key)) => {
                    let channels = channel.map_or(0..16, |channel| channel..channel + 1);
                    for channel in channels {
                        tell(EventKind::Note { channel, key, expression: Level(CHOKED_DB) });
                        tell(EventKind::NoteOff { channel, key, velocity: 1.0 });
                    }
                }
                (channel, None) => silence(channel, controller::ALL_SOUND_OFF, tell),
            },
            NoteEvent::PolyPressure { voice_id, channel, key, pressure, .. } => {
                let value = pressure;
                self.each(voice_id, channel, key, |channel, key| tell(EventKind::PolyPressure { channel, key, value }));
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
                    self.decoder.decode_bytes(&bytes[..length]).into_iter().for_each(tell);
                }
            }
            _ => {}
        }
    }

    /// Channel and key of a note that is named by either; none where all are meant.
    fn named(&self, voice: VoiceID, channel: Channel, key: Key) -> (Option<u8>, Option<u8>) {
        let (mut channel, mut key) = (channel.number(), key.number());
        if let Some(name) = voice.id().filter(|_| channel.is_none() || key.is_none()) {
            let newest_first = (1..=NAMES).map(|back| self.names[(self.next + NAMES - back) % NAMES]);
            if let Some((_, known_channel, known_key)) = { newest_first }.find(|(known, ..)| *known == name) {
                (channel, key) = (channel.or(Some(known_channel)), key.or(Some(known_key)));
            }
        }
        (channel, key)
    }

    /// Does something for each note that is meant; nothing where that would be all of them.
    fn each(&self, voice: VoiceID, channel: Channel, key: Key, mut tell: impl FnMut(u8, u8)) {
        match self.named(voice, channel, key) {
            (Some(channel), Some(key)) => tell(channel, key),
            (None, Some(key)) => (0..16).for_each(|channel| tell(channel, key)),
            (_, None) => {}
        }
    }
}

fn silence(channel: Option<u8>, number: u8, mut tell: impl FnMut(EventKind)) {
    let channels = channel.map_or(0..16, |channel| channel..channel + 1);
    channels.for_each(|channel| tell(EventKind::Controller { channel, number, value: 0.0 }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(notes: &mut Notes, event: NoteEvent<()>) -> Vec<EventKind> {
        let mut told = Vec::new();
        notes.read(&event, |kind| told.push(kind));
        told
    }

    #[test]
    fn a_note_is_found_by_its_number() {
        let mut notes = Notes::default();
        let (voice_id, channel, key) = (VoiceID::ID(7), Channel::Number(3), Key::Number(60));
        read(&mut notes, NoteEvent::NoteOn { timing: 0, voice_id, channel, key, velocity: 0.5 });
        let (channel, key) = (Channel::Wildcard, Key::Wildcard);
        let told = read(&mut notes, NoteEvent::PolyTuning { timing: 0, voice_id, channel, key, tuning: 2.0 });
        let expression = NoteExpression::Tuning(2.0);
        assert_eq!(told, [EventKind::Note { channel: 3, key: 60, expression }]);
        let told = read(&mut notes, NoteEvent::NoteOff { timing: 0, voice_id, channel, key, velocity: 0.5 });
        assert_eq!(told, [EventKind::NoteOff { channel: 3, key: 60, velocity: 0.5 }]);
    }

    #[test]
    fn bends_by_the_range_that_was_set() {
        let mut notes = Notes::default();
        let bend = NoteEvent::MidiPitchBend { timing: 0, channel: 2, value: 0.0 };
        assert_eq!(read(&mut notes, bend), [EventKind::Bend { channel: 2, semitones: -2.0 }]);
        for (cc, value) in [(101, 0.0), (100, 0.0), (6, 12.0 / 127.0)] {
            read(&mut notes, NoteEvent::MidiCC { timing: 0, channel: 2, cc, value });
        }
        assert_eq!(read(&mut notes, bend), [EventKind::Bend { channel: 2, semitones: -12.0 }]);
        let rest = NoteEvent::MidiPitchBend { timing: 0, channel: 2, value: 8192.0 / 16383.0 };
        assert_eq!(read(&mut notes, rest), [EventKind::Bend { channel: 2, semitones: 0.0 }]);
    }

    #[test]
    fn pedal_pressure_and_choke_arrive() {
        let mut notes = Notes::default();
        let pedal = read(&mut notes, NoteEvent::MidiCC { timing: 0, channel: 1, cc: 64, value: 1.0 });
        assert_eq!(pedal, [EventKind::Controller { channel: 1, number: controller::SUSTAIN, value: 1.0 }]);
        let pressure = read(&mut notes, NoteEvent::MidiChannelPressure { timing: 0, channel: 4, pressure: 1.0 });
        assert_eq!(pressure, [EventKind::Pressure { channel: 4, value: 1.0 }]);
        let (voice_id, channel, key) = (VoiceID::Wildcard, Channel::Wildcard, Key::Wildcard);
        assert_eq!(read(&mut notes, NoteEvent::Choke { timing: 0, voice_id, channel, key }).len(), 16);
    }
}
