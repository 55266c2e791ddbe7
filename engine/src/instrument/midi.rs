//! Decoding of raw MIDI messages.

use super::event::{EventKind, controller};
use super::zone::{ChannelRole, Zones};
use midly::MidiMessage;
use midly::live::LiveEvent;

/// Default range of the pitch wheel, ± semitones.
pub const DEFAULT_BEND_RANGE_SEMITONES: f32 = 2.0;

/// Default range of the pitch wheel on member channels of an MPE zone, ± semitones.
pub const MEMBER_BEND_RANGE_SEMITONES: f32 = 48.0;

/// Decodes the MIDI messages of one source.
///
/// Keeps the state that messages depend on: the range of each channel's pitch wheel (RPN 0), which the members of an
/// MPE zone share, and the zones (RPN 6).
///
/// # Examples
/// ```
/// use ondes_engine::instrument::{EventKind, MidiDecoder};
///
/// let mut decoder = MidiDecoder::new();
/// let event = decoder.decode_bytes(&[0x90, 60, 127]);
/// assert_eq!(event, Some(EventKind::NoteOn { channel: 0, key: 60, velocity: 1.0 }));
/// ```
#[derive(Clone, Debug, Default)]
pub struct MidiDecoder {
    channels: [Wheel; 16],
    zones: Zones,
}

#[derive(Clone, Copy, Debug)]
struct Wheel {
    /// Position, −1 to 1.
    position: f32,
    range: BendRange,
    /// Selected registered parameter number, coarse and fine; 127, 127 for none.
    rpn: (u8, u8),
}

#[derive(Clone, Copy, Debug)]
struct BendRange {
    semitones: u8,
    cents: u8,
}

const NO_RPN: (u8, u8) = (127, 127);
const BEND_RANGE_RPN: (u8, u8) = (0, 0);
/// MPE Configuration Message.
const ZONE_RPN: (u8, u8) = (0, 6);

impl BendRange {
    fn default_for(role: ChannelRole) -> Self {
        let semitones = match role {
            ChannelRole::Member(_) => MEMBER_BEND_RANGE_SEMITONES,
            ChannelRole::Manager | ChannelRole::Alone => DEFAULT_BEND_RANGE_SEMITONES,
        };
        Self { semitones: semitones as u8, cents: 0 }
    }
}

impl Default for Wheel {
    fn default() -> Self {
        Self { position: 0.0, range: BendRange::default_for(ChannelRole::Alone), rpn: NO_RPN }
    }
}

impl Wheel {
    fn bend(&self, channel: u8) -> EventKind {
        let range = f32::from(self.range.semitones) + f32::from(self.range.cents) / 100.0;
        EventKind::Bend { channel, semitones: self.position * range }
    }
}

impl MidiDecoder {
    /// Creates a decoder with centred wheels, default ranges and no zones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a MIDI message (status and data bytes); `None` if it has no effect on instruments.
    pub fn decode_bytes(&mut self, message: &[u8]) -> Option<EventKind> {
        // Checked before parsing, because errors of the parser allocate, and hosts pass on what they get.
        let length = match message.first()? {
            0xC0..0xE0 => 2,
            0x80..0xF0 => 3,
            _ => return None,
        };
        let message = message.get(..length).filter(|message| message[1..].iter().all(|data| *data < 0x80))?;
        match LiveEvent::parse(message) {
            Ok(LiveEvent::Midi { channel, message }) => self.decode(channel.as_int(), message),
            _ => None,
        }
    }

    /// Decodes a channel message; `None` if it has no effect on instruments.
    pub fn decode(&mut self, channel: u8, message: MidiMessage) -> Option<EventKind> {
        let channel = channel & 15;
        let wheel = &mut self.channels[usize::from(channel)];
        let unit = |value: midly::num::u7| f32::from(value.as_int()) / 127.0;
        Some(match message {
            // A note-on of velocity 0 is a note-off, which allows running status for both.
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
                return self.controller(channel, number.as_int(), value.as_int());
            }
        })
    }

    fn controller(&mut self, channel: u8, number: u8, raw: u8) -> Option<EventKind> {
        let wheel = &mut self.channels[usize::from(channel)];
        match (number, wheel.rpn) {
            (controller::RPN_COARSE, _) => wheel.rpn.0 = raw,
            (controller::RPN_FINE, _) => wheel.rpn.1 = raw,
            (controller::NRPN_COARSE | controller::NRPN_FINE, _) => wheel.rpn = NO_RPN,
            (controller::DATA_ENTRY, BEND_RANGE_RPN) => {
                return Some(self.set_range(channel, |range| range.semitones = raw));
            }
            (controller::DATA_ENTRY_FINE, BEND_RANGE_RPN) => {
                return Some(self.set_range(channel, |range| range.cents = raw));
            }
            (controller::DATA_ENTRY, ZONE_RPN) => return self.configure_zone(channel, raw),
            (controller::DATA_ENTRY | controller::DATA_ENTRY_FINE, _) => {}
            (controller::TIMBRE, _) => {
                return Some(EventKind::Controller { channel, number, value: centred(raw) });
            }
            _ => {
                if number == controller::RESET {
                    for channel in self.zones.affected(channel).iter() {
                        let wheel = &mut self.channels[usize::from(channel)];
                        wheel.position = 0.0;
                        wheel.rpn = NO_RPN;
                    }
                }
                return Some(EventKind::Controller { channel, number, value: f32::from(raw) / 127.0 });
            }
        }
        None
    }

    /// Sets the range of a wheel and of its peers, which applies to them from their next movement on.
    fn set_range(&mut self, channel: u8, change: impl Fn(&mut BendRange)) -> EventKind {
        for peer in self.zones.peers(channel).iter() {
            change(&mut self.channels[usize::from(peer)].range);
        }
        self.channels[usize::from(channel)].bend(channel)
    }

    fn configure_zone(&mut self, manager: u8, members: u8) -> Option<EventKind> {
        let changed = self.zones.configure(manager, members)?;
        for channel in 0..16 {
            let wheel = &mut self.channels[usize::from(channel)];
            if changed.contains(channel) {
                wheel.position = 0.0;
            }
            if changed.contains(channel) || self.zones.affected(manager).contains(channel) {
                wheel.range = BendRange::default_for(self.zones.role(channel));
            }
        }
        Some(EventKind::Zone { manager, members })
    }
}

