//! Decoding of raw MIDI messages.

use super::event::{EventKind, controller};
use super::zone::{ChannelRole, Zones};

/// Default range of the pitch wheel, ± semitones.
pub const DEFAULT_BEND_RANGE_SEMITONES: f32 = 2.0;

/// Default range of the pitch wheel on member channels of an MPE zone, ± semitones.
pub const MEMBER_BEND_RANGE_SEMITONES: f32 = 48.0;

/// Settings that apply where a source does not send them itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MidiSettings {
    /// Range of the pitch wheel outside of MPE zones and on their managers, ± semitones (0 to 96);
    /// [`DEFAULT_BEND_RANGE_SEMITONES`] if it is `None`. RPN 0 overrides it.
    pub bend_range_semitones: Option<f32>,
    /// MPE zone. RPN 6 overrides it.
    pub zone: Option<MpeZone>,
}

/// MPE zone of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpeZone {
    /// Manager channel 1, members 2 to 16.
    Lower,
    /// Manager channel 16, members 15 to 1.
    Upper,
}

impl MpeZone {
    /// Returns the manager channel, from 0.
    fn manager(self) -> u8 {
        let [lower, upper] = Zones::MANAGERS;
        match self {
            Self::Lower => lower,
            Self::Upper => upper,
        }
    }
}

/// Decodes the MIDI messages of one source.
///
/// Keeps the state that messages depend on: the range of each channel's pitch wheel (RPN 0), which
/// the members of an MPE zone share, tunings (RPN 1 and 2), and the zones (RPN 6).
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
    channels: [ChannelState; 16],
    zones: Zones,
    master: Tuning,
    settings: MidiSettings,
}

#[derive(Clone, Copy, Debug)]
struct ChannelState {
    /// Position of the pitch wheel, −1 to 1.
    wheel: f32,
    range: BendRange,
    tuning: Tuning,
    /// Selected registered parameter number, coarse and fine; 127, 127 for none.
    rpn: (u8, u8),
    /// A fine value has come since the parameter was selected, and no coarse one yet.
    fine_is_first: bool,
    /// A coarse value has come since the parameter was selected.
    has_coarse: bool,
}

#[derive(Clone, Copy, Debug)]
struct BendRange {
    semitones: u8,
    cents: u8,
}

/// Tuning in 7 and 14 bits.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    /// Semitones above −64.
    coarse: u8,
    /// Steps of 1/8192 of a semitone above −1 semitone.
    fine: u16,
}

/// Value for the selected parameter.
#[derive(Clone, Copy, Debug)]
enum DataEntry {
    Coarse(u8),
    Fine(u8),
    Step(i8),
}

const NO_RPN: (u8, u8) = (127, 127);
const BEND_RANGE_RPN: (u8, u8) = (0, 0);
const FINE_TUNING_RPN: (u8, u8) = (0, 1);
const COARSE_TUNING_RPN: (u8, u8) = (0, 2);
/// MPE Configuration Message.
const ZONE_RPN: (u8, u8) = (0, 6);

impl BendRange {
    fn default_for(role: ChannelRole, settings: &MidiSettings) -> Self {
        let semitones = match role {
            ChannelRole::Member(_) => MEMBER_BEND_RANGE_SEMITONES,
            ChannelRole::Manager | ChannelRole::Alone => settings
                .bend_range_semitones
                .unwrap_or(DEFAULT_BEND_RANGE_SEMITONES)
                .clamp(0.0, 96.0),
        };
        let cents = (100.0 * semitones).round() as u16;
        Self {
            semitones: (cents / 100) as u8,
            cents: (cents % 100) as u8,
        }
    }

    /// Changes the range. As in the recommended practice RP-018, steps are cents.
    fn enter(&mut self, entry: DataEntry, keeps_fine: bool) {
        match entry {
            DataEntry::Coarse(semitones) => {
                *self = Self {
                    semitones,
                    cents: if keeps_fine { self.cents } else { 0 },
                };
            }
            DataEntry::Fine(cents) => self.cents = cents,
            DataEntry::Step(step) => {
                let cents =
                    100 * i32::from(self.semitones) + i32::from(self.cents) + i32::from(step);
                let cents = cents.clamp(0, 12_799);
                *self = Self {
                    semitones: (cents / 100) as u8,
                    cents: (cents % 100) as u8,
                };
            }
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            coarse: 64,
            fine: 1 << 13,
        }
    }
}

