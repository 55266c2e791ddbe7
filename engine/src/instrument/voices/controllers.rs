//! Controllers, pedals and modes of the voices.

use super::super::event::controller;
use super::super::performance::PlayMode;
use super::super::voice::Hold;
use super::super::zone::ChannelSet;
use super::Voices;
use super::slot::{ModulationSource, SlotState, VoiceSlot, responding};

impl Voices {
    /// Applies a controller of a channel, and of its members if it manages a zone.
    pub(super) fn controller(&mut self, t: u64, channel: u8, number: u8, value: f32) {
        let affected = self.channels.zones().affected(channel);
        let is_down = value >= 0.5;
        match number {
            controller::SUSTAIN => {
                self.channels[channel].pedal = is_down;
                self.release_unheld(t, affected);
            }
            controller::SOSTENUTO => self.sostenuto(t, channel, is_down),
            controller::SOFT => self.channels[channel].soft = is_down,
            controller::LEGATO => {
                self.change_mode(t, |voices| voices.channels[channel].legato = is_down)
            }
            controller::ALL_SOUND_OFF => {
                affected
                    .iter()
                    .for_each(|channel| self.channels[channel].held.clear());
                self.silence(t, |channel| affected.contains(channel));
            }
            controller::ALL_NOTES_OFF.. => {
                for channel in affected.iter() {
                    self.channels[channel].held.clear();
                    let Self {
                        slots, channels, ..
                    } = self;
                    for slot in
                        responding(slots, channel).filter(|slot| slot.voice.hold == Hold::Key)
                    {
                        slot.key_up(t, channels);
                    }
                }
                let mode = match number {
                    controller::MONO => Some(PlayMode::Mono),
                    controller::POLY => Some(PlayMode::Poly),
                    _ => return,
                };
                self.change_mode(t, |voices| {
                    affected
                        .iter()
                        .for_each(|channel| voices.channels[channel].mode = mode);
                });
            }
            controller::RESET => self.change_mode(t, |voices| {
                for channel in affected.iter() {
                    let change = voices.change(t, channel);
                    voices.channels[channel].reset(change);
                    for slot in voices.responding(channel) {
                        slot.voice.set_pressure(t, 0.0);
                    }
                }
                for slot in &mut voices.slots {
                    slot.sostenuto = slot.sostenuto.filter(|pedal| !affected.contains(*pedal));
                }
                voices.release_unheld(t, affected);
            }),
            _ => {
                let change = self.change(t, channel);
                self.channels[channel].controller(change, number, f64::from(value));
            }
        }
    }

    /// Moves a sostenuto pedal: on its way down it takes hold of the notes whose keys are held.
    fn sostenuto(&mut self, t: u64, pedal: u8, is_down: bool) {
        if self.channels[pedal].sostenuto == is_down {
            return;
        }
        self.channels[pedal].sostenuto = is_down;
        let affected = self.channels.zones().affected(pedal);
        let Self {
            slots, channels, ..
        } = self;
        for channel in affected.iter() {
            for slot in responding(slots, channel) {
                if is_down && slot.voice.hold == Hold::Key {
                    slot.sostenuto = Some(pedal);
                } else if !is_down && slot.sostenuto == Some(pedal) {
                    slot.sostenuto = None;
                    slot.pedal_up(t, channels);
                }
            }
        }
    }

    /// Releases notes that were held only by a pedal that is now up.
    fn release_unheld(&mut self, t: u64, affected: ChannelSet) {
        let Self {
            slots, channels, ..
        } = self;
        for channel in affected.iter() {
            for slot in responding(slots, channel) {
                slot.pedal_up(t, channels);
            }
        }
    }

    /// Fades out all notes of channels.
    fn silence(&mut self, t: u64, is_affected: impl Fn(u8) -> bool) {
        for slot in &mut self.slots {
            if slot.state == SlotState::Playing && is_affected(slot.voice.channel) {
                slot.fade_out(t, &self.channels);
            }
        }
    }

    /// Silences and resets all channels.
    pub(super) fn system_reset(&mut self, t: u64) {
        self.silence(t, |_| true);
        let change = self.change_of_all(t);
        self.channels.reset(change);
    }

    /// Releases notes on channels whose role in zones changes; they keep their modulation.
    pub(super) fn zone(&mut self, t: u64, manager: u8, members: u8) {
        let mut zones = self.channels.zones();
        let Some(changed) = zones.configure(manager, members) else {
            return;
        };
        for slot in &mut self.slots {
            if slot.state != SlotState::Free && changed.contains(slot.voice.channel) {
                slot.voice.release(t);
                slot.modulation = ModulationSource::Constant(slot.values(t, &self.channels));
            }
        }
        self.channels.set_zones(zones, changed);
    }

    /// Makes a change that may change the modes of channels. Where that is no longer polyphonic,
    /// keeps one note of the channel, preferably a held one and that of the last key, and releases
    /// the others.
    pub(super) fn change_mode(&mut self, t: u64, change: impl FnOnce(&mut Self)) {
        let was_poly: [bool; 16] =
            std::array::from_fn(|channel| self.mode(channel as u8) == PlayMode::Poly);
        change(self);
        for channel in (0..16).filter(|channel| was_poly[usize::from(*channel)]) {
            if self.mode(channel) == PlayMode::Poly {
                continue;
            }
            let Self {
                slots, channels, ..
            } = self;
            let last = channels[channel]
                .held
                .last()
                .map(|held| (held.key, held.id));
            let rank = |slot: &VoiceSlot| {
                let note = (slot.voice.key, slot.id);
                (slot.voice.hold, Some(note) == last, slot.started_at, note)
            };
            let Some(stays) = responding(slots, channel).map(|slot| rank(slot)).max() else {
                continue;
            };
            for slot in responding(slots, channel).filter(|slot| rank(slot) != stays) {
                slot.release(t, channels);
            }
        }
    }
}
