//! Zones of MIDI Polyphonic Expression (MPE).

/// Manager channel of the lower zone, whose members follow upwards.
const LOWER: u8 = 0;
/// Manager channel of the upper zone, whose members follow downwards.
const UPPER: u8 = 15;
/// Most members of both zones together.
const MAX_SHARED_MEMBERS: u8 = 14;

/// Zones of MPE 1.1 by their number of members; 0 for no zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Zones {
    lower: u8,
    upper: u8,
}

/// Role of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelRole {
    /// In no zone.
    Alone,
    /// Manager of a zone.
    Manager,
    /// Member of the zone with this manager.
    Member(u8),
}

impl Zones {
    /// Most members of one zone.
    pub const MAX_MEMBERS: u8 = 15;
    /// Channels that can manage a zone.
    pub const MANAGERS: [u8; 2] = [LOWER, UPPER];

    /// Sets up a zone, or removes it if `members` is 0; takes members from the other zone if
    /// necessary. Returns the channels whose role changed, or `None` if the zone is invalid.
    pub fn configure(&mut self, manager: u8, members: u8) -> Option<ChannelSet> {
        if members > Self::MAX_MEMBERS {
            return None;
        }
        let before = *self;
        let left = MAX_SHARED_MEMBERS.saturating_sub(members);
        match manager {
            LOWER => {
                *self = Self {
                    lower: members,
                    upper: self.upper.min(left),
                }
            }
            UPPER => {
                *self = Self {
                    lower: self.lower.min(left),
                    upper: members,
                }
            }
            _ => return None,
        }
        Some(ChannelSet::from_fn(|channel| {
            before.role(channel) != self.role(channel)
        }))
    }

    /// Returns the number of members of a manager.
    pub fn members(&self, manager: u8) -> u8 {
        match manager {
            LOWER => self.lower,
            UPPER => self.upper,
            _ => 0,
        }
    }

    pub fn role(&self, channel: u8) -> ChannelRole {
        if (1..=self.lower).contains(&channel) {
            ChannelRole::Member(LOWER)
        } else if (UPPER - self.upper..UPPER).contains(&channel) {
            ChannelRole::Member(UPPER)
        } else if self.members(channel) > 0 {
            ChannelRole::Manager
        } else {
            ChannelRole::Alone
        }
    }

    /// Returns the manager of a channel, if it is a member.
    pub fn manager(&self, channel: u8) -> Option<u8> {
        match self.role(channel) {
            ChannelRole::Member(manager) => Some(manager),
            _ => None,
        }
    }

    /// Returns the channels to which events of this channel apply: itself, and the members of a
    /// manager.
    pub fn affected(&self, channel: u8) -> ChannelSet {
        ChannelSet::from_fn(|other| other == channel || self.manager(other) == Some(channel))
    }

    /// Returns the channels that share a pitch wheel range: all members of a zone.
    pub fn peers(&self, channel: u8) -> ChannelSet {
        let role = self.role(channel);
        ChannelSet::from_fn(|other| {
            other == channel || matches!(role, ChannelRole::Member(_)) && self.role(other) == role
        })
    }
}

/// Set of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelSet(u16);

impl ChannelSet {
    fn from_fn(is_in: impl Fn(u8) -> bool) -> Self {
        Self(
            (0..16)
                .filter(|&channel| is_in(channel))
                .fold(0, |bits, channel| bits | 1 << channel),
        )
    }

    pub fn contains(self, channel: u8) -> bool {
        self.0 >> (channel & 15) & 1 == 1
    }

    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |&channel| self.contains(channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected(zones: &Zones, channel: u8) -> Vec<u8> {
        zones.affected(channel).iter().collect()
    }

    #[test]
    fn members_are_next_to_their_manager() {
        let mut zones = Zones::default();
        assert_eq!(affected(&zones, 0), [0]);
        let changed = zones.configure(0, 3).unwrap();
        assert_eq!(changed.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let changed = zones.configure(15, 2).unwrap();
        assert_eq!(changed.iter().collect::<Vec<_>>(), [13, 14, 15]);
        assert_eq!(affected(&zones, 0), [0, 1, 2, 3]);
        assert_eq!(affected(&zones, 15), [13, 14, 15]);
        assert_eq!(affected(&zones, 2), [2]);
        assert_eq!(
            (zones.manager(3), zones.manager(4), zones.manager(13)),
            (Some(0), None, Some(15))
        );
        assert_eq!(
            (zones.role(0), zones.role(15), zones.role(7)),
            (
                ChannelRole::Manager,
                ChannelRole::Manager,
                ChannelRole::Alone
            )
        );
        assert_eq!(zones.peers(14).iter().collect::<Vec<_>>(), [13, 14]);
        assert_eq!(zones.peers(15).iter().collect::<Vec<_>>(), [15]);
        assert_eq!(zones.peers(7).iter().collect::<Vec<_>>(), [7]);
        assert_eq!(zones.configure(0, 3).unwrap().iter().count(), 0);
    }

    #[test]
    fn a_new_zone_shrinks_the_other() {
        let mut zones = Zones::default();
        zones.configure(0, 10);
        let changed = zones.configure(15, 7).unwrap();
        assert_eq!((zones.members(0), zones.members(15)), (7, 7));
        assert_eq!(
            changed.iter().collect::<Vec<_>>(),
            [8, 9, 10, 11, 12, 13, 14, 15]
        );
        for members in [14, 15] {
            zones.configure(15, 7);
            zones.configure(0, members);
            assert_eq!((zones.members(0), zones.members(15)), (members, 0));
        }
        assert_eq!(zones.role(15), ChannelRole::Member(0));
        zones.configure(15, 15);
        assert_eq!(
            (zones.members(0), zones.role(0)),
            (0, ChannelRole::Member(15))
        );
        zones.configure(15, 0);
        assert_eq!(zones, Zones::default());
    }

    #[test]
    fn invalid_zones_change_nothing() {
        let mut zones = Zones::default();
        for (manager, members) in [(1, 3), (14, 3), (0, 16), (15, 127), (200, 1)] {
            assert_eq!(zones.configure(manager, members), None);
        }
        assert_eq!(zones, Zones::default());
    }
}