impl Tuning {
    fn semitones(self) -> f32 {
        f32::from(self.coarse) - 64.0 + (f32::from(self.fine) - 8_192.0) / 8_192.0
    }

    fn enter_fine(&mut self, entry: DataEntry, keeps_fine: bool) {
        self.fine = match entry {
            DataEntry::Coarse(high) => {
                join(if keeps_fine { self.fine as u8 & 127 } else { 0 }, high)
            }
            DataEntry::Fine(low) => join(low, (self.fine >> 7) as u8),
            DataEntry::Step(step) => self
                .fine
                .saturating_add_signed(step.into())
                .min((1 << 14) - 1),
        };
    }

    fn enter_coarse(&mut self, entry: DataEntry) {
        match entry {
            DataEntry::Coarse(semitones) => self.coarse = semitones,
            DataEntry::Fine(_) => {}
            DataEntry::Step(step) => self.coarse = self.coarse.saturating_add_signed(step).min(127),
        }
    }
}

impl ChannelState {
    fn new(range: BendRange) -> Self {
        let tuning = Tuning::default();
        Self {
            wheel: 0.0,
            range,
            tuning,
            rpn: NO_RPN,
            fine_is_first: false,
            has_coarse: false,
        }
    }

    fn bend(&self, channel: u8) -> EventKind {
        let range = f32::from(self.range.semitones) + f32::from(self.range.cents) / 100.0;
        EventKind::Bend {
            channel,
            semitones: self.wheel * range,
        }
    }

    fn select(&mut self, rpn: (u8, u8)) {
        (self.rpn, self.fine_is_first, self.has_coarse) = (rpn, false, false);
    }

    /// Notes the order of coarse and fine values. Returns whether a coarse value keeps the fine
    /// one, which it resets unless that has just come before it.
    fn keeps_fine(&mut self, entry: DataEntry) -> bool {
        match entry {
            DataEntry::Coarse(_) => {
                self.has_coarse = true;
                std::mem::take(&mut self.fine_is_first)
            }
            DataEntry::Fine(_) => {
                self.fine_is_first = !self.has_coarse;
                true
            }
            DataEntry::Step(_) => true,
        }
    }
}

impl Default for ChannelState {
    fn default() -> Self {
        Self::new(BendRange::default_for(
            ChannelRole::Alone,
            &MidiSettings::default(),
        ))
    }
}

impl MidiDecoder {
    /// Creates a decoder with centred wheels, default ranges and no zones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the settings and passes the events that follow from that to `emit`: zones, and
    /// wheels whose range changes.
    pub fn set_settings(&mut self, settings: &MidiSettings, mut emit: impl FnMut(EventKind)) {
        if self.settings == *settings {
            return;
        }
        let before = std::mem::replace(&mut self.settings, *settings);
        if before.zone != settings.zone {
            for manager in Zones::MANAGERS {
                let members = if settings.zone.map(MpeZone::manager) == Some(manager) {
                    Zones::MAX_MEMBERS
                } else {
                    0
                };
                if self.zones.members(manager) != members {
                    self.configure_zone(manager, members)
                        .into_iter()
                        .for_each(&mut emit);
                }
            }
        }
        if before.bend_range_semitones != settings.bend_range_semitones {
            for channel in 0..16 {
                let role = self.zones.role(channel);
                if !matches!(role, ChannelRole::Member(_)) {
                    let state = &mut self.channels[usize::from(channel)];
                    state.range = BendRange::default_for(role, settings);
                    if state.wheel != 0.0 {
                        emit(state.bend(channel));
                    }
                }
            }
        }
    }

