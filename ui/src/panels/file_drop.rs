//! Files that are dropped on the window.

use egui::{Align2, Color32, FontId, Id, LayerId, Order, Stroke, StrokeKind, Ui};
use ondes_player::cabinet::is_audio_name;

use crate::command::FileCommand;
use crate::frame::Frame;
use crate::theme::{GAP, Palette, RADIUS};

/// Opens dropped files, and shows what dropping would do.
pub(crate) fn show(ui: &Ui, frame: &mut Frame<'_>) {
    let (dropped, hovering) = ui.input(|input| {
        let paths = input
            .raw
            .dropped_files
            .iter()
            .map(|file| file.path().to_owned())
            .collect::<Vec<_>>();
        (paths, input.raw.hovered_files.clone())
    });
    // Of several files the first is opened.
    if let Some(path) = dropped
        .into_iter()
        .find(|path| !path.as_os_str().is_empty())
    {
        frame.push(FileCommand::Open(path));
    }
    // Some systems tell the name only when the file is dropped.
    let Some(first) = hovering.first() else {
        return;
    };
    let name = first
        .path
        .as_ref()
        .and_then(|path| path.file_name())
        .map(|name| name.to_string_lossy());
    let is_cabinet = name.as_ref().is_some_and(|name| is_audio_name(name))
        && frame.view.chain.accepts_audio_files;
    let text = match (name, hovering.len()) {
        (Some(name), 1) if is_cabinet => format!("Drop to play through “{name}” as the cabinet"),
        (Some(name), 1) => format!("Drop to play “{name}”"),
        (Some(name), count) => format!("Drop to play “{name}”, the first of {count}"),
        (None, _) => "Drop to play this".to_owned(),
    };
    // The whole window accepts files.
    let all = ui.ctx().content_rect();
    let accent = Palette::current(ui).accent;
    let painter = ui
        .ctx()
        .layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
    painter.rect_filled(all, 0.0, Color32::from_black_alpha(160));
    painter.rect_stroke(
        all.shrink(GAP),
        RADIUS,
        Stroke::new(2.0, accent),
        StrokeKind::Inside,
    );
    let galley = painter.layout(
        text,
        FontId::proportional(22.0),
        accent,
        all.width() - 8.0 * GAP,
    );
    let place = Align2::CENTER_CENTER.anchor_size(all.center(), galley.size());
    painter.galley(place.min, galley, accent);
}
