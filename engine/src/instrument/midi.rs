//! Raw MIDI messages become events.

use super::event::{EventKind, controller};
use midly::MidiMessage;
use midly::live::LiveEvent;

/// How far the pitch wheel bends until a registered parameter says otherwise, in semitones either way.
pub const DEFAULT_BEND_RANGE_SEMITONES: f32 = 2.0;

/// Turns the MIDI messages of one source into events.
///
/// It remembers what a message alone does not tell: the range of each channel's pitch wheel (RPN 0).
#[derive(Clone, Debug, Default)]
pub struct MidiDecoder {
    channels: [Wheel; 16],
}

#[derive(Clone, Copy, Debug)]
struct Wheel {
    /// −1 … 1.
    position: f32,
    range_semitones: u8,
    range_cents: u8,
    /// Registered parameter number selected, coarse and fine; 127, 127 is none.
    rpn: (u8, u8),
}

const NO_RPN: (u8, u8) = (127, 127);
const BEND_RANGE_RPN: (u8, u8) = (0, 0);

impl Default for Wheel {
    fn default() -> Self {
        let range_semitones = DEFAULT_BEND_RANGE_SEMITONES as u8;
        Self { position: 0.0, range_semitones, range_cents: 0, rpn: NO_RPN }
    }
}

impl Wheel {
    fn bend(&self, channel: u8) -> EventKind {
        let range = f32::from(self.range_semitones) + f32::from(self.range_cents) / 100.0;
        EventKind::Bend { channel, semitones: self.position * range }
    }
}

impl MidiDecoder {
    /// A decoder with every wheel centred and its default range.
    pub fn new() -> Self {
        Self::default()
    }

    /// The event that one MIDI message (status and data bytes) means, if it means one to an instrument.
    pub fn decode_bytes(&mut self, message: &[u8]) -> Option<EventKind> {
        match LiveEvent::parse(message) {
            Ok(LiveEvent::Midi { channel, message }) => self.decode(channel.as_int(), message),
            _ => None,
        }
    }

    /// The event that one channel message means, if it means one to an instrument.
    pub fn decode(&mut self, channel: u8, message: MidiMessage) -> Option<EventKind> {
        let channel = channel & 15;
        let wheel = &mut self.channels[usize::from(channel)];
        let unit = |value: midly::num::u7| f32::from(value.as_int()) / 127.0;
        Some(match message {
            // A note-on of velocity 0 is a note-off: running status then carries both.
            MidiMessage::NoteOn { key, vel } if vel.as_int() == 0 => {
                EventKind::NoteOff { channel, key: key.as_int(), velocity: 0.5 }
            }
            MidiMessage::NoteOn { key, vel } => EventKind::NoteOn { channel, key: key.as_int(), velocity: unit(vel) },
            MidiMessage::NoteOff { key, vel } => EventKind::NoteOff { channel, key: key.as_int(), velocity: unit(vel) },
            MidiMessage::Aftertouch { key, vel } => {
                EventKind::PolyPressure { channel, key: key.as_int(), value: unit(vel) }
            }
            MidiMessage::ChannelAftertouch { vel } => EventKind::Pressure { channel, value: unit(vel) },
            MidiMessage::PitchBend { bend } => {
                wheel.position = bend.as_f32();
                wheel.bend(channel)
            }
            MidiMessage::ProgramChange { .. } => return None,
            MidiMessage::Controller { controller: number, value } => {
                let raw = value.as_int();
                match number.as_int() {
                    controller::RPN_COARSE => wheel.rpn.0 = raw,
                    controller::RPN_FINE => wheel.rpn.1 = raw,
                    controller::NRPN_COARSE | controller::NRPN_FINE => wheel.rpn = NO_RPN,
                    controller::DATA_ENTRY if wheel.rpn == BEND_RANGE_RPN => {
                        wheel.range_semitones = raw;
                        return Some(wheel.bend(channel));
                    }
                    controller::DATA_ENTRY_FINE if wheel.rpn == BEND_RANGE_RPN => {
                        wheel.range_cents = raw;
                        return Some(wheel.bend(channel));
                    }
                    controller::DATA_ENTRY | controller::DATA_ENTRY_FINE => {}
                    number => {
                        if number == controller::RESET {
                            wheel.position = 0.0;
                            wheel.rpn = NO_RPN;
                        }
                        return Some(EventKind::Controller { channel, number, value: unit(value) });
                    }
                }
                return None;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bend(decoder: &mut MidiDecoder, message: &[u8]) -> f32 {
        match decoder.decode_bytes(message) {
            Some(EventKind::Bend { semitones, .. }) => semitones,
            other => panic!("expected a bend, found {other:?}"),
        }
    }

    #[test]
    fn notes_and_controllers() {
        let mut decoder = MidiDecoder::new();
        assert_eq!(
            decoder.decode_bytes(&[0x93, 60, 127]),
            Some(EventKind::NoteOn { channel: 3, key: 60, velocity: 1.0 })
        );
        assert_eq!(
            decoder.decode_bytes(&[0x93, 60, 0]),
            Some(EventKind::NoteOff { channel: 3, key: 60, velocity: 0.5 })
        );
        assert_eq!(
            decoder.decode_bytes(&[0xB0, 1, 127]),
            Some(EventKind::Controller { channel: 0, number: 1, value: 1.0 })
        );
        assert_eq!(decoder.decode_bytes(&[0xC0, 5]), None);
        assert_eq!(decoder.decode_bytes(&[0xF8]), None);
        assert_eq!(decoder.decode_bytes(&[]), None);
        assert_eq!(decoder.decode_bytes(&[0x90, 60]), None);
    }

    #[test]
    fn bend_range_follows_rpn_0() {
        let mut decoder = MidiDecoder::new();
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        assert_eq!(decoder.decode_bytes(&[0xB0, 101, 0]), None);
        assert_eq!(decoder.decode_bytes(&[0xB0, 100, 0]), None);
        // The wheel is still down, so a new range moves the pitch.
        assert_eq!(bend(&mut decoder, &[0xB0, 6, 12]), -12.0);
        assert_eq!(bend(&mut decoder, &[0xB0, 38, 50]), -12.5);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 64]), 0.0);
        // Other channels keep theirs; a deselected parameter takes no data.
        assert_eq!(bend(&mut decoder, &[0xE1, 0, 0]), -2.0);
        decoder.decode_bytes(&[0xB0, 101, 127]);
        assert_eq!(decoder.decode_bytes(&[0xB0, 6, 1]), None);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -12.5);
    }
}
