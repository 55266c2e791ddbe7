//! The latents of a codec: scale, offset and hold for each.

use egui::accesskit::Role;
use egui::{Align2, Button, Rect, RichText, ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2};

use crate::frame::Frame;
use crate::knob;
use crate::knob_gesture::{knob_position, set_knob};
use crate::theme::{self, GAP, Palette};
use crate::view::LatentRow;

const ROW: f32 = 27.0;
/// Rows that are visible at once at least; more of them in a high window.
const SEEN: f32 = 6.0;
const NAME: f32 = 78.0;
const HOLD: f32 = 46.0;
const METER: f32 = 86.0;

/// Areas of a row, from left to right.
struct Columns([Rect; 5]);

impl Columns {
    fn new(row: Rect) -> Self {
        let bars = ((row.width() - NAME - HOLD - METER - 4.0 * GAP) / 2.0).max(30.0);
        let mut left = row.left();
        Self([NAME, bars, bars, HOLD, METER].map(|width| {
            let part = Rect::from_min_max(
                pos2(left, row.top() + 1.0),
                pos2(left + width, row.bottom() - 2.0),
            );
            left += width + GAP;
            part
        }))
    }
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>) {
    let palette = Palette::current(ui);
    let (head, _) = ui.allocate_exact_size(vec2(ui.available_width(), 14.0), Sense::hover());
    for (part, caption) in Columns::new(head)
        .0
        .into_iter()
        .zip(["Latent", "Scale", "Offset", "", "Now"])
    {
        ui.painter().text(
            part.left_center(),
            Align2::LEFT_CENTER,
            caption,
            theme::small(),
            palette.dim,
        );
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    ui.spacing_mut().button_padding.x = 4.0;
    let height = (0.42 * ui.available_height()).max(SEEN * ROW);
    ScrollArea::vertical()
        .max_height(height)
        .auto_shrink([false, true])
        .show(ui, |ui| {
            for latent in frame.view.knobs.latents {
                let (row, _) =
                    ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::hover());
                show_one(ui, frame, latent, &Columns::new(row));
            }
        });
}

fn show_one(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    latent: &LatentRow,
    Columns([name, scale, offset, hold, meter]): &Columns,
) {
    let palette = Palette::current(ui);
    let galley = theme::fit(
        ui.painter(),
        &latent.name,
        egui::FontId::proportional(13.0),
        name.width(),
        palette.text,
    );
    let place = Align2::LEFT_CENTER.anchor_size(name.left_center(), galley.size());
    ui.painter().galley(place.min, galley, palette.text);
    knob::bar(ui, frame, &latent.scale, *scale);
    knob::bar(ui, frame, &latent.offset, *offset);

    let held = knob_position(&latent.hold) >= 0.5;
    let text = RichText::new("Hold").font(theme::small());
    let button = Button::selectable(held, text).frame_when_inactive(true);
    let hint = format!("Keep {} at its present value", latent.name);
    if ui
        .put(*hold, button)
        .accessible_name(&latent.hold.name)
        .on_hover_text(hint)
        .clicked()
    {
        set_knob(
            &latent.hold,
            if held { 0.0 } else { 1.0 },
            &mut frame.commands,
        );
    }
    show_value(ui, latent, *meter);
}

/// Draws the value as a bar from the middle to either side.
fn show_value(ui: &Ui, latent: &LatentRow, rect: Rect) {
    let palette = Palette::current(ui);
    let value = if latent.value.is_nan() {
        0.0
    } else {
        latent.value.clamp(-1.0, 1.0)
    };
    let response = ui.interact(
        rect,
        ui.scope_id().with(("latent", latent.scale.id)),
        Sense::hover(),
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, format!("{} now", latent.name)));
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(format!("{value:+.2}")));
    response.on_hover_text("Present value, -1 … 1");

    let painter = ui.painter();
    let track = Rect::from_center_size(rect.center(), vec2(rect.width(), 7.0));
    painter.rect_filled(track, 2.0, palette.line);
    let tip = track.center().x + value * track.width() / 2.0;
    let mut bar = track;
    (bar.min.x, bar.max.x) = (tip.min(track.center().x), tip.max(track.center().x));
    painter.rect_filled(bar, 1.0, palette.accent);
    painter.vline(
        track.center().x,
        track.y_range().expand(2.0),
        (1.0, palette.dim),
    );
}
