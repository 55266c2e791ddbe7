//! Scale and theme of the window.

use egui::{Button, Key, Modifiers, Popup, ThemePreference, Ui};

use crate::command::DisplayCommand;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme;

/// Scales offered in the menu; 1 is 100 %.
pub const SCALES: [f32; 6] = [0.75, 1.0, 1.25, 1.5, 1.75, 2.0];

/// Clamps a scale to 0.75 … 2; 1 for NaN.
#[must_use]
pub fn clamp_scale(scale: f32) -> f32 {
    if scale.is_nan() {
        1.0
    } else {
        scale.clamp(SCALES[0], SCALES[SCALES.len() - 1])
    }
}

/// Applies the scale; Ctrl with plus, minus and 0 request another one.
pub(crate) fn apply(ui: &Ui, frame: &mut Frame<'_>) {
    let scale = clamp_scale(frame.view.scale);
    ui.ctx().set_zoom_factor(scale);
    let requested = ui.input_mut(|input| {
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
    if let Some(requested) = requested.filter(|requested| *requested != scale) {
        frame.push(DisplayCommand::SetScale(requested));
    }
}

pub(crate) fn menu(ui: &mut Ui, frame: &mut Frame<'_>) {
    let button = icon::button(ui, Icon::More, "Window", false)
        .on_hover_text("Scale and theme of the window");
    Popup::menu(&button).show(|ui| theme::short_menu(ui, |ui| entries(ui, frame)));
}

fn entries(ui: &mut Ui, frame: &mut Frame<'_>) {
    let view = frame.view;
    ui.weak("Scale");
    for scale in SCALES {
        let label = format!("{} %", (scale * 100.0).round());
        if theme::item(
            ui,
            Button::selectable(clamp_scale(view.scale) == scale, label),
        )
        .clicked()
        {
            frame.push(DisplayCommand::SetScale(scale));
        }
    }
    ui.separator();
    ui.weak("Theme");
    let themes = [
        (ThemePreference::System, "System"),
        (ThemePreference::Dark, "Dark"),
        (ThemePreference::Light, "Light"),
    ];
    for (one, label) in themes {
        if theme::item(ui, Button::selectable(view.theme == one, label)).clicked() {
            frame.push(DisplayCommand::SetTheme(one));
        }
    }
}
