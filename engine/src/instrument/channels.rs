//! The 16 MIDI channels, and what a zone's manager adds to its members.

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

    /// Changes the zones; the channels whose place that changes begin anew.
    pub(super) fn set_zones(&mut self, zones: Zones, changed: ChannelSet) {
        self.zones = zones;
        for channel in changed.iter() {
            self[channel].settle_anew();
        }
    }

    /// What moves a note of this channel at time `t`.
    pub(super) fn values(&self, channel: u8, t: u64) -> ChannelValues {
        self.under_manager(&self[channel].values(t), channel, t)
    }

    /// The same for a note whose own channel is taken to be at `own`.
    pub(super) fn under_manager(&self, own: &ChannelValues, channel: u8, t: u64) -> ChannelValues {
        match self.zones.manager(channel) {
            Some(manager) => own.under(&self[manager].values(t)),
            None => *own,
        }
    }

    /// Whether a sustain pedal holds the notes of this channel.
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
