//! Two settings to compare. They are saved with the project.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ondes_ui::Slot;

use super::setting::Setting;
use crate::state::{Slots, Sound};

/// The slots, and the one that is heard.
#[derive(Default)]
pub struct Compare(Mutex<(Slot, [Option<Setting>; 2])>);

impl Compare {
    /// The slot that is heard.
    #[must_use]
    pub fn slot(&self) -> Slot {
        self.inner().0
    }

    /// Puts a setting into a slot.
    pub fn store(&self, slot: Slot, setting: Setting) {
        self.inner().1[slot as usize] = Some(setting);
    }

    /// Goes to a slot, leaving what is heard in the present one. Gives what is to be heard now; none where the slot is empty,
    /// which makes it a copy, or is the present one.
    pub fn recall(&self, slot: Slot, heard: Setting) -> Option<Setting> {
        let mut inner = self.inner();
        let present = std::mem::replace(&mut inner.0, slot);
        if present == slot {
            return None;
        }
        inner.1[present as usize] = Some(heard);
        inner.1[slot as usize].clone()
    }

    /// What a project saves of them besides what is heard; none for slots that were not used.
    #[must_use]
    pub fn saved(&self) -> Option<Slots> {
        let (slot, other) = {
            let inner = self.inner();
            (inner.0, inner.1[other(inner.0) as usize].clone())
        };
        let other = other.map(|Setting { values, kept }| Sound { parameters: values, selection: kept.saved().into() });
        let b_is_heard = slot == Slot::B;
        (b_is_heard || other.is_some()).then_some(Slots { b_is_heard, other })
    }

    /// Makes them what a project says: the slot that is heard, and what is in the other one.
    pub fn restore(&self, heard: Slot, setting: Option<Setting>) {
        let mut settings = [None, None];
        settings[other(heard) as usize] = setting;
        *self.inner() = (heard, settings);
    }

    /// Nothing that is kept here is half done when a thread panics.
    fn inner(&self) -> MutexGuard<'_, (Slot, [Option<Setting>; 2])> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn other(slot: Slot) -> Slot {
    match slot {
        Slot::A => Slot::B,
        Slot::B => Slot::A,
    }
}
