//! Keys that are held, for models that play by themselves and that notes start and stop.

use crate::instrument::{EventKind, controller};

/// Keys that are held, of all channels together, and the key that the model plays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldKeys {
    /// A bit for each key.
    held: u128,
    /// Number of times that the model began anew.
    begun: u64,
    /// Key that began it last.
    key: Option<u8>,
}

impl HeldKeys {
    /// Receives an event. Returns true if the model begins anew: with a key, or with none after all sound was ended.
    pub fn handle(&mut self, event: EventKind) -> bool {
        match event.within_limits() {
            EventKind::NoteOn { key, .. } => {
                self.held |= 1 << key;
                self.begin(Some(key))
            }
            EventKind::NoteOff { key, .. } => {
                self.held &= !(1 << key);
                false
            }
            EventKind::Controller { number: controller::ALL_SOUND_OFF, .. } => {
                self.held = 0;
                self.begin(None)
            }
            EventKind::Controller { number: controller::ALL_NOTES_OFF, .. } => {
                self.held = 0;
                false
            }
            _ => false,
        }
    }

    fn begin(&mut self, key: Option<u8>) -> bool {
        self.key = key;
        self.begun += 1;
        true
    }

    /// Returns true if a key is held.
    pub fn any(&self) -> bool {
        self.held != 0
    }

    /// Returns the number of times that the model began anew, and the key of the last time.
    pub fn beginning(&self) -> (u64, Option<u8>) {
        (self.begun, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_until_it_is_released() {
        let on = |key| EventKind::NoteOn { channel: 0, key, velocity: 0.5 };
        let off = |key| EventKind::NoteOff { channel: 0, key, velocity: 0.0 };
        let control = |number| EventKind::Controller { channel: 3, number, value: 0.0 };
        let mut keys = HeldKeys::default();
        assert_eq!((keys.any(), keys.beginning()), (false, (0, None)));
        assert!(keys.handle(on(60)) && keys.handle(on(127)) && !keys.handle(off(60)));
        assert_eq!((keys.any(), keys.beginning()), (true, (2, Some(127))));
        // Without velocity it is a release.
        assert!(!keys.handle(EventKind::NoteOn { channel: 0, key: 127, velocity: 0.0 }));
        assert!(!keys.any());
        assert!(keys.handle(on(0)) && !keys.handle(control(controller::ALL_NOTES_OFF)));
        assert_eq!((keys.any(), keys.beginning()), (false, (3, Some(0))));
        assert!(keys.handle(on(1)) && keys.handle(control(controller::ALL_SOUND_OFF)));
        assert_eq!((keys.any(), keys.beginning()), (false, (5, None)));
    }
}
