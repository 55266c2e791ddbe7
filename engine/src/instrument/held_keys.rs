//! Keys that are held on a channel.

/// Returns whether an event for the note `id` is for a note that began with the id `of_note`.
/// Events without an id are for all notes of their key, and notes without an id hear all events of
/// their key.
pub(super) fn is_addressed(of_note: Option<i32>, id: Option<i32>) -> bool {
    id.is_none() || of_note.is_none() || of_note == id
}

/// Held key with its velocity, 0 to 1, and the host's id of its note.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HeldKey {
    pub(super) key: u8,
    pub(super) velocity: f32,
    pub(super) id: Option<i32>,
}

/// Held keys, in the order in which they were pressed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldKeys {
    keys: [HeldKey; Self::MAX],
    len: usize,
}

impl HeldKeys {
    /// More than a player has fingers.
    const MAX: usize = 16;

    pub(super) fn press(&mut self, key: u8, velocity: f32, id: Option<i32>) {
        self.remove(|held| held.key == key && held.id == id);
        if self.len == Self::MAX {
            self.keys.copy_within(1.., 0);
            self.len -= 1;
        }
        self.keys[self.len] = HeldKey { key, velocity, id };
        self.len += 1;
    }

    /// Lifts a key, or of several notes of it those that an event with this id is for.
    pub(super) fn lift(&mut self, key: u8, id: Option<i32>) {
        self.remove(|held| held.key == key && is_addressed(held.id, id));
    }

    fn remove(&mut self, is_removed: impl Fn(&HeldKey) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            if !is_removed(&self.keys[index]) {
                self.keys[kept] = self.keys[index];
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Returns the held key that was pressed last.
    pub(super) fn last(&self) -> Option<HeldKey> {
        self.keys[..self.len].last().copied()
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_keys_come_back_in_order() {
        let mut held = HeldKeys::default();
        for (key, velocity) in [(60, 0.1), (64, 0.2), (67, 0.3), (64, 0.4)] {
            held.press(key, velocity, None);
        }
        assert_eq!(
            held.last(),
            Some(HeldKey {
                key: 64,
                velocity: 0.4,
                id: None
            })
        );
        held.lift(64, None);
        assert_eq!(
            held.last(),
            Some(HeldKey {
                key: 67,
                velocity: 0.3,
                id: None
            })
        );
        held.lift(60, None);
        held.lift(67, None);
        held.lift(67, None);
        assert_eq!(held.last(), None);
        for key in 0..100 {
            held.press(key, 0.5, None);
        }
        assert_eq!(held.last().map(|held| held.key), Some(99));
    }

    #[test]
    fn notes_of_one_key_are_lifted_by_their_ids() {
        let mut held = HeldKeys::default();
        held.press(60, 0.1, Some(1));
        held.press(60, 0.2, Some(2));
        held.lift(60, Some(1));
        assert_eq!(
            held.last(),
            Some(HeldKey {
                key: 60,
                velocity: 0.2,
                id: Some(2)
            })
        );
        held.press(60, 0.3, Some(3));
        held.lift(60, None);
        assert_eq!(held.last(), None);
    }
}
