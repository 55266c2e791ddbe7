//! The menu of program changes: their numbers, and what they choose.

use egui::{Button, DragValue, Grid, Popup, PopupCloseBehavior, RichText, Ui};
use ondes_player::programs::{BANKS, PROGRAMS, ProgramNumber};

use crate::command::RigCommand;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme;

pub(super) fn menu(ui: &mut Ui, frame: &mut Frame<'_>) {
    let button = ui.button("Program changes");
    // It stays open while numbers are changed.
    Popup::menu(&button)
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show(|ui| theme::short_menu(ui, |ui| list(ui, frame)));
    button.on_hover_text("What MIDI program changes choose: scenes and presets");
}

fn list(ui: &mut Ui, frame: &mut Frame<'_>) {
    let programs = frame.view.rig.programs;
    if programs.is_empty() {
        ui.weak("0 to 7 choose the scenes");
    } else {
        Grid::new("programs").striped(true).show(ui, |ui| {
            for heading in ["Bank", "Program", "chooses"] {
                ui.label(RichText::new(heading).font(theme::small()).weak());
            }
            ui.end_row();
            for (place, (number, name)) in programs.iter().enumerate() {
                row(ui, frame, place, *number, name);
                ui.end_row();
            }
        });
    }
    ui.separator();
    if ui.button("Add this scene").clicked() {
        frame.push(RigCommand::AddSceneProgram);
    }
    let has_preset = frame.view.presets.name.is_some();
    let button = ui.add_enabled(has_preset, Button::new("Add this preset"));
    let hint = "Load a preset first";
    if button.on_disabled_hover_text(hint).clicked() {
        frame.push(RigCommand::AddPresetProgram);
    }
}

fn row(ui: &mut Ui, frame: &mut Frame<'_>, place: usize, number: ProgramNumber, name: &str) {
    let ProgramNumber {
        mut bank,
        mut program,
    } = number;
    let field = ui.add(DragValue::new(&mut bank).range(0..=BANKS - 1));
    let mut changed = field.accessible_name(format!("Bank of {name}")).changed();
    let field = ui.add(DragValue::new(&mut program).range(0..=PROGRAMS - 1));
    changed |= field
        .accessible_name(format!("Program of {name}"))
        .changed();
    if changed {
        frame.push(RigCommand::SetProgram(
            place,
            ProgramNumber { bank, program },
        ));
    }
    ui.label(name);
    let remove = icon::button(ui, Icon::Cross, &format!("Remove {name}"), false);
    if remove.clicked() {
        frame.push(RigCommand::RemoveProgram(place));
    }
}
