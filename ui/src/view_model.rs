//! The view model of an instance, and what connects it with a window.
//!
//! [`InstanceViewModel`] (in `instance`) holds the data to draw and is refreshed before each frame.
//! `commands` passes on what the user does: to `knobs`, `models`, `files` (with `consent` and
//! `program` for programs), `presets`, `cabinet_list`, `rig`, `tuner`, and `undo`, which also records what
//! the user changes. The lists are [`model_list`], `preset_list` and `cabinet_list`, read on threads
//! of their own; `device_search` finds the devices of libtorch, `latent_rows` are the latents of a
//! codec, `hint` tells a new user what to do, `idle_host` notices a host that does not process
//! audio, `signal_data` holds signals with their spectra, which `spectrum` computes, and `tuner`
//! follows the input.

mod cabinet_list;
mod commands;
mod consent;
mod device_search;
mod files;
mod hint;
mod idle_host;
mod instance;
mod knobs;
mod latent_rows;
pub mod model_list;
mod models;
mod preset_list;
mod presets;
mod program;
mod rig;
mod signal_data;
mod spectrum;
mod tuner;
mod undo;

use egui::Ui;
use ondes_player::parameter_source::ParameterSetter;

use crate::window::Window;

pub use instance::InstanceViewModel;

/// Draws a frame of an instance's window into `ui`, which must cover the window, and carries out
/// what the user does. Requests another frame while something is in progress.
pub fn show(
    model: &mut InstanceViewModel,
    window: &mut Window,
    ui: &mut Ui,
    setter: &impl ParameterSetter,
) {
    let again = model.refresh();
    model.apply_requests();
    model.apply_loaded_presets(setter);
    let commands = window.show(ui, model);
    if !commands.is_empty() {
        ui.ctx().request_repaint();
        commands
            .into_iter()
            .for_each(|command| model.handle_command(setter, command));
        // A host that has suspended the instance would not process the keys.
        model.wake_host();
    }
    if let Some(again) = again {
        ui.ctx().request_repaint_after(again);
    }
}

/// Ends gestures and releases held keys of an instance's window. To be called before the window
/// closes.
pub fn close(model: &mut InstanceViewModel, window: &mut Window, setter: &impl ParameterSetter) {
    window
        .close()
        .into_iter()
        .for_each(|command| model.handle_command(setter, command));
    model.open_tuner(false);
}
