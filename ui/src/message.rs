//! What stands in the way of playing, or should be known of it, in one line, and what can be done about it.

use egui::{Label, RichText, Sense, Stroke, Ui, vec2};
use ondes_engine::realtime::Status;

use super::command::{Browse, Command};
use super::desk::Desk;
use super::theme::Palette;
use super::view::View;

/// Room for the buttons, points.
const DISMISS: f32 = 40.0;
const LOCATE: f32 = 80.0;
const RETRY: f32 = 52.0;

/// Something to be said.
pub(crate) struct Message {
    text: String,
    /// What there is besides, for who wants to know.
    more: String,
    means: Means,
}

/// What can be done about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    Wait,
    Dismiss,
    Retry,
    LocateOrRetry,
}

/// What is to be said now, if anything.
pub(crate) fn of(view: &View<'_>) -> Option<Message> {
    let message = match (view.missing, view.status) {
        (Some(missing), _) => {
            let looked = missing.looked;
            let place = match looked {
                [] => "nowhere to look".to_owned(),
                [one] => format!("looked in {one}"),
                [first, rest @ ..] => format!("looked in {first} and {} more", rest.len()),
            };
            let text = format!("“{}” is missing: {place}", missing.name);
            let means = if view.can_browse { Means::LocateOrRetry } else { Means::Retry };
            Message { text, more: looked.join("\n"), means }
        }
        (None, Status::Failed(reason)) => {
            let text = format!("Cannot play this model: {reason}");
            Message { text, more: reason.clone(), means: Means::Retry }
        }
        (None, Status::Loading) => Message { text: "Loading …".into(), more: String::new(), means: Means::Wait },
        (None, Status::Empty | Status::Ready) => {
            if let Some(notice) = view.notice {
                return Some(Message { text: notice.into(), more: notice.into(), means: Means::Dismiss });
            }
            let missing = view.chain?.missing?;
            let first = missing.looked.first().map_or("nowhere to look", String::as_str);
            let rest = match missing.looked.len() {
                ..2 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let text = format!("Cannot use the cabinet “{}”: {first}{rest}", missing.name);
            Message { text, more: missing.looked.join("\n"), means: Means::Retry }
        }
    };
    Some(message)
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, message: Message) {
    let Message { text, more, means } = message;
    let palette = Palette::of(ui);
    let bar = ui.clip_rect();
    let failed = matches!(means, Means::Retry | Means::LocateOrRetry);
    let edge = if failed { palette.bad } else { palette.accent };
    if failed {
        ui.painter().rect_filled(bar, 0.0, palette.panel.lerp_to_gamma(palette.bad, 0.16));
    }
    ui.painter().vline(bar.left() + 1.5, bar.y_range(), Stroke::new(3.0, edge));
    ui.horizontal_centered(|ui| {
        let actions = match means {
            Means::Wait => 0.0,
            Means::Dismiss => DISMISS,
            Means::Retry => RETRY,
            Means::LocateOrRetry => LOCATE + RETRY,
        };
        let width = (ui.available_width() - actions).max(60.0);
        ui.allocate_ui(vec2(width, 26.0), |ui| {
            ui.set_min_width(width);
            let label = ui.add(Label::new(RichText::new(text)).truncate().sense(Sense::hover()));
            if !more.is_empty() {
                label.on_hover_text(more);
            }
        });
        if means == Means::LocateOrRetry && ui.button("Locate…").clicked() {
            desk.tell(Command::Browse(Browse::Missing));
        }
        if failed && ui.button("Retry").clicked() {
            desk.tell(Command::Retry);
        }
        if means == Means::Dismiss && ui.button("OK").clicked() {
            desk.tell(Command::Dismiss);
        }
    });
}
