//! Actions of the user in a window.

use std::path::PathBuf;

use egui::ThemePreference;
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::ExecutorSelection;
use ondes_engine::model::program::ProgramOptions;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::parameter::ParameterId;
use ondes_player::preset::list::PresetId;
use ondes_player::programs::ProgramNumber;
use ondes_player::rig::block_state::BlockState;
use ondes_player::rig::branch_state::BranchState;

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
    /// The model of a new block, or of the block at a place.
    ModelBlock(Option<usize>),
    /// The impulse response of a new block, or of the block at a place.
    ResponseBlock(Option<usize>),
    /// The sound for a setting of a TorchScript program, by its index.
    Sound(usize),
}

/// Declares the groups of commands, and [`WindowCommand`] out of them.
macro_rules! commands {
    ($($(#[$doc:meta])* $group:ident($command:ident) { $($variants:tt)* })*) => {
        /// An action of the user.
        #[derive(Clone, Debug, PartialEq)]
        pub enum WindowCommand {
            $($(#[$doc])* $group($command),)*
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub enum $command { $($variants)* }

            impl From<$command> for WindowCommand {
                fn from(command: $command) -> Self {
                    Self::$group(command)
                }
            }
        )*
    };
}

commands! {
    /// Turns knobs, binds them, or sets other parameters.
    Knob(KnobCommand) {
        /// Begin a gesture on a knob, one step of undo, until [`KnobCommand::EndGesture`].
        BeginGesture(ParameterId),
        /// Set a knob, 0 … 1. Only within a gesture.
        Set(ParameterId, f32),
        /// End the gesture on a knob.
        EndGesture(ParameterId),
        /// Set a parameter to a value in its unit, in a gesture of its own.
        SetParameter(ParameterId, f32),
        /// Let the knob learn the next MIDI controller that moves.
        LearnMidi(ParameterId),
        /// Remove the knob's MIDI binding and cancel learning.
        ForgetMidi(ParameterId),
        /// Bind a macro, by index, to the model's control of this index, or to none.
        BindMacro(usize, Option<usize>),
        /// Set the knobs that the pad turns, horizontally and vertically; never the same one.
        SetPad(ParameterId, ParameterId),
    }

    /// Chooses the model.
    Model(ModelCommand) {
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
        Rescan,
        /// Embed the model in the project, or save its path only.
        Embed(bool),
    }

    /// Opens files, and decides on those that did not open.
    File(FileCommand) {
        /// Open a file that was dropped on the window: a model, a preset, a tuning or an impulse
        /// response.
        Open(PathBuf),
        /// Open the system's file dialog.
        Browse(FilePurpose),
        /// Try again what failed.
        Retry,
        /// Ask whether the program of
        /// [`MessagesView::untrusted`](crate::view::MessagesView::untrusted) may run.
        AskProgram,
        /// Let that program run, now and whenever it is named, or never without another question.
        AnswerProgram(bool),
    }

    /// Loads, saves and deletes presets.
    Preset(PresetCommand) {
        /// Load a preset.
        Load(PresetId),
        /// Load the next preset in the list.
        Next,
        /// Load the previous preset in the list.
        Previous,
        /// Save the sound as a user preset of this name, which is not empty; replaces one of the
        /// same name.
        Save(String),
        /// Delete a user preset; the user has confirmed it.
        Delete(PresetId),
    }

    /// Chooses the cabinet.
    Cabinet(CabinetCommand) {
        /// Load an impulse response.
        Load(PathBuf),
        /// Use the bundled cabinet of this index.
        LoadBundled(usize),
        /// Remove the cabinet.
        Remove,
        /// Let each model that is loaded bring the bundled cabinet that suits it, or none.
        Automatic,
        /// Read the folders of impulse responses again.
        Rescan,
    }

    /// Changes the blocks before and after the model.
    Rig(RigCommand) {
        /// Set the blocks, in their order. A change is a step of undo with [`RigCommand::Finish`].
        Change(Vec<BlockState>),
        /// Set how the two branches are mixed, likewise.
        ChangeBranches([BranchState; 2]),
        /// Align the two branches, by what was heard last.
        AlignBranches,
        /// End a change.
        Finish,
        /// Read the file of a block, and add it.
        Add(BlockState),
        /// Read the file of a block, and put it in the place of another one, with its settings.
        Replace(usize, BlockState),
        /// Let the next free program change choose the scene that is heard.
        AddSceneProgram,
        /// Let the next free program change choose the preset that was loaded last.
        AddPresetProgram,
        /// Change the number of a program change, by its place.
        SetProgram(usize, ProgramNumber),
        /// Let a program change choose nothing, by its place.
        RemoveProgram(usize),
        /// Go to a scene, from 0; one that was never heard begins as a copy.
        GoToScene(usize),
        /// Name the scene that is heard.
        NameScene(String),
    }

    /// Plays notes and ends them.
    Play(PlayCommand) {
        /// Press a key of the window's keyboard.
        KeyDown {
            /// MIDI key, 0 … 127.
            key: u8,
            /// Velocity, above 0 and up to 1.
            velocity: f32,
        },
        /// Release a key. Follows each [`PlayCommand::KeyDown`] before the key is pressed again.
        KeyUp {
            /// MIDI key, 0 … 127.
            key: u8,
        },
        /// Silence everything at once.
        Panic,
        /// Remove the tuning: play in equal temperament.
        RemoveTuning,
    }

    /// Returns to earlier sounds, and compares two.
    History(HistoryCommand) {
        /// Undo the last change.
        Undo,
        /// Make the change again that was undone last.
        Redo,
        /// Activate a slot; the present sound stays in the slot that was active.
        RecallSlot(CompareSlot),
        /// Copy the present sound into a slot.
        StoreSlot(CompareSlot),
    }

    /// Operates the tuner.
    Tuner(TunerCommand) {
        /// Open or close the tuner.
        Open(bool),
        /// Mute the output while the tuner is open, or not.
        Mute(bool),
        /// Set the frequency of A4, Hz.
        SetReference(f32),
    }

    /// Sets how the model is run.
    Engine(EngineCommand) {
        /// Choose the method of rate conversion.
        SetResampling(Resampling),
        /// Choose the executor of the network.
        SetExecutor(ExecutorSelection),
        /// Choose the method and the settings of a TorchScript program.
        SetProgram(ProgramOptions),
        /// Search for the devices of libtorch.
        FindDevices,
    }

    /// Changes what the window shows.
    Display(DisplayCommand) {
        /// Dismiss the notice or the hint.
        Dismiss,
        /// Set the scale of the window; 1 is 100 %. The window must be resized accordingly.
        SetScale(f32),
        /// Set the colour theme.
        SetTheme(ThemePreference),
    }
}
