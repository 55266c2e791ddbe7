//! The top: what is played, by whom, how good; and what is always at hand.

use egui::{Align, Button, Layout, RichText, Ui, vec2};

use super::desk::Desk;
use super::icon::{self, Icon};
use super::scale;
use super::theme::{self, GAP};
use super::view::{Command, Slot};
use super::words;

/// Room for the buttons on the right, points.
const RIGHT: f32 = 288.0;

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, browsing: &mut bool) {
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
        let width = (ui.available_width() - RIGHT).max(80.0);
        ui.allocate_ui_with_layout(vec2(width, ui.available_height()), Layout::top_down(Align::Min), |ui| {
            ui.set_min_width(width);
            ui.spacing_mut().item_spacing.y = 1.0;
            ui.add_space(7.0);
            title(ui, desk);
        });
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

fn title(ui: &mut Ui, desk: &Desk<'_>) {
    let Some(model) = desk.view.model else {
        ui.add(egui::Label::new(RichText::new("No model").font(theme::heading())).truncate());
        ui.add(
            egui::Label::new(RichText::new("Choose one in the browser, or drop a file here").small().weak()).truncate(),
        );
        return;
    };
    let name = ui.add(egui::Label::new(RichText::new(&model.card.name).font(theme::heading()).strong()).truncate());
    if !model.card.description.is_empty() {
        name.on_hover_text(&model.card.description);
    }
    let quality = words::quality_line(model.card);
    let facts = [words::kind(model.kind), &model.card.author, &quality];
    let line = facts.into_iter().filter(|fact| !fact.is_empty()).collect::<Vec<_>>().join("  ·  ");
    ui.add(egui::Label::new(RichText::new(line).small().weak()).truncate());
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
