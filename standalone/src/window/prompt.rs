//! The question whether to save, before another session is opened or the app is closed.

use egui::{Id, Key, Label, Modal, Modifiers, RichText, Ui};

use super::view::{AppCommand, AppView, Prompt};
use super::widgets::named;

/// Width of the dialog, points.
const WIDTH: f32 = 360.0;

/// Returns whether the dialog is open.
pub(super) fn is_open(view: &AppView) -> bool {
    matches!(
        view.prompt,
        Some(Prompt::UnsavedChanges | Prompt::Quit { .. })
    )
}

/// Draws the dialog over the window, if it is open. Escape cancels. Returns whether to save.
pub(super) fn show(ui: &Ui, view: &AppView, commands: &mut Vec<AppCommand>) -> bool {
    let Some(prompt) = view.prompt.filter(|_| is_open(view)) else {
        return false;
    };
    let recording = view
        .recorded_time()
        .map(|time| format!("A recording is running ({time})"));
    let (title, unsaved, quits) = match prompt {
        Prompt::Quit { unsaved: true } => (
            format!("Save “{}” before closing?", view.session),
            true,
            true,
        ),
        Prompt::Quit { unsaved: false } => ("Close during the recording?".into(), false, true),
        _ => (format!("Save “{}” first?", view.session), true, false),
    };
    let recording = recording.map(|running| match quits {
        true => format!("{running}; it ends when the window closes, and its files are completed."),
        false => format!("{running}; it goes on."),
    });
    let changes = unsaved.then(|| "The session has unsaved changes.".to_owned());
    let decline = match (unsaved, quits) {
        (true, true) => ("Don't save", "Close and lose the unsaved changes"),
        (true, false) => ("Don't save", "Go on and lose the unsaved changes"),
        (false, _) => ("Close", "Complete the recording and close"),
    };
    let mut saves = false;
    Modal::new(Id::unique("prompt")).show(ui.ctx(), |ui| {
        ui.set_width(WIDTH.min(ui.ctx().content_rect().width() - 60.0));
        ui.add(Label::new(RichText::new(title).heading()).wrap());
        for line in [changes, recording].into_iter().flatten() {
            ui.add(Label::new(line).wrap());
        }
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            if unsaved {
                let save = ui.button("Save").on_hover_text("Save the session first");
                saves = named(ui, save, "Save changes").clicked();
            }
            if ui.button(decline.0).on_hover_text(decline.1).clicked() {
                commands.push(AppCommand::Discard);
            }
            if ui
                .button("Cancel")
                .on_hover_text("Go back and do nothing")
                .clicked()
            {
                commands.push(AppCommand::Cancel);
            }
        });
    });
    if ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape)) {
        commands.push(AppCommand::Cancel);
    }
    saves
}
