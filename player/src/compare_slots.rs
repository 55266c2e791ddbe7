//! Slots A and B, which hold two sounds to compare. They are saved with the project.

use std::sync::{Mutex, MutexGuard};

use ondes_engine::sync::lock;

use crate::snapshot::SoundSnapshot;
use crate::state::{CompareState, SoundState};

/// A slot for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompareSlot {
    /// Slot A.
    #[default]
    A,
    /// Slot B.
    B,
}

impl CompareSlot {
    /// Returns the other slot.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Returns the slot's letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// The two slots and which of them is active. The active slot's sound is the instance's own state.
#[derive(Default)]
pub struct CompareSlots(Mutex<(CompareSlot, [Option<SoundSnapshot>; 2])>);

impl CompareSlots {
    /// Returns the active slot.
    #[must_use]
    pub fn active(&self) -> CompareSlot {
        self.slots().0
    }

    /// Stores a sound in a slot.
    pub fn store(&self, slot: CompareSlot, sound: SoundSnapshot) {
        self.slots().1[slot as usize] = Some(sound);
    }

    /// Activates a slot and stores `current` in the slot that was active. Returns the sound to
    /// apply; `None` if the slot is empty, so that it becomes a copy, or was active already.
    pub fn recall(&self, slot: CompareSlot, current: SoundSnapshot) -> Option<SoundSnapshot> {
        let mut slots = self.slots();
        let previous = std::mem::replace(&mut slots.0, slot);
        if previous == slot {
            return None;
        }
        slots.1[previous as usize] = Some(current);
        slots.1[slot as usize].clone()
    }

    /// Returns the state to save with a project; `None` if only slot A was ever used.
    #[must_use]
    pub fn state(&self) -> Option<CompareState> {
        let (slot, other) = {
            let slots = self.slots();
            (slots.0, slots.1[slots.0.other() as usize].clone())
        };
        let other = other.map(|SoundSnapshot { values, selection }| SoundState {
            parameters: values,
            selection: selection.to_state().into(),
        });
        let b_is_active = slot == CompareSlot::B;
        (b_is_active || other.is_some()).then_some(CompareState { b_is_active, other })
    }

    /// Returns the active slot and both sounds, for [`CompareSlots::set`].
    #[must_use]
    pub fn get(&self) -> (CompareSlot, [Option<SoundSnapshot>; 2]) {
        self.slots().clone()
    }

    /// Sets the active slot and both sounds. The sound that is heard does not change.
    pub fn set(&self, (active, sounds): (CompareSlot, [Option<SoundSnapshot>; 2])) {
        *self.slots() = (active, sounds);
    }

    /// Restores the active slot and the sound in the other one.
    pub fn restore(&self, active: CompareSlot, sound: Option<SoundSnapshot>) {
        let mut sounds = [None, None];
        sounds[active.other() as usize] = sound;
        *self.slots() = (active, sounds);
    }

    fn slots(&self) -> MutexGuard<'_, (CompareSlot, [Option<SoundSnapshot>; 2])> {
        lock(&self.0)
    }
}
