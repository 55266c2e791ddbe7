//! The top: what is played and how it is set, and what is always at hand.

use egui::{Button, Ui, vec2};

use super::card;
use super::command::Command;
use super::desk::Desk;
use super::icon::{self, Icon};
use super::presets::{self, Presets};
use super::scale;
use super::theme::GAP;
use super::view::Slot;

/// Room for the buttons on the right, points.
const RIGHT: f32 = 288.0;

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, presets: &mut Presets, browsing: &mut bool) {
    ui.horizontal_centered(|ui| {
        if icon::button(ui, Icon::List, "Browser", *browsing).clicked() {
            *browsing = !*browsing;
        }
        ui.add_space(GAP);
        if icon::button(ui, Icon::Left, "Previous model", false).clicked() {
            desk.tell(Command::Previous);
        }
        if icon::button(ui, Icon::Right, "Next model", false).clicked() {
            desk.tell(Command::Next);
        }
        ui.add_space(GAP);
        let beside = presets::width(&desk.view);
        let width = (ui.available_width() - RIGHT - beside.map_or(0.0, |width| width + GAP)).max(80.0);
        card::show(ui, desk, width);
        if beside.is_some() {
            presets::show(ui, desk, presets);
            ui.add_space(GAP);
        }
        slots(ui, desk);
        ui.add_space(GAP);
        let bypass = ui.add(Button::selectable(desk.view.bypass, "Bypass").frame_when_inactive(true));
        if bypass.clicked() {
            desk.tell(Command::Bypass(!desk.view.bypass));
        }
        if ui.button("Panic").on_hover_text("Silence everything").clicked() {
            desk.tell(Command::Panic);
        }
        scale::menu(ui, desk);
    });
}

/// A, B, and a copy of the one that is heard into the other.
fn slots(ui: &mut Ui, desk: &mut Desk<'_>) {
    let heard = desk.view.slot;
    let other = heard.other();
    ui.spacing_mut().item_spacing.x = 2.0;
    for slot in [Slot::A, Slot::B] {
        let button =
            Button::selectable(slot == heard, slot.name()).frame_when_inactive(true).min_size(vec2(28.0, 26.0));
        if ui.add(button).on_hover_text(format!("Hear setting {}", slot.name())).clicked() && slot != heard {
            desk.tell(Command::Recall(slot));
        }
    }
    let copy = format!("Copy to {}", other.name());
    if ui.button(&copy).on_hover_text(format!("Setting {} becomes what is heard", other.name())).clicked() {
        desk.tell(Command::Store(other));
    }
    ui.spacing_mut().item_spacing.x = GAP;
}
