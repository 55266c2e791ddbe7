//! Keys that are held, for models that play by themselves and that notes start and stop.

use crate::instrument::{EventKind, NoteCounts, controller};

/// Keys that are held, of all channels together, and the key that the model plays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldKeys {
    /// Keys that are down.
    down: NoteCounts,
    /// A bit for each key that a sustain pedal holds.
    sustained: u128,
    /// A bit for each channel whose sustain pedal is down. It holds the keys of all channels.
    pedals: u16,
    /// A bit for each key that a sostenuto pedal holds.
    captured: u128,
    /// A bit for each channel whose sostenuto pedal is down.
    sostenuto: u16,
    /// Number of times that the model began anew.
    begun: u64,
    /// Key that began it last.
    key: Option<u8>,
}

impl HeldKeys {
    /// Receives an event. Returns true if the model begins anew: with a key, or with none after all
    /// sound was ended.
    pub fn handle(&mut self, event: EventKind) -> bool {
        let (event, id) = event.within_limits().without_id();
        match event {
            EventKind::NoteOn { key, .. } => {
                self.down.press(key, id);
                self.begin(Some(key))
            }
            EventKind::NoteOff { key, .. } => {
                if self.down.lift(key, id) && self.pedals != 0 {
                    self.sustained |= 1 << key;
                }
                false
            }
            EventKind::Controller {
                channel,
                number: controller::SUSTAIN,
                value,
            } => {
                self.sustain(channel, value >= 0.5);
                false
            }
            EventKind::Controller {
                channel,
                number: controller::SOSTENUTO,
                value,
            } => {
                self.sostenuto(channel, value >= 0.5);
                false
            }
            EventKind::Controller {
                channel,
                number: controller::RESET,
                ..
            } => {
                self.sustain(channel, false);
                self.sostenuto(channel, false);
                false
            }
            EventKind::Controller {
                number: controller::ALL_SOUND_OFF,
                ..
            } => {
                self.release_all();
                self.begin(None)
            }
            EventKind::SystemReset => {
                self.release_all();
                (self.pedals, self.sostenuto) = (0, 0);
                self.begin(None)
            }
            EventKind::Controller {
                number: controller::ALL_NOTES_OFF..,
                ..
            } => {
                self.release_all();
                false
            }
            _ => false,
        }
    }

    fn sustain(&mut self, channel: u8, is_down: bool) {
        let pedal = 1 << channel;
        self.pedals = if is_down {
            self.pedals | pedal
        } else {
            self.pedals & !pedal
        };
        if self.pedals == 0 {
            self.sustained = 0;
        }
    }

    fn sostenuto(&mut self, channel: u8, is_down: bool) {
        let pedal = 1 << channel;
        if is_down && self.sostenuto == 0 {
            self.captured = self.down.keys();
        }
        self.sostenuto = if is_down {
            self.sostenuto | pedal
        } else {
            self.sostenuto & !pedal
        };
        if self.sostenuto == 0 {
            self.captured = 0;
        }
    }

    fn release_all(&mut self) {
        (self.down, self.sustained, self.captured) = (NoteCounts::default(), 0, 0);
    }

    fn begin(&mut self, key: Option<u8>) -> bool {
        self.key = key;
        self.begun += 1;
        true
    }

    /// Returns true if a key is held, by hand or by a pedal.
    pub fn any(&self) -> bool {
        self.down.any() || self.sustained | self.captured != 0
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
        let on = |key| EventKind::NoteOn {
            channel: 0,
            key,
            velocity: 0.5,
        };
        let off = |key| EventKind::NoteOff {
            channel: 0,
            key,
            velocity: 0.0,
        };
        let control = |number| EventKind::Controller {
            channel: 3,
            number,
            value: 0.0,
        };
        let mut keys = HeldKeys::default();
        assert_eq!((keys.any(), keys.beginning()), (false, (0, None)));
        assert!(keys.handle(on(60)) && keys.handle(on(127)) && !keys.handle(off(60)));
        assert_eq!((keys.any(), keys.beginning()), (true, (2, Some(127))));
        // Without velocity it is a release.
        assert!(!keys.handle(EventKind::NoteOn {
            channel: 0,
            key: 127,
            velocity: 0.0
        }));
        assert!(!keys.any());
        assert!(keys.handle(on(0)) && !keys.handle(control(controller::ALL_NOTES_OFF)));
        assert_eq!((keys.any(), keys.beginning()), (false, (3, Some(0))));
        assert!(keys.handle(on(1)) && keys.handle(control(controller::ALL_SOUND_OFF)));
        assert_eq!((keys.any(), keys.beginning()), (false, (5, None)));
    }

    #[test]
    fn a_pedal_holds_keys_until_the_last_pedal_is_released() {
        let key = |down| match down {
            true => EventKind::NoteOn {
                channel: 0,
                key: 60,
                velocity: 0.5,
            },
            false => EventKind::NoteOff {
                channel: 0,
                key: 60,
                velocity: 0.0,
            },
        };
        let pedal = |channel, value| EventKind::Controller {
            channel,
            number: controller::SUSTAIN,
            value,
        };
        let held_after = |events: &[EventKind]| {
            let mut keys = HeldKeys::default();
            for event in events {
                keys.handle(*event);
            }
            keys.any()
        };
        assert!(!held_after(&[pedal(0, 1.0)]));
        assert!(held_after(&[key(true), pedal(0, 1.0), key(false)]));
        assert!(held_after(&[
            key(true),
            pedal(0, 1.0),
            key(false),
            pedal(1, 0.5),
            pedal(0, 0.4)
        ]));
        assert!(!held_after(&[
            key(true),
            pedal(0, 1.0),
            key(false),
            pedal(0, 0.0)
        ]));
        assert!(!held_after(&[key(true), key(false), pedal(0, 1.0)]));
        // A key that is down stays held without the pedal.
        assert!(held_after(&[key(true), pedal(0, 1.0), pedal(0, 0.0)]));
        let end = EventKind::Controller {
            channel: 0,
            number: controller::ALL_NOTES_OFF,
            value: 0.0,
        };
        assert!(!held_after(&[key(true), pedal(0, 1.0), key(false), end]));
    }
}
