//! Keys that are held, for models that play by themselves and that notes start and stop.

use crate::instrument::{EventKind, controller};

/// Keys that are held, of all channels together, and the last one that was struck.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldKeys {
    /// A bit for each key.
    held: u128,
    /// Number of strokes so far.
    strokes: u64,
    last: u8,
}

impl HeldKeys {
    /// Receives an event. Returns true if a key was struck.
    pub fn handle(&mut self, event: EventKind) -> bool {
        match event.within_limits() {
            EventKind::NoteOn { key, .. } => {
                self.held |= 1 << key;
                self.strokes += 1;
                self.last = key;
                return true;
            }
            EventKind::NoteOff { key, .. } => self.held &= !(1 << key),
            EventKind::Controller { number: controller::ALL_SOUND_OFF | controller::ALL_NOTES_OFF, .. } => {
                self.held = 0;
            }
            _ => {}
        }
        false
    }

    /// Returns true if a key is held.
    pub fn any(&self) -> bool {
        self.held != 0
    }

    /// Returns the number of strokes so far, and the key of the last one; `None` before the first.
    pub fn last_stroke(&self) -> Option<(u64, u8)> {
        (self.strokes > 0).then_some((self.strokes, self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_until_it_is_released() {
        let on = |key| EventKind::NoteOn { channel: 0, key, velocity: 0.5 };
        let off = |key| EventKind::NoteOff { channel: 0, key, velocity: 0.0 };
        let mut keys = HeldKeys::default();
        assert_eq!((keys.any(), keys.last_stroke()), (false, None));
        assert!(keys.handle(on(60)) && keys.handle(on(127)) && !keys.handle(off(60)));
        assert_eq!((keys.any(), keys.last_stroke()), (true, Some((2, 127))));
        // Without velocity it is a release.
        assert!(!keys.handle(EventKind::NoteOn { channel: 0, key: 127, velocity: 0.0 }));
        assert!(!keys.any());
        assert!(keys.handle(on(0)));
        keys.handle(EventKind::Controller { channel: 3, number: controller::ALL_NOTES_OFF, value: 0.0 });
        assert_eq!((keys.any(), keys.last_stroke()), (false, Some((3, 0))));
    }
}
