//! The header: model, preset, slots, bypass and panic.

use egui::{Button, Ui, vec2};
use ondes_processor::compare_slots::CompareSlot;

use crate::command::WindowCommand;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::panels::card;
use crate::panels::preset_menu::{self, PresetMenu};
use crate::scale;
use crate::theme::GAP;

/// Width of the buttons on the right, points.
const RIGHT: f32 = 288.0;

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, presets: &mut PresetMenu, browsing: &mut bool) {
    ui.horizontal_centered(|ui| {
        if icon::button(ui, Icon::List, "Browser", *browsing).clicked() {
            *browsing = !*browsing;
        }
        ui.add_space(GAP);
        if icon::button(ui, Icon::Left, "Previous model", false).clicked() {
            frame.push(WindowCommand::Previous);
        }
        if icon::button(ui, Icon::Right, "Next model", false).clicked() {
            frame.push(WindowCommand::Next);
        }
        ui.add_space(GAP);
        let beside = preset_menu::width(&frame.view);
        let width = (ui.available_width() - RIGHT - beside.map_or(0.0, |width| width + GAP)).max(80.0);
        card::show(ui, frame, width);
        if beside.is_some() {
            preset_menu::show(ui, frame, presets);
            ui.add_space(GAP);
        }
        slots(ui, frame);
        ui.add_space(GAP);
        let bypass = ui.add(Button::selectable(frame.view.bypass, "Bypass").frame_when_inactive(true));
        if bypass.clicked() {
            frame.push(WindowCommand::Bypass(!frame.view.bypass));
        }
        if ui.button("Panic").on_hover_text("Silence everything").clicked() {
            frame.push(WindowCommand::Panic);
        }
        scale::menu(ui, frame);
    });
}

/// Draws the slots A and B, and a button that copies the active one to the other.
fn slots(ui: &mut Ui, frame: &mut Frame<'_>) {
    let active = frame.view.slot;
    let other = active.other();
    ui.spacing_mut().item_spacing.x = 2.0;
    for slot in [CompareSlot::A, CompareSlot::B] {
        let button =
            Button::selectable(slot == active, slot.name()).frame_when_inactive(true).min_size(vec2(28.0, 26.0));
        if ui.add(button).on_hover_text(format!("Recall slot {}", slot.name())).clicked() && slot != active {
            frame.push(WindowCommand::RecallSlot(slot));
        }
    }
    let copy = format!("Copy to {}", other.name());
    if ui.button(&copy).on_hover_text(format!("Copy the present sound to slot {}", other.name())).clicked() {
        frame.push(WindowCommand::StoreSlot(other));
    }
    ui.spacing_mut().item_spacing.x = GAP;
}
