//! The 16 MIDI channels with MPE zones.

use super::channel::{Channel, ChannelValues};
use super::zone::{ChannelSet, Zones};
use std::ops::{Index, IndexMut};

#[derive(Clone, Copy, Debug)]
pub(super) struct Channels {
    each: [Channel; 16],
    zones: Zones,
}

impl Channels {
    pub(super) fn new(sample_rate: f64) -> Self {
        Self { each: [Channel::new(sample_rate); 16], zones: Zones::default() }
    }

    pub(super) fn zones(&self) -> Zones {
        self.zones
    }

    /// Changes the zones and resets channels whose role changes.
    pub(super) fn set_zones(&mut self, zones: Zones, changed: ChannelSet) {
        self.zones = zones;
        for channel in changed.iter() {
            self[channel].reset_for_zone();
        }
    }

    /// Returns the positions that apply to notes of a channel at time `t`.
    pub(super) fn values(&self, channel: u8, t: u64) -> ChannelValues {
        self.with_manager(&self[channel].values(t), channel, t)
    }

    /// Combines given positions of a channel with those of its manager.
    pub(super) fn with_manager(&self, own: &ChannelValues, channel: u8, t: u64) -> ChannelValues {
        match self.zones.manager(channel) {
            Some(manager) => own.with_manager(&self[manager].values(t)),
            None => *own,
        }
    }

    /// Returns whether a sustain pedal holds the notes of a channel.
    pub(super) fn pedal(&self, channel: u8) -> bool {
        self[channel].pedal || self.zones.manager(channel).is_some_and(|manager| self[manager].pedal)
    }
}

impl Index<u8> for Channels {
    type Output = Channel;

    fn index(&self, channel: u8) -> &Channel {
        &self.each[usize::from(channel & 15)]
    }
}

impl IndexMut<u8> for Channels {
    fn index_mut(&mut self, channel: u8) -> &mut Channel {
        &mut self.each[usize::from(channel & 15)]
    }
}
