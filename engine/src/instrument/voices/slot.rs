//! A slot of polyphony, and whose wheels its note follows.

use super::super::channel::ChannelValues;
use super::super::channels::Channels;
use super::super::voice::{Hold, Voice};

#[derive(Clone, Copy, Debug)]
pub(super) struct VoiceSlot {
    pub(super) state: SlotState,
    pub(super) voice: Voice,
    pub(super) follows: Follows,
    /// No frame has shown this note yet.
    pub(super) unheard: bool,
    pub(super) begun_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Free,
    Playing,
    /// Fading out, to be free when a frame has shown gain 0.
    Leaving,
}

/// Whose wheels and faders move a note.
#[derive(Clone, Copy, Debug)]
pub(super) enum Follows {
    /// Its channel's, and those of the zone's manager.
    Channel,
    /// The manager's. The channel of the zone, which may already be set for its next note, counts as it was when this one
    /// was let go.
    Manager(ChannelValues),
    /// Nobody's: its channel has another place among zones since.
    Nobody(ChannelValues),
}

impl VoiceSlot {
    /// What moves the note at time `t`.
    pub(super) fn values(&self, t: u64, channels: &Channels) -> ChannelValues {
        match &self.follows {
            Follows::Channel => channels.values(self.voice.channel, t),
            Follows::Manager(own) => channels.under_manager(own, self.voice.channel, t),
            Follows::Nobody(values) => *values,
        }
    }

    /// How much the note belongs to those who play it: of two, the one that is held more firmly, or else began later.
    pub(super) fn firmness(&self) -> (Hold, u64) {
        (self.voice.hold, self.begun_at)
    }

    /// The key comes up: the pedal takes over, or nothing does.
    pub(super) fn let_go(&mut self, t: u64, channels: &Channels) {
        if channels.pedal(self.voice.channel) {
            self.voice.hold = Hold::Pedal;
        } else {
            self.release(t, channels);
        }
    }

    pub(super) fn release(&mut self, t: u64, channels: &Channels) {
        self.voice.release(t);
        self.part_from_channel(t, channels);
    }

    pub(super) fn leave(&mut self, t: u64, channels: &Channels) {
        if self.unheard {
            self.state = SlotState::Free;
            return;
        }
        self.state = SlotState::Leaving;
        self.voice.steal(t);
        self.part_from_channel(t, channels);
    }

    /// In a zone, the channel is now free for another note.
    fn part_from_channel(&mut self, t: u64, channels: &Channels) {
        let channel = self.voice.channel;
        if matches!(self.follows, Follows::Channel) && channels.zones().manager(channel).is_some() {
            self.follows = Follows::Manager(channels[channel].values(t));
        }
    }
}

/// The notes of a channel that still answer to their keys.
pub(super) fn answering(slots: &mut [VoiceSlot], channel: u8) -> impl Iterator<Item = &mut VoiceSlot> {
    slots.iter_mut().filter(move |slot| {
        slot.state == SlotState::Playing
            && slot.voice.channel == channel
            && matches!(slot.follows, Follows::Channel)
            && !slot.voice.is_fading()
    })
}
