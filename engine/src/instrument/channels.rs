//! The 16 MIDI channels with MPE zones.

use super::channel::{Change, Channel, ChannelValues, SMOOTHING_S};
use super::curve::Smooth;
use super::zone::{ChannelSet, Zones};
use std::ops::{Index, IndexMut};

#[derive(Clone, Copy, Debug)]
pub(super) struct Channels {
    each: [Channel; 16],
    zones: Zones,
    /// Tuning of all channels, in semitones.
    tuning: Smooth,
    /// Volume of all channels, 0 to 1.
    volume: Smooth,
}

impl Channels {
    pub(super) fn new(sample_rate: f64) -> Self {
        let smooth = |value| Smooth::new(value, SMOOTHING_S * sample_rate);
        Self {
            each: [Channel::new(sample_rate); 16],
            zones: Zones::default(),
            tuning: smooth(0.0),
            volume: smooth(ChannelValues::REST.volume),
        }
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

    /// Combines given positions of a channel with those of its manager and of all channels.
    pub(super) fn with_manager(&self, own: &ChannelValues, channel: u8, t: u64) -> ChannelValues {
        let values = match self.zones.manager(channel) {
            Some(manager) => own.with_manager(&self[manager].values(t)),
            None => *own,
        };
        ChannelValues {
            bend: values.bend + self.tuning.at(t),
            volume: values.volume * self.volume.at(t),
            ..values
        }
    }

    /// Tunes all channels, in semitones.
    pub(super) fn tune(&mut self, change: Change, semitones: f64) {
        change.apply(&mut self.tuning, semitones);
    }

    /// Sets the volume of all channels, 0 to 1.
    pub(super) fn set_volume(&mut self, change: Change, value: f64) {
        change.apply(&mut self.volume, value);
    }

    /// Resets all channels; zones stay.
    pub(super) fn reset(&mut self, change: Change) {
        self.each
            .iter_mut()
            .for_each(|channel| channel.reset_all(change));
        self.tune(change, 0.0);
        self.set_volume(change, ChannelValues::REST.volume);
    }

    /// Returns whether a sustain pedal holds the notes of a channel.
    pub(super) fn pedal(&self, channel: u8) -> bool {
        self.own_or_manager(channel, |channel| channel.pedal)
    }

    /// Returns whether a soft pedal applies to the notes of a channel.
    pub(super) fn soft(&self, channel: u8) -> bool {
        self.own_or_manager(channel, |channel| channel.soft)
    }

    /// Returns whether a legato pedal applies to the notes of a channel.
    pub(super) fn legato(&self, channel: u8) -> bool {
        self.own_or_manager(channel, |channel| channel.legato)
    }

    fn own_or_manager(&self, channel: u8, has: impl Fn(&Channel) -> bool) -> bool {
        has(&self[channel])
            || self
                .zones
                .manager(channel)
                .is_some_and(|manager| has(&self[manager]))
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
