//! What the user did, as it comes out of a window.

use std::path::PathBuf;

use egui::ThemePreference;
use ondes_engine::realtime::Driver;
use ondes_engine::wish::Wish;

use super::view::{EntryId, KnobId, PlayedBy, PresetId, Slot};

/// What a file is to be chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browse {
    /// To be played: a model or a preset.
    Model,
    /// The model that is missing.
    Missing,
    /// The sound of a cabinet.
    Cabinet,
}

/// What the user did.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A hand is on the knob: one gesture, one step of undo, until [`Command::End`].
    Begin(KnobId),
    /// The knob is turned there, 0 … 1. Only within a gesture.
    Set(KnobId, f32),
    /// The hand has left the knob.
    End(KnobId),
    /// The next MIDI controller that is moved shall turn the knob.
    Learn(KnobId),
    /// None shall, and none is waited for.
    Forget(KnobId),
    /// The macro of that index shall turn the control of that index, or nothing.
    Bind(usize, Option<usize>),

    /// Play the model.
    Load(EntryId),
    /// Play the model after the present one in the list.
    Next,
    /// Play the model before it.
    Previous,
    /// Let the model be heard for a moment, or stop that with none.
    Audition(Option<EntryId>),
    /// Mark the model, or take the mark away.
    Favourite(EntryId, bool),
    /// Look for models again.
    Rescan,
    /// Play what is in a file that was dropped on the window, a model, a preset or the sound of a cabinet.
    Open(PathBuf),
    /// Ask for a file: the owner opens the system's dialog.
    Browse(Browse),
    /// Try again what failed.
    Retry,
    /// The notice has been read.
    Dismiss,

    /// Play through the impulse response in that file, or through none.
    Cabinet(Option<PathBuf>),
    /// Look for impulse responses again.
    Cabinets,

    /// Keep the model in the project itself, or only its place.
    Embed(bool),

    /// Set everything as that preset says.
    LoadPreset(PresetId),
    /// The preset after the present one in the list.
    NextPreset,
    /// The preset before it.
    PreviousPreset,
    /// Keep everything as it is set as the user's preset of that name, which is not empty; one of theirs that has it is replaced.
    SavePreset(String),
    /// Remove the user's preset for good: they have been asked.
    DeletePreset(PresetId),

    /// Let the model be played so.
    PlayedBy(PlayedBy),
    /// A key of the window's keyboard goes down.
    KeyDown {
        /// MIDI key, 0 … 127.
        key: u8,
        /// How hard it is struck, above 0 and up to 1.
        velocity: f32,
    },
    /// The key comes up. It follows each [`Command::KeyDown`], and none goes down twice before.
    KeyUp {
        /// MIDI key, 0 … 127.
        key: u8,
    },
    /// Let the pad turn those two, across and upwards; they are never the same.
    Pad(KnobId, KnobId),

    /// Let that slot be heard; what was heard stays in the slot that it was in.
    Recall(Slot),
    /// Put what is heard into that slot.
    Store(Slot),
    /// Let the input pass unchanged, or not.
    Bypass(bool),
    /// Silence everything at once.
    Panic,

    /// Drive the model so.
    Drive(Driver),
    /// Run the network so.
    Run(Wish),
    /// Look where libtorch can compute.
    Devices,
    /// Play the model in that of its forms.
    Quality(usize),
    /// Show the window at that size, 1 is 100 %: the owner makes its window as large and draws with it.
    Scale(f32),
    /// Show the window so.
    Theme(ThemePreference),
}
