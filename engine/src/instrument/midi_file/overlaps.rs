//! Overlapping notes of one key.

use super::super::event::EventKind;
use super::TimedEvent;

/// Decides which note-offs end a key that several overlapping notes share.
///
/// A key has one voice, which a further note-on strikes again. As in most players, note-offs end
/// the oldest note first, so that the key ends with the last of them. Where a file has fewer
/// note-offs than note-ons of a key, the first one ends it, so that no note hangs.
pub(super) struct Overlaps {
    /// Number of sounding notes, `[channel * 128 + key]`.
    sounding: Vec<u32>,
    /// Keys whose note-ons and note-offs are pairs.
    is_paired: Vec<bool>,
}

impl Overlaps {
    /// Counts the notes of a part, in order of time.
    pub(super) fn new<'a>(events: impl Iterator<Item = &'a TimedEvent>) -> Self {
        const KEYS: usize = 16 * 128;
        let mut overlaps = Self {
            sounding: vec![0; KEYS],
            is_paired: vec![true; KEYS],
        };
        for event in events {
            overlaps.count(&event.kind);
        }
        for (sounding, is_paired) in overlaps.sounding.iter_mut().zip(&mut overlaps.is_paired) {
            *is_paired = *sounding == 0;
            *sounding = 0;
        }
        overlaps
    }

    /// Counts an event. Returns false if it must not be played: a note-off of a key that a later
    /// note still holds.
    pub(super) fn plays(&mut self, kind: &EventKind) -> bool {
        match self.count(kind) {
            Some((index, left)) => left == 0 || !self.is_paired[index],
            None => true,
        }
    }

    /// Returns the index of a note-off's key, and the number of notes that are left.
    fn count(&mut self, kind: &EventKind) -> Option<(usize, u32)> {
        let index = |channel: u8, key: u8| usize::from(channel & 15) << 7 | usize::from(key & 127);
        match *kind {
            EventKind::NoteOn { channel, key, .. } => {
                self.sounding[index(channel, key)] += 1;
                None
            }
            EventKind::NoteOff { channel, key, .. } => {
                let index = index(channel, key);
                let sounding = &mut self.sounding[index];
                *sounding = sounding.saturating_sub(1);
                Some((index, *sounding))
            }
            _ => None,
        }
    }
}
