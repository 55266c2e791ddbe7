//! Actions of the user in a window.

use std::path::PathBuf;

use egui::ThemePreference;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::model::program::ProgramOptions;
use ondes_engine::pipeline::ControlSource;
use ondes_engine::realtime::Driver;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::parameter::ParameterId;
use ondes_player::preset::list::PresetId;

use crate::view::ModelEntryId;

/// Purpose of a file that the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePurpose {
    /// A model or a preset to load.
    Model,
    /// The model that is missing.
    MissingModel,
    /// The impulse response of the cabinet.
    Cabinet,
    /// The sound for a setting of a TorchScript program, by its index.
    Sound(usize),
}

/// An action of the user.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowCommand {
    /// Begin a gesture on a knob, one step of undo, until [`WindowCommand::EndGesture`].
    BeginGesture(ParameterId),
    /// Set a knob, 0 … 1. Only within a gesture.
    Set(ParameterId, f32),
    /// End the gesture on a knob.
    EndGesture(ParameterId),
    /// Let the knob learn the next MIDI controller that moves.
    LearnMidi(ParameterId),
    /// Remove the knob's MIDI binding and cancel learning.
    ForgetMidi(ParameterId),
    /// Bind a macro, by index, to the model's control of this index, or to none.
    BindMacro(usize, Option<usize>),

    /// Load a model.
    Load(ModelEntryId),
    /// Load the next model in the list.
    Next,
    /// Load the previous model in the list.
    Previous,
    /// Audition a model, or end the audition.
    Audition(Option<ModelEntryId>),
    /// Mark a model as a favourite, or remove the mark.
    Favourite(ModelEntryId, bool),
    /// Read the folders of models again.
    RescanModels,
    /// Open a file that was dropped on the window: a model, a preset or an impulse response.
    Open(PathBuf),
    /// Open the system's file dialog.
    Browse(FilePurpose),
    /// Try again what failed.
    Retry,
    /// Ask whether the program of [`WindowView::untrusted`](crate::view::WindowView::untrusted) may
    /// run.
    AskProgram,
    /// Let that program run, now and whenever it is named, or never without another question.
    AnswerProgram(bool),
    /// Dismiss the notice or the hint.
    Dismiss,

    /// Undo the last change.
    Undo,
    /// Make the change again that was undone last.
    Redo,

    /// Load an impulse response for the cabinet, or remove the cabinet.
    Cabinet(Option<PathBuf>),
    /// Use the bundled cabinet of this index.
    BundledCabinet(usize),
    /// Let each model that is loaded bring the bundled cabinet that suits it, or none.
    AutomaticCabinet,
    /// Read the folders of impulse responses again.
    RescanCabinets,

    /// Remove the tuning: play in equal temperament.
    RemoveTuning,

    /// Embed the model in the project, or save its path only.
    Embed(bool),

    /// Load a preset.
    LoadPreset(PresetId),
    /// Load the next preset in the list.
    NextPreset,
    /// Load the previous preset in the list.
    PreviousPreset,
    /// Save the sound as a user preset of this name, which is not empty; replaces one of the same
    /// name.
    SavePreset(String),
    /// Delete a user preset; the user has confirmed it.
    DeletePreset(PresetId),

    /// Set the control source.
    SetControlSource(ControlSource),
    /// Let the side-chain of an effect control its instrument, rather than the track.
    FollowSideChain(bool),
    /// Press a key of the window's keyboard.
    KeyDown {
        /// MIDI key, 0 … 127.
        key: u8,
        /// Velocity, above 0 and up to 1.
        velocity: f32,
    },
    /// Release a key. Follows each [`WindowCommand::KeyDown`] before the key is pressed again.
    KeyUp {
        /// MIDI key, 0 … 127.
        key: u8,
    },
    /// Set the knobs that the pad turns, horizontally and vertically; never the same one.
    SetPad(ParameterId, ParameterId),

    /// Activate a slot; the present sound stays in the slot that was active.
    RecallSlot(CompareSlot),
    /// Copy the present sound into a slot.
    StoreSlot(CompareSlot),
    /// Switch bypass on or off.
    Bypass(bool),
    /// Silence everything at once.
    Panic,

    /// Open or close the tuner.
    OpenTuner(bool),
    /// Mute the output while the tuner is open, or not.
    MuteWhileTuning(bool),
    /// Set the frequency of A4 for the tuner, Hz.
    SetTunerReference(f32),

    /// Choose the thread that runs the model.
    SetDriver(Driver),
    /// Choose the method of rate conversion.
    SetResampling(Resampling),
    /// Choose the executor of the network.
    SetExecutor(ExecutorSelection),
    /// Choose the method and the settings of a TorchScript program.
    SetProgram(ProgramOptions),
    /// Search for the devices of libtorch.
    FindDevices,
    /// Choose an option of [`WindowView::qualities`](crate::view::WindowView::qualities).
    SetQuality(usize),
    /// Set the scale of the window; 1 is 100 %. The window must be resized accordingly.
    SetScale(f32),
    /// Set the colour theme.
    SetTheme(ThemePreference),
}
