//! The question whether a TorchScript program may run.

use egui::{Id, Key, Label, Modal, Modifiers, RichText, Ui};
use ondes_player::trust::UntrustedProgram;

use crate::command::FileCommand;
use crate::frame::Frame;
use crate::theme::{self, GAP};

/// Width of the dialog, points.
const WIDTH: f32 = 420.0;

/// Rights of a program.
const RIGHTS: &str = if cfg!(target_os = "linux") {
    "It runs in a process of its own, which the system keeps away from network and files as far as it can."
} else {
    "It can do what any program on this computer can do."
};

/// Returns the name of a program's file.
pub(crate) fn file_name(program: &UntrustedProgram) -> String {
    program
        .path
        .file_name()
        .unwrap_or(program.path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Draws the dialog over the window while the user is being asked. Escape means no.
pub(crate) fn show(ui: &Ui, frame: &mut Frame<'_>) {
    let view = frame.view.messages;
    let Some(program) = view.untrusted.filter(|_| view.asks_for_consent) else {
        return;
    };
    let mut answer = None;
    Modal::new(Id::unique("consent")).show(ui.ctx(), |ui| {
        theme::within_window(ui, WIDTH, |ui| question(ui, program, &mut answer));
    });
    if ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape)) {
        answer = Some(false);
    }
    frame
        .commands
        .extend(answer.map(|run| FileCommand::AnswerProgram(run).into()));
}

fn question(ui: &mut Ui, program: &UntrustedProgram, answer: &mut Option<bool>) {
    ui.spacing_mut().item_spacing.y = 1.5 * GAP;
    ui.label(
        RichText::new("Run this program?")
            .font(theme::heading())
            .strong(),
    );
    let what = format!(
        "“{}” is a TorchScript model. Such a file is a program, not only data. {RIGHTS} Run it only if you trust \
         whoever made it.",
        file_name(program)
    );
    ui.add(Label::new(what).wrap());
    ui.add(Label::new(RichText::new(program.path.display().to_string()).weak()).wrap());
    let note = "Your answer is remembered for this file on this computer. “ondes trust” lists and removes answers.";
    ui.add(Label::new(RichText::new(note).weak()).wrap());
    ui.horizontal(|ui| {
        for (label, hint, run) in [
            ("Run", "Run the program, now and whenever it is named", true),
            ("Don't run", "Leave it alone", false),
        ] {
            if ui.button(label).on_hover_text(hint).clicked() {
                *answer = Some(run);
            }
        }
    });
}