    /// Decodes a MIDI message (status and data bytes); `None` if it has no effect on instruments.
    pub fn decode_bytes(&mut self, message: &[u8]) -> Option<EventKind> {
        let (&status, data) = message.split_first()?;
        let channel = status & 15;
        let state = &mut self.channels[usize::from(channel)];
        let unit = |value: u8| f32::from(value) / 127.0;
        let data = match status {
            0xC0..0xE0 => data.get(..1)?,
            0x80..0xF0 => data.get(..2)?,
            0xF0 => return self.decode_sys_ex(data),
            _ => return None,
        };
        if data.iter().any(|data| *data > 127) {
            return None;
        }
        Some(match (status >> 4, data) {
            // A note-on of velocity 0 is a note-off, which allows running status for both.
            (0x9, &[key, 0]) => EventKind::NoteOff {
                channel,
                key,
                velocity: 0.5,
            },
            (0x9, &[key, velocity]) => EventKind::NoteOn {
                channel,
                key,
                velocity: unit(velocity),
            },
            (0x8, &[key, velocity]) => EventKind::NoteOff {
                channel,
                key,
                velocity: unit(velocity),
            },
            (0xA, &[key, value]) => EventKind::PolyPressure {
                channel,
                key,
                value: unit(value),
            },
            (0xB, &[number, value]) => return self.controller(channel, number, value),
            (0xD, &[value]) => EventKind::Pressure {
                channel,
                value: unit(value),
            },
            (0xE, &[low, high]) => {
                state.wheel = (f32::from(join(low, high)) - 8_192.0) / 8_192.0;
                state.bend(channel)
            }
            _ => return None,
        })
    }

    fn controller(&mut self, channel: u8, number: u8, raw: u8) -> Option<EventKind> {
        let state = &mut self.channels[usize::from(channel)];
        match number {
            controller::RPN_COARSE => state.select((raw, state.rpn.1)),
            controller::RPN_FINE => state.select((state.rpn.0, raw)),
            controller::NRPN_COARSE | controller::NRPN_FINE => state.select(NO_RPN),
            controller::DATA_ENTRY => return self.enter(channel, DataEntry::Coarse(raw)),
            controller::DATA_ENTRY_FINE => return self.enter(channel, DataEntry::Fine(raw)),
            controller::DATA_INCREMENT => return self.enter(channel, DataEntry::Step(1)),
            controller::DATA_DECREMENT => return self.enter(channel, DataEntry::Step(-1)),
            controller::TIMBRE => {
                return Some(EventKind::Controller {
                    channel,
                    number,
                    value: centred(raw),
                });
            }
            _ => {
                if number == controller::RESET {
                    for channel in self.zones.affected(channel).iter() {
                        let state = &mut self.channels[usize::from(channel)];
                        state.wheel = 0.0;
                        state.select(NO_RPN);
                    }
                }
                return Some(EventKind::Controller {
                    channel,
                    number,
                    value: f32::from(raw) / 127.0,
                });
            }
        }
        None
    }

    /// Enters a value for the selected parameter.
    fn enter(&mut self, channel: u8, entry: DataEntry) -> Option<EventKind> {
        let state = &mut self.channels[usize::from(channel)];
        let keeps_fine = state.keeps_fine(entry);
        match state.rpn {
            BEND_RANGE_RPN => {
                let mut range = state.range;
                range.enter(entry, keeps_fine);
                Some(self.set_range(channel, range))
            }
            FINE_TUNING_RPN => {
                state.tuning.enter_fine(entry, keeps_fine);
                Some(EventKind::Tuning {
                    channel,
                    semitones: state.tuning.semitones(),
                })
            }
            COARSE_TUNING_RPN => {
                state.tuning.enter_coarse(entry);
                Some(EventKind::Tuning {
                    channel,
                    semitones: state.tuning.semitones(),
                })
            }
            ZONE_RPN => match entry {
                DataEntry::Coarse(members) => self.configure_zone(channel, members),
                DataEntry::Fine(_) | DataEntry::Step(_) => None,
            },
            _ => None,
        }
    }

    /// Sets the range of a wheel and of its peers, which applies to them from their next movement
    /// on.
    fn set_range(&mut self, channel: u8, range: BendRange) -> EventKind {
        for peer in self.zones.peers(channel).iter() {
            self.channels[usize::from(peer)].range = range;
        }
        self.channels[usize::from(channel)].bend(channel)
    }

    fn configure_zone(&mut self, manager: u8, members: u8) -> Option<EventKind> {
        let changed = self.zones.configure(manager, members)?;
        for channel in 0..16 {
            let state = &mut self.channels[usize::from(channel)];
            if changed.contains(channel) {
                state.wheel = 0.0;
            }
            if changed.contains(channel) || self.zones.affected(manager).contains(channel) {
                state.range = BendRange::default_for(self.zones.role(channel), &self.settings);
            }
        }
        Some(EventKind::Zone { manager, members })
    }

