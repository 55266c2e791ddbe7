//! Faders, meters and small buttons.

use egui::accesskit::Role;
use egui::{Align2, Button, FontId, Rect, Response, Sense, Slider, Ui, WidgetInfo, pos2, vec2};

use crate::rack::fader::{FaderSettings, LOUDEST_DB, SILENT_DB};

/// Sets the accessible label of a widget.
pub(super) fn named(ui: &Ui, response: Response, label: &str) -> Response {
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_label(label));
    response
}

/// Draws a toggle button and returns whether it was clicked.
pub(super) fn toggle(ui: &mut Ui, on: bool, text: &str, label: &str) -> bool {
    let button = Button::selectable(on, text)
        .frame_when_inactive(true)
        .min_size(vec2(24.0, 22.0));
    let response = ui.add(button).on_hover_text(label);
    named(ui, response, label).clicked()
}

/// Draws a small button without a frame and returns whether it was clicked.
pub(super) fn sign(ui: &mut Ui, text: &str, label: &str) -> bool {
    let response = ui
        .add(Button::new(text).frame(false).min_size(vec2(18.0, 22.0)))
        .on_hover_text(label);
    named(ui, response, label).clicked()
}

/// Draws a level slider with a width in points. Returns the new settings if it was moved.
pub(super) fn level(
    ui: &mut Ui,
    settings: FaderSettings,
    width: f32,
    label: &str,
) -> Option<FaderSettings> {
    let mut moved = settings;
    ui.spacing_mut().slider_width = width;
    let slider = Slider::new(&mut moved.level_db, SILENT_DB..=LOUDEST_DB)
        .show_value(false)
        .trailing_fill(true);
    let response = ui
        .add(slider)
        .on_hover_text(format!("{label}: {}", decibels(settings.level_db)));
    let response = named(ui, response, label);
    if response.double_clicked() {
        moved.level_db = 0.0;
    }
    (moved != settings).then_some(moved)
}

/// Draws a pan slider with a width in points. Returns the new settings if it was moved.
pub(super) fn pan(
    ui: &mut Ui,
    settings: FaderSettings,
    width: f32,
    label: &str,
) -> Option<FaderSettings> {
    let mut moved = settings;
    ui.spacing_mut().slider_width = width;
    let said = match (settings.pan * 100.0).round() {
        0.0 => "middle".into(),
        part if part < 0.0 => format!("{} % left", -part),
        part => format!("{part} % right"),
    };
    let slider = Slider::new(&mut moved.pan, -1.0..=1.0).show_value(false);
    let response = ui.add(slider).on_hover_text(format!("{label}: {said}"));
    let response = named(ui, response, label);
    if response.double_clicked() || moved.pan.abs() < 0.04 && moved != settings {
        moved.pan = 0.0;
    }
    (moved != settings).then_some(moved)
}

/// Draws a bar per channel.
pub(super) fn meter(ui: &mut Ui, peaks_db: &[f32], width: f32, height: f32, label: &str) {
    let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
    let highest = peaks_db.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, label));
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(decibels(highest)));
    response.on_hover_text(label);
    let visuals = ui.visuals();
    ui.painter()
        .rect_filled(rect, 2.0, visuals.extreme_bg_color);
    let each = rect.height() / peaks_db.len().max(1) as f32;
    for (channel, peak_db) in peaks_db.iter().enumerate() {
        let part = ((peak_db - SILENT_DB) / (6.0 - SILENT_DB)).clamp(0.0, 1.0);
        // The level of an empty block is NaN.
        let part = if part.is_nan() { 0.0 } else { part };
        let top = rect.top() + each * channel as f32 + 0.5;
        let bar = Rect::from_min_size(
            pos2(rect.left(), top),
            vec2(part * rect.width(), each - 1.0),
        );
        let ink = if *peak_db > 0.0 {
            visuals.error_fg_color
        } else {
            visuals.selection.bg_fill
        };
        ui.painter().rect_filled(bar, 1.0, ink);
    }
}

/// Draws a figure with a fixed width, so that nothing moves when it changes.
pub(super) fn figure(ui: &mut Ui, text: &str, width: f32, dim: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(width, 22.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, text));
    let ink = if dim {
        ui.visuals().weak_text_color()
    } else {
        ui.visuals().text_color()
    };
    ui.painter().text(
        rect.right_center(),
        Align2::RIGHT_CENTER,
        text,
        FontId::monospace(11.0),
        ink,
    );
    response
}

/// Shortens a text to a number of characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Formats a level in dB.
pub(super) fn decibels(db: f32) -> String {
    if db > SILENT_DB {
        format!("{db:.1} dB")
    } else {
        "silent".into()
    }
}
