//! How large the window is, and whether dark or light.

use egui::{Button, Key, Modifiers, Popup, ThemePreference, Ui};

use super::command::Command;
use super::desk::Desk;
use super::icon::{self, Icon};
use super::theme;

/// The sizes that are offered, 1 is 100 %.
pub const SCALES: [f32; 6] = [0.75, 1.0, 1.25, 1.5, 1.75, 2.0];

/// The nearest size that can be drawn, 0.75 … 2; 1 for what is no number.
#[must_use]
pub fn clamp_scale(scale: f32) -> f32 {
    if scale.is_nan() { 1.0 } else { scale.clamp(SCALES[0], SCALES[SCALES.len() - 1]) }
}

/// Draws everything as large as the owner says; Ctrl with plus, minus and 0 ask for another size.
pub(crate) fn apply(ui: &Ui, desk: &mut Desk<'_>) {
    let scale = clamp_scale(desk.view.scale);
    ui.ctx().set_zoom_factor(scale);
    let wanted = ui.input_mut(|input| {
        let mut pressed = |key| input.consume_key(Modifiers::COMMAND, key);
        if pressed(Key::Plus) || pressed(Key::Equals) {
            SCALES.into_iter().find(|one| *one > scale)
        } else if pressed(Key::Minus) {
            SCALES.into_iter().rev().find(|one| *one < scale)
        } else if pressed(Key::Num0) {
            Some(1.0)
        } else {
            None
        }
    });
    if let Some(wanted) = wanted.filter(|wanted| *wanted != scale) {
        desk.tell(Command::Scale(wanted));
    }
}

pub(crate) fn menu(ui: &mut Ui, desk: &mut Desk<'_>) {
    let view = desk.view;
    let button = icon::button(ui, Icon::More, "Window", false);
    Popup::menu(&button).show(|ui| {
        theme::menu(ui);
        ui.weak("Size");
        for scale in SCALES {
            let label = format!("{} %", (scale * 100.0).round());
            if theme::item(ui, Button::selectable(clamp_scale(view.scale) == scale, label)).clicked() {
                desk.tell(Command::Scale(scale));
            }
        }
        ui.separator();
        ui.weak("Theme");
        let themes = [
            (ThemePreference::System, "As the system"),
            (ThemePreference::Dark, "Dark"),
            (ThemePreference::Light, "Light"),
        ];
        for (one, label) in themes {
            if theme::item(ui, Button::selectable(view.theme == one, label)).clicked() {
                desk.tell(Command::Theme(one));
            }
        }
    });
}
