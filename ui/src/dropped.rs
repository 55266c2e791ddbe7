//! Files that are dropped on the window, and a sign where they would land.

use egui::{Align2, Color32, FontId, Id, LayerId, Order, Stroke, StrokeKind, Ui};

use super::command::Command;
use super::desk::Desk;
use super::theme::{GAP, Palette, RADIUS};

/// Opens what is dropped, and shows what would be opened where.
pub(crate) fn take(ui: &Ui, desk: &mut Desk<'_>) {
    let (dropped, hovering) = ui.input(|input| {
        let paths = input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect::<Vec<_>>();
        (paths, input.raw.hovered_files.clone())
    });
    // One model plays: of several files the first is opened.
    if let Some(path) = dropped.into_iter().find(|path| !path.as_os_str().is_empty()) {
        desk.tell(Command::Open(path));
    }
    // Not all systems tell the name before it is dropped.
    let Some(first) = hovering.first() else { return };
    let name = first.path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    let is_cabinet =
        name.as_ref().is_some_and(|name| is_sound(name)) && desk.view.chain.is_some_and(|chain| chain.takes_sounds);
    let text = match (name, hovering.len()) {
        (Some(name), 1) if is_cabinet => format!("Drop to play through “{name}” as the cabinet"),
        (Some(name), 1) => format!("Drop to play “{name}”"),
        (Some(name), count) => format!("Drop to play “{name}”, the first of {count}"),
        (None, _) => "Drop to play this".to_owned(),
    };
    // All of the window takes it.
    let all = ui.ctx().content_rect();
    let accent = Palette::of(ui).accent;
    let painter = ui.ctx().layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
    painter.rect_filled(all, 0.0, Color32::from_black_alpha(160));
    painter.rect_stroke(all.shrink(GAP), RADIUS, Stroke::new(2.0, accent), StrokeKind::Inside);
    let galley = painter.layout(text, FontId::proportional(22.0), accent, all.width() - 8.0 * GAP);
    let place = Align2::CENTER_CENTER.anchor_size(all.center(), galley.size());
    painter.galley(place.min, galley, accent);
}

/// Whether a file holds a sound, by its name: then it is the impulse response of a cabinet.
#[must_use]
pub fn is_sound(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    ["wav", "wave", "aif", "aiff", "flac"].iter().any(|known| end.eq_ignore_ascii_case(known))
}