    /// Decodes a system-exclusive message without its status byte, with or without its end byte.
    fn decode_sys_ex(&mut self, data: &[u8]) -> Option<EventKind> {
        let data = data.strip_suffix(&[0xF7]).unwrap_or(data);
        if data.iter().any(|data| *data > 127) {
            return None;
        }
        match *data {
            // Universal, real-time, of any device: master volume, fine and coarse tuning.
            [0x7F, _, 0x04, 0x01, low, high] => Some(EventKind::MasterVolume {
                value: f32::from(join(low, high)) / 16_383.0,
            }),
            [0x7F, _, 0x04, 0x03, low, high] => {
                self.master.fine = join(low, high);
                Some(EventKind::MasterTuning {
                    semitones: self.master.semitones(),
                })
            }
            [0x7F, _, 0x04, 0x04, _, semitones] => {
                self.master.coarse = semitones;
                Some(EventKind::MasterTuning {
                    semitones: self.master.semitones(),
                })
            }
            // General MIDI on, off and level 2 on; reset of GS and XG.
            [0x7E, _, 0x09, 0x01..=0x03]
            | [0x41, _, 0x42, 0x12, 0x40 | 0x00, 0x00, 0x7F, _, _]
            | [0x43, 0x10..=0x1F, 0x4C, 0x00, 0x00, 0x7E | 0x7F, 0x00] => {
                for channel in 0..16 {
                    let range = BendRange::default_for(self.zones.role(channel), &self.settings);
                    self.channels[usize::from(channel)] = ChannelState::new(range);
                }
                self.master = Tuning::default();
                Some(EventKind::SystemReset)
            }
            _ => None,
        }
    }
}

