//! The Ondes window: its panels, and the view model of one instance, for the plugin and the app.
//!
//! A [`Window`] draws a [`ViewModel`] and returns what the user did. The view model supplies the
//! data to draw ([`WindowView`]) and the text of knob values; each frame, [`Window::show`] draws
//! everything and returns [`WindowCommand`]s, in order. The panels know neither plugin framework
//! nor audio device, and keep nothing but the state of the widgets: text being typed, the page that
//! is open, held peaks. In reading order:
//!
//! - [`view`] and [`command`]: data that passes between a window and its view model;
//! - [`view_model`]: the view model of an instance, which draws a window and carries out its
//!   commands;
//! - [`window`]: a frame of the window, with `frame`, the context that all panels receive, and
//!   `layout`, their places;
//! - `theme`, `icon`, `format` and [`scale`]: style and text;
//! - `knob`, `knob_gesture`, `knob_menu`, `drop_down` and `keyboard_input`: widgets;
//! - `panels`: all panels, one file each;
//! - [`file_dialog`]: the system's file dialog.
//!
//! # Repainting
//! A frame is requested while [`WindowView::moving`] is set, while a held peak falls, and after
//! input. A view model whose data change by themselves (sound starts, a model has loaded) wakes the
//! window with [`egui::Context::request_repaint`].
//!
//! # Keyboard
//! Tab goes through all widgets. On a knob the arrow keys turn (finely with Shift), Page Up and
//! Page Down turn in larger steps, Home and End go to the ends, Delete resets, Enter types a value,
//! and the menu key or Shift+F10 opens the menu. In the list of models the arrow keys move, Enter
//! loads, Space auditions, F marks a favourite. In the list of presets the arrow keys move, Enter
//! loads, Delete pressed twice deletes. The arrow keys also move the pad. Ctrl+F searches; Ctrl+Z
//! undoes and Ctrl+Shift+Z redoes, unless text is being typed; Ctrl with plus, minus and 0 changes
//! the scale.
//!
//! While "Keys" is on, letters without Ctrl, Alt or Shift play notes, unless text is being typed: A
//! W S E D F T G Y H U J K O L P ; are the keys of a piano from C upwards, Z and X shift them by
//! octaves, C and V make them softer and louder.

#![forbid(unsafe_code)]

pub mod command;
mod drop_down;
pub mod file_dialog;
mod format;
mod frame;
mod icon;
mod keyboard_input;
mod knob;
mod knob_gesture;
mod knob_menu;
mod layout;
mod panels;
pub mod scale;
mod shortcuts;
#[cfg(test)]
#[path = "../../player/src/test_model.rs"]
mod test_model;
mod theme;
pub mod view;
pub mod view_model;
pub mod window;

pub use command::{
    CabinetCommand, DisplayCommand, EngineCommand, FileCommand, FilePurpose, HistoryCommand,
    KnobCommand, ModelCommand, PlayCommand, PresetCommand, RigCommand, TunerCommand, WindowCommand,
};
pub use format::quality_line;
pub use scale::{SCALES, clamp_scale};
pub use theme::install as install_style;
pub use view::{
    ChainView, EngineView, EntryOrigin, ExecutorDevices, ExecutorView, HistoryView, Knob,
    KnobsView, LatentRow, MacroKnob, MessagesView, MethodChoice, MixerView, ModelEntry,
    ModelEntryId, ModelView, ModelsView, PlayView, PresetEntry, PresetsView, ProgramView, RigView,
    SignalView, SoundingNote, Surroundings, TunerView, TuningView, ViewModel, WindowView,
};
pub use window::{SIZE, Window};
