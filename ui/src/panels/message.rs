//! The message line: problems and notices, with the actions they need.

use egui::{Label, RichText, Sense, Stroke, Ui, vec2};
use ondes_engine::realtime::LoadStatus;
use ondes_player::library::MissingFile;

use crate::command::{DisplayCommand, FileCommand, FilePurpose};
use crate::frame::Frame;
use crate::panels::consent;
use crate::theme::Palette;
use crate::view::WindowView;

/// Widths of the buttons, points.
const DISMISS: f32 = 40.0;
const LOCATE: f32 = 80.0;
const RETRY: f32 = 52.0;
const ASK: f32 = 52.0;

/// A message to the user.
pub(crate) struct Message {
    text: String,
    /// Details for the tooltip; may be empty.
    details: String,
    action: MessageAction,
}

/// Actions that a message offers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageAction {
    Wait,
    Dismiss,
    Retry,
    LocateOrRetry,
    AskProgram,
}

/// Returns the message to show, if any.
pub(crate) fn current(view: &WindowView<'_>) -> Option<Message> {
    if let Some(program) = view.messages.untrusted {
        let text = format!(
            "“{}” is a program, which you have not allowed to run",
            consent::file_name(program)
        );
        let details = program.path.display().to_string();
        return Some(Message {
            text,
            details,
            action: MessageAction::AskProgram,
        });
    }
    let message = match (view.messages.missing, view.messages.status) {
        (Some(missing), _) => {
            let text = format!(
                "“{}” is missing; searched: {}",
                missing.name,
                searched(missing)
            );
            let action = if view.can_browse {
                MessageAction::LocateOrRetry
            } else {
                MessageAction::Retry
            };
            Message {
                text,
                details: missing.searched.join("\n"),
                action,
            }
        }
        (None, LoadStatus::Failed(reason)) => {
            let text = format!("Cannot play this model: {reason}");
            Message {
                text,
                details: reason.clone(),
                action: MessageAction::Retry,
            }
        }
        (None, LoadStatus::Loading) => Message {
            text: "Loading …".into(),
            details: String::new(),
            action: MessageAction::Wait,
        },
        (None, LoadStatus::Empty | LoadStatus::Ready) => {
            if let Some(notice) = view.messages.notice {
                return Some(Message {
                    text: notice.into(),
                    details: notice.into(),
                    action: MessageAction::Dismiss,
                });
            }
            if let Some(missing) = view.chain.missing {
                let text = format!(
                    "Cannot use the cabinet “{}”: {}",
                    missing.name,
                    searched(missing)
                );
                let details = missing.searched.join("\n");
                return Some(Message {
                    text,
                    details,
                    action: MessageAction::Retry,
                });
            }
            Message {
                text: view.messages.hint?.into(),
                details: String::new(),
                action: MessageAction::Dismiss,
            }
        }
    };
    Some(message)
}

/// Returns the first place that was searched, and the number of others.
fn searched(missing: &MissingFile) -> String {
    match missing.searched.as_slice() {
        [] => "nowhere".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, message: Message) {
    let Message {
        text,
        details,
        action,
    } = message;
    let palette = Palette::current(ui);
    let bar = ui.clip_rect();
    let retries = matches!(action, MessageAction::Retry | MessageAction::LocateOrRetry);
    let failed = retries || action == MessageAction::AskProgram;
    let edge = if failed {
        palette.error
    } else {
        palette.accent
    };
    if failed {
        ui.painter()
            .rect_filled(bar, 0.0, palette.panel.lerp_to_gamma(palette.error, 0.16));
    }
    ui.painter()
        .vline(bar.left() + 1.5, bar.y_range(), Stroke::new(3.0, edge));
    ui.horizontal_centered(|ui| {
        let actions = match action {
            MessageAction::Wait => 0.0,
            MessageAction::Dismiss => DISMISS,
            MessageAction::Retry => RETRY,
            MessageAction::LocateOrRetry => LOCATE + RETRY,
            MessageAction::AskProgram => ASK,
        };
        let width = (ui.available_width() - actions).max(60.0);
        ui.allocate_ui(vec2(width, 26.0), |ui| {
            ui.set_min_width(width);
            let label = ui.add(
                Label::new(RichText::new(text))
                    .truncate()
                    .sense(Sense::hover()),
            );
            if !details.is_empty() {
                label.on_hover_text(details);
            }
        });
        if action == MessageAction::LocateOrRetry
            && ui
                .button("Locate…")
                .on_hover_text("Choose the file in a dialog")
                .clicked()
        {
            frame.push(FileCommand::Browse(FilePurpose::MissingModel));
        }
        if retries && ui.button("Retry").on_hover_text("Try again").clicked() {
            frame.push(FileCommand::Retry);
        }
        if action == MessageAction::AskProgram
            && ui
                .button("Run…")
                .on_hover_text("Decide whether this program may run")
                .clicked()
        {
            frame.push(FileCommand::AskProgram);
        }
        if action == MessageAction::Dismiss
            && ui.button("OK").on_hover_text("Hide this message").clicked()
        {
            frame.push(DisplayCommand::Dismiss);
        }
    });
}
