//! Slots of polyphony.

use super::super::channel::ChannelValues;
use super::super::channels::Channels;
use super::super::held_keys::is_addressed;
use super::super::voice::{Hold, Voice};

#[derive(Clone, Copy, Debug)]
pub(super) struct VoiceSlot {
    pub(super) state: SlotState,
    pub(super) voice: Voice,
    pub(super) modulation: ModulationSource,
    /// The host's id of the note.
    pub(super) id: Option<i32>,
    /// Channel whose sostenuto pedal holds the note.
    pub(super) sostenuto: Option<u8>,
    /// No frame has output this note yet.
    pub(super) pending: bool,
    pub(super) started_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Free,
    Playing,
    /// Fading out; becomes free after a frame with gain 0.
    FadingOut,
}

/// Source of the wheel and fader positions of a note.
#[derive(Clone, Copy, Debug)]
pub(super) enum ModulationSource {
    /// Its channel and the zone's manager.
    Channel,
    /// The manager. The channel may already be set for its next note, so its positions are those at
    /// the release.
    Manager(ChannelValues),
    /// Constant positions, because its channel has changed its role in zones.
    Constant(ChannelValues),
}

impl VoiceSlot {
    /// Returns the positions that apply to the note at time `t`.
    pub(super) fn values(&self, t: u64, channels: &Channels) -> ChannelValues {
        match &self.modulation {
            ModulationSource::Channel => channels.values(self.voice.channel, t),
            ModulationSource::Manager(own) => channels.with_manager(own, self.voice.channel, t),
            ModulationSource::Constant(values) => *values,
        }
    }

    /// Returns the priority of the note: notes that are held count more, then later ones.
    pub(super) fn priority(&self) -> (Hold, u64) {
        (self.voice.hold, self.started_at)
    }

    /// Returns whether an event for the note `id` of a key is for this note.
    pub(super) fn is_addressed(&self, key: u8, id: Option<i32>) -> bool {
        self.voice.key == key && is_addressed(self.id, id)
    }

    /// Handles key up: the note is held by a pedal or released.
    pub(super) fn key_up(&mut self, t: u64, channels: &Channels) {
        self.voice.hold = Hold::Pedal;
        self.pedal_up(t, channels);
    }

    /// Releases the note if only a pedal held it that is now up.
    pub(super) fn pedal_up(&mut self, t: u64, channels: &Channels) {
        let is_held = channels.pedal(self.voice.channel) || self.sostenuto.is_some();
        if self.voice.hold == Hold::Pedal && !is_held {
            self.release(t, channels);
        }
    }

    /// Changes the note that the voice plays.
    pub(super) fn assign(&mut self, key: u8, id: Option<i32>) {
        if self.voice.key != key {
            self.sostenuto = None;
        }
        self.id = id;
    }

    pub(super) fn release(&mut self, t: u64, channels: &Channels) {
        self.voice.release(t);
        self.detach_from_channel(t, channels);
    }

    pub(super) fn fade_out(&mut self, t: u64, channels: &Channels) {
        if self.pending {
            self.state = SlotState::Free;
            return;
        }
        self.state = SlotState::FadingOut;
        self.voice.steal(t);
        self.detach_from_channel(t, channels);
    }

    /// In a zone, the channel is free for another note after a release.
    fn detach_from_channel(&mut self, t: u64, channels: &Channels) {
        let channel = self.voice.channel;
        if matches!(self.modulation, ModulationSource::Channel)
            && channels.zones().manager(channel).is_some()
        {
            self.modulation = ModulationSource::Manager(channels[channel].values(t));
        }
    }
}

/// Iterates over the notes of a channel that still respond to their keys.
pub(super) fn responding(
    slots: &mut [VoiceSlot],
    channel: u8,
) -> impl Iterator<Item = &mut VoiceSlot> {
    slots.iter_mut().filter(move |slot| {
        slot.state == SlotState::Playing
            && slot.voice.channel == channel
            && matches!(slot.modulation, ModulationSource::Channel)
            && !slot.voice.is_fading()
    })
}