/// Scales a centred controller: 64 is exactly 0.5.
fn centred(raw: u8) -> f32 {
    let above = f32::from(raw) - 64.0;
    0.5 + 0.5 * above / if above > 0.0 { 63.0 } else { 64.0 }
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
        // The wheel is still down, so a new range changes the pitch.
        assert_eq!(bend(&mut decoder, &[0xB0, 6, 12]), -12.0);
        assert_eq!(bend(&mut decoder, &[0xB0, 38, 50]), -12.5);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 64]), 0.0);
        // Other channels are unaffected, and a deselected parameter ignores data.
        assert_eq!(bend(&mut decoder, &[0xE1, 0, 0]), -2.0);
        decoder.decode_bytes(&[0xB0, 101, 127]);
        assert_eq!(decoder.decode_bytes(&[0xB0, 6, 1]), None);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -12.5);
    }
    fn parameter(decoder: &mut MidiDecoder, channel: u8, number: u8, value: u8) -> Option<EventKind> {
        decoder.decode_bytes(&[0xB0 | channel, 101, 0]);
        decoder.decode_bytes(&[0xB0 | channel, 100, number]);
        decoder.decode_bytes(&[0xB0 | channel, 6, value])
    }

    #[test]
    fn rpn_6_sets_zones_and_ranges() {
        let mut decoder = MidiDecoder::new();
        decoder.decode_bytes(&[0xE2, 0, 0]);
        assert_eq!(parameter(&mut decoder, 0, 6, 3), Some(EventKind::Zone { manager: 0, members: 3 }));
        // Wheels of a new zone are centred.
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 64]), 0.0);
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -48.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        assert_eq!(bend(&mut decoder, &[0xE4, 0, 0]), -2.0);
        // A message of one member applies to all; the manager has its own range.
        assert_eq!(parameter(&mut decoder, 1, 0, 24), Some(EventKind::Bend { channel: 1, semitones: 0.0 }));
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -24.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        parameter(&mut decoder, 0, 0, 12);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -12.0);
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -24.0);
        // The upper zone takes members from the lower one, and a removed zone resets its ranges.
        assert_eq!(parameter(&mut decoder, 15, 6, 12), Some(EventKind::Zone { manager: 15, members: 12 }));
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -48.0);
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -24.0);
        assert_eq!(parameter(&mut decoder, 0, 6, 0), Some(EventKind::Zone { manager: 0, members: 0 }));
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -2.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        // Other channels cannot manage zones, and no zone has more than 15 members.
        assert_eq!(parameter(&mut decoder, 7, 6, 3), None);
        assert_eq!(parameter(&mut decoder, 0, 6, 16), None);
    }

    #[test]
    fn invalid_messages_have_no_effect() {
        let mut decoder = MidiDecoder::new();
        let invalid: [&[u8]; 8] =
            [&[], &[60, 64], &[0x90], &[0x90, 60], &[0x90, 200, 64], &[0xB0, 7, 128], &[0xD0, 255], &[0xF0, 1, 2]];
        assert!(invalid.into_iter().all(|message| decoder.decode_bytes(message).is_none()));
        assert_eq!(decoder.decode_bytes(&[0xD0, 127, 9]), Some(EventKind::Pressure { channel: 0, value: 1.0 }));
    }

    #[test]
    fn timbre_is_centred_at_64() {
        let mut decoder = MidiDecoder::new();
        for (raw, expected) in [(0, 0.0), (32, 0.25), (64, 0.5), (127, 1.0)] {
            let event = EventKind::Controller { channel: 0, number: controller::TIMBRE, value: expected };
            assert_eq!(decoder.decode_bytes(&[0xB0, 74, raw]), Some(event));
        }
    }
}