/// Joins the low and high 7 bits of a number.
fn join(low: u8, high: u8) -> u16 {
    u16::from(high) << 7 | u16::from(low)
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
            Some(EventKind::NoteOn {
                channel: 3,
                key: 60,
                velocity: 1.0
            })
        );
        assert_eq!(
            decoder.decode_bytes(&[0x93, 60, 0]),
            Some(EventKind::NoteOff {
                channel: 3,
                key: 60,
                velocity: 0.5
            })
        );
        assert_eq!(
            decoder.decode_bytes(&[0xB0, 1, 127]),
            Some(EventKind::Controller {
                channel: 0,
                number: 1,
                value: 1.0
            })
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
    fn parameter(
        decoder: &mut MidiDecoder,
        channel: u8,
        number: u8,
        value: u8,
    ) -> Option<EventKind> {
        decoder.decode_bytes(&[0xB0 | channel, 101, 0]);
        decoder.decode_bytes(&[0xB0 | channel, 100, number]);
        decoder.decode_bytes(&[0xB0 | channel, 6, value])
    }

    #[test]
    fn rpn_6_sets_zones_and_ranges() {
        let mut decoder = MidiDecoder::new();
        decoder.decode_bytes(&[0xE2, 0, 0]);
        assert_eq!(
            parameter(&mut decoder, 0, 6, 3),
            Some(EventKind::Zone {
                manager: 0,
                members: 3
            })
        );
        // Wheels of a new zone are centred.
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 64]), 0.0);
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -48.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        assert_eq!(bend(&mut decoder, &[0xE4, 0, 0]), -2.0);
        // A message of one member applies to all; the manager has its own range.
        assert_eq!(
            parameter(&mut decoder, 1, 0, 24),
            Some(EventKind::Bend {
                channel: 1,
                semitones: 0.0
            })
        );
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -24.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        parameter(&mut decoder, 0, 0, 12);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -12.0);
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -24.0);
        // The upper zone takes members from the lower one, and a removed zone resets its ranges.
        assert_eq!(
            parameter(&mut decoder, 15, 6, 12),
            Some(EventKind::Zone {
                manager: 15,
                members: 12
            })
        );
        assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -48.0);
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -24.0);
        assert_eq!(
            parameter(&mut decoder, 0, 6, 0),
            Some(EventKind::Zone {
                manager: 0,
                members: 0
            })
        );
        assert_eq!(bend(&mut decoder, &[0xE2, 0, 0]), -2.0);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
        // Other channels cannot manage zones, and no zone has more than 15 members.
        assert_eq!(parameter(&mut decoder, 7, 6, 3), None);
        assert_eq!(parameter(&mut decoder, 0, 6, 16), None);
    }

    /// Sends controllers of channel 1 and returns the last event.
    fn controllers(decoder: &mut MidiDecoder, messages: &[(u8, u8)]) -> Option<EventKind> {
        messages.iter().fold(None, |_, &(number, value)| {
            decoder.decode_bytes(&[0xB0, number, value])
        })
    }

    #[test]
    fn rpn_1_and_2_tune_the_channel() {
        let mut decoder = MidiDecoder::new();
        let tuning = |semitones| {
            Some(EventKind::Tuning {
                channel: 0,
                semitones,
            })
        };
        // 60 00: half of the way up.
        assert_eq!(
            controllers(&mut decoder, &[(101, 0), (100, 1), (6, 0x60)]),
            tuning(0.5)
        );
        assert_eq!(
            controllers(&mut decoder, &[(38, 1)]),
            tuning(0.5 + 1.0 / 8192.0)
        );
        assert_eq!(
            controllers(&mut decoder, &[(100, 2), (6, 64 - 12)]),
            tuning(-11.5 + 1.0 / 8192.0)
        );
        assert_eq!(
            controllers(&mut decoder, &[(38, 5)]),
            tuning(-11.5 + 1.0 / 8192.0),
            "semitones have no fine part"
        );
        assert_eq!(
            controllers(&mut decoder, &[(96, 0)]),
            tuning(-10.5 + 1.0 / 8192.0)
        );
        // A coarse value resets the fine one.
        assert_eq!(
            controllers(&mut decoder, &[(100, 1), (6, 0)]),
            tuning(-12.0)
        );
        assert_eq!(
            controllers(&mut decoder, &[(97, 0), (96, 0)]),
            tuning(-12.0 + 1.0 / 8192.0)
        );
        assert_eq!(
            controllers(&mut decoder, &[(6, 127), (38, 127), (96, 0)]),
            tuning(-11.0 + 8191.0 / 8192.0)
        );
    }

    #[test]
    fn only_selected_registered_parameters_are_entered() {
        for selection in [
            &[(101, 127), (100, 127)][..],
            &[(101, 0)],
            &[(100, 0)],
            &[(101, 0), (100, 0), (99, 0)],
            &[(101, 0), (100, 1), (98, 1)],
            &[(99, 0), (98, 1)],
            &[(101, 0), (100, 3)],
            &[(101, 0), (100, 1), (121, 0)],
        ] {
            let mut decoder = MidiDecoder::new();
            controllers(&mut decoder, selection);
            for entry in [(6, 12), (38, 12), (96, 0), (97, 0)] {
                assert_eq!(controllers(&mut decoder, &[entry]), None, "{selection:?}");
            }
        }
    }

    #[test]
    fn bend_range_is_entered_in_any_order_and_in_steps() {
        let mut decoder = MidiDecoder::new();
        decoder.decode_bytes(&[0xE0, 0, 0]);
        let bend = |semitones| {
            Some(EventKind::Bend {
                channel: 0,
                semitones,
            })
        };
        assert_eq!(
            controllers(&mut decoder, &[(101, 0), (100, 0), (38, 50), (6, 7)]),
            bend(-7.5)
        );
        assert_eq!(controllers(&mut decoder, &[(6, 3)]), bend(-3.0));
        assert_eq!(controllers(&mut decoder, &[(97, 0)]), bend(-2.99));
        assert_eq!(controllers(&mut decoder, &[(96, 0), (96, 0)]), bend(-3.01));
    }

    #[test]
    fn universal_messages_tune_and_reset() {
        let mut decoder = MidiDecoder::new();
        let master = |semitones| Some(EventKind::MasterTuning { semitones });
        assert_eq!(
            decoder.decode_bytes(&[0xF0, 0x7F, 0x7F, 4, 3, 0, 0x60, 0xF7]),
            master(0.5)
        );
        assert_eq!(
            decoder.decode_bytes(&[0xF0, 0x7F, 0x10, 4, 4, 0, 61, 0xF7]),
            master(-2.5)
        );
        let volume = EventKind::MasterVolume { value: 1.0 };
        assert_eq!(
            decoder.decode_bytes(&[0xF0, 0x7F, 0x7F, 4, 1, 127, 127, 0xF7]),
            Some(volume)
        );
        let resets: [&[u8]; 6] = [
            &[0xF0, 0x7E, 0x7F, 9, 1, 0xF7],
            &[0xF0, 0x7E, 0x7F, 9, 2, 0xF7],
            &[0xF0, 0x7E, 0x7F, 9, 3, 0xF7],
            &[0xF0, 0x41, 0x10, 0x42, 0x12, 0x40, 0, 0x7F, 0, 0x41, 0xF7],
            &[0xF0, 0x43, 0x10, 0x4C, 0, 0, 0x7E, 0, 0xF7],
            &[0xF0, 0x43, 0x10, 0x4C, 0, 0, 0x7E, 0],
        ];
        for reset in resets {
            parameter(&mut decoder, 3, 0, 12);
            assert_eq!(
                decoder.decode_bytes(reset),
                Some(EventKind::SystemReset),
                "{reset:x?}"
            );
            assert_eq!(bend(&mut decoder, &[0xE3, 0, 0]), -2.0);
            assert_eq!(
                decoder.decode_bytes(&[0xF0, 0x7F, 0x7F, 4, 4, 0, 65, 0xF7]),
                master(1.0)
            );
        }
        let others: [&[u8]; 4] = [
            &[0xF0, 0xF7],
            &[0xF0, 0x7E, 0x7F, 6, 1, 0xF7],
            &[0xF0, 0x7F, 0x7F, 4, 4, 0, 200, 0xF7],
            &[0xF0, 0x7F, 0x7F, 4, 4, 0],
        ];
        assert!(
            others
                .into_iter()
                .all(|message| decoder.decode_bytes(message).is_none())
        );
    }

    #[test]
    fn settings_apply_until_the_source_sends_its_own() {
        let mut decoder = MidiDecoder::new();
        let mut events = Vec::new();
        let settings = MidiSettings {
            bend_range_semitones: Some(12.5),
            zone: Some(MpeZone::Lower),
        };
        decoder.set_settings(&settings, |event| events.push(event));
        assert_eq!(
            events[0],
            EventKind::Zone {
                manager: 0,
                members: 15
            }
        );
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -12.5);
        assert_eq!(bend(&mut decoder, &[0xE1, 0, 0]), -48.0);
        // The source says otherwise.
        parameter(&mut decoder, 0, 0, 3);
        parameter(&mut decoder, 5, 0, 24);
        assert_eq!(
            (
                bend(&mut decoder, &[0xE0, 0, 0]),
                bend(&mut decoder, &[0xE1, 0, 0])
            ),
            (-3.0, -24.0)
        );
        assert_eq!(
            parameter(&mut decoder, 0, 6, 4),
            Some(EventKind::Zone {
                manager: 0,
                members: 4
            })
        );
        assert_eq!(
            (
                bend(&mut decoder, &[0xE0, 0, 0]),
                bend(&mut decoder, &[0xE9, 0, 0])
            ),
            (-12.5, -12.5)
        );
        // No change, no events; another zone removes the first.
        events.clear();
        decoder.set_settings(&settings, |event| events.push(event));
        assert_eq!(events, []);
        decoder.set_settings(
            &MidiSettings {
                zone: Some(MpeZone::Upper),
                ..settings
            },
            |event| events.push(event),
        );
        let zones =
            [(0, 0), (15, 15)].map(|(manager, members)| EventKind::Zone { manager, members });
        assert_eq!(events, zones);
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -48.0);
        events.clear();
        decoder.set_settings(&MidiSettings::default(), |event| events.push(event));
        assert_eq!(
            events[0],
            EventKind::Zone {
                manager: 15,
                members: 0
            }
        );
        assert_eq!(bend(&mut decoder, &[0xE0, 0, 0]), -2.0);
    }

    #[test]
    fn invalid_messages_have_no_effect() {
        let mut decoder = MidiDecoder::new();
        let invalid: [&[u8]; 8] = [
            &[],
            &[60, 64],
            &[0x90],
            &[0x90, 60],
            &[0x90, 200, 64],
            &[0xB0, 7, 128],
            &[0xD0, 255],
            &[0xF0, 1, 2],
        ];
        assert!(
            invalid
                .into_iter()
                .all(|message| decoder.decode_bytes(message).is_none())
        );
        assert_eq!(
            decoder.decode_bytes(&[0xD0, 127, 9]),
            Some(EventKind::Pressure {
                channel: 0,
                value: 1.0
            })
        );
    }

    #[test]
    fn timbre_is_centred_at_64() {
        let mut decoder = MidiDecoder::new();
        for (raw, expected) in [(0, 0.0), (32, 0.25), (64, 0.5), (127, 1.0)] {
            let event = EventKind::Controller {
                channel: 0,
                number: controller::TIMBRE,
                value: expected,
            };
            assert_eq!(decoder.decode_bytes(&[0xB0, 74, raw]), Some(event));
        }
    }
}
