//! Two settings to compare. They live as long as the instance, and are not saved with the project.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ondes_ui::Slot;

use crate::shared::Kept;

/// Everything that is heard: where all places stand, 0 … 1, and the model with what macros turn.
#[derive(Clone)]
pub struct Setting {
    /// In the order of their numbers.
    pub values: Vec<f32>,
    /// The model.
    pub kept: Kept,
}

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

    /// Nothing that is kept here is half done when a thread panics.
    fn inner(&self) -> MutexGuard<'_, (Slot, [Option<Setting>; 2])> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
