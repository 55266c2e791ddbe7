//! The header: model, preset, undo, slots, bypass and panic; below them what the model is.

use egui::{Button, Modifiers, Ui, UiBuilder, vec2};
use ondes_player::compare_slots::CompareSlot;
use ondes_player::parameter::BYPASS;

use crate::command::{HistoryCommand, KnobCommand, ModelCommand, PlayCommand, RigCommand};
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::panels::preset_menu::{self, PresetMenu};
use crate::panels::{about, card};
use crate::scale;
use crate::shortcuts::{REDO, SCENE_KEYS, UNDO};
use crate::theme::GAP;

/// Width of the buttons on the right, points, and that of the buttons on the left.
const RIGHT: f32 = 354.0;
const LEFT: f32 = 94.0;
/// Height of the upper row, points, and that of both if the buttons do not fit into one.
const ROW: f32 = 40.0;
const NARROW_ROW: f32 = 37.0;

/// Handles the keys of scenes, undo and redo, unless text is being typed, which has its own.
pub(crate) fn handle_keys(ui: &Ui, frame: &mut Frame<'_>) {
    if ui.ctx().text_edit_focused() {
        return;
    }
    // With Shift first, which the shorter one ignores.
    for (scene, key) in SCENE_KEYS.into_iter().enumerate() {
        if ui.input_mut(|input| input.consume_key(Modifiers::ALT, key)) {
            frame.push(RigCommand::GoToScene(scene));
        }
    }
    if ui.input_mut(|input| input.consume_shortcut(&REDO)) {
        frame.push(HistoryCommand::Redo);
    } else if ui.input_mut(|input| input.consume_shortcut(&UNDO)) {
        frame.push(HistoryCommand::Undo);
    }
}

/// Draws one row of buttons above what the model is, or two rows of buttons, of which the lower
/// begins with the name.
pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    presets: &mut PresetMenu,
    browsing: &mut bool,
    is_wide: bool,
) {
    let row = if is_wide { ROW } else { NARROW_ROW };
    let (upper, lower) = ui
        .max_rect()
        .split_top_bottom_at_y(ui.max_rect().top() + row);
    ui.scope_builder(UiBuilder::new().max_rect(upper), |ui| {
        ui.horizontal_centered(|ui| {
            model_buttons(
                ui,
                frame,
                presets,
                browsing,
                if is_wide { RIGHT } else { 0.0 },
            );
            if is_wide {
                sound_buttons(ui, frame);
            }
        });
    });
    let (brand, rest) = lower.split_left_right_at_x(lower.left() + LEFT);
    about::brand(ui, frame.view.product, brand);
    if is_wide {
        card::subtitle(ui, frame, rest.with_min_x(rest.left() + GAP));
    } else {
        let buttons = rest.with_min_x(rest.right() - RIGHT);
        ui.scope_builder(UiBuilder::new().max_rect(buttons), |ui| {
            ui.horizontal_centered(|ui| sound_buttons(ui, frame));
        });
    }
}

/// Draws what chooses model and preset; `beside` is the width of what follows.
fn model_buttons(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    presets: &mut PresetMenu,
    browsing: &mut bool,
    beside: f32,
) {
    let hint = if *browsing {
        "Hide the list of models"
    } else {
        "Show the list of models"
    };
    if icon::button(ui, Icon::List, "Browser", *browsing)
        .on_hover_text(hint)
        .clicked()
    {
        *browsing = !*browsing;
    }
    if icon::button(ui, Icon::Left, "Previous model", false).clicked() {
        frame.push(ModelCommand::Previous);
    }
    if icon::button(ui, Icon::Right, "Next model", false).clicked() {
        frame.push(ModelCommand::Next);
    }
    let preset = preset_menu::width(frame.view.presets);
    let width = (ui.available_width() - beside - preset.map_or(0.0, |width| width + GAP)).max(80.0);
    card::show(ui, frame, width);
    if preset.is_some() {
        preset_menu::show(ui, frame, presets);
        ui.add_space(GAP);
    }
}

/// Draws undo, slots, bypass, panic and the window's menu.
fn sound_buttons(ui: &mut Ui, frame: &mut Frame<'_>) {
    undo(ui, frame);
    ui.add_space(GAP);
    slots(ui, frame);
    ui.add_space(GAP);
    let bypass = frame.view.mixer.bypass;
    if ui
        .add(Button::selectable(bypass, "Bypass").frame_when_inactive(true))
        .on_hover_text("Pass the input through unchanged")
        .clicked()
    {
        frame.push(KnobCommand::SetParameter(BYPASS, f32::from(!bypass)));
    }
    if ui
        .button("Panic")
        .on_hover_text("Silence everything")
        .clicked()
    {
        frame.push(PlayCommand::Panic);
    }
    scale::menu(ui, frame);
}

/// Draws the buttons for undo and redo.
fn undo(ui: &mut Ui, frame: &mut Frame<'_>) {
    ui.spacing_mut().item_spacing.x = 2.0;
    let view = frame.view.history;
    let buttons = [
        (Icon::Undo, "Undo", view.undo, UNDO, HistoryCommand::Undo),
        (Icon::Redo, "Redo", view.redo, REDO, HistoryCommand::Redo),
    ];
    for (icon, name, change, shortcut, command) in buttons {
        let keys = ui.ctx().format_shortcut(&shortcut);
        let tooltip = match change {
            Some(change) => format!("{name}: {change} ({keys})"),
            None => format!("Nothing to {}", name.to_lowercase()),
        };
        let response = ui
            .add_enabled_ui(change.is_some(), |ui| {
                icon::button_for(ui, icon, name, false)
            })
            .inner;
        if response
            .on_hover_text(&tooltip)
            .on_disabled_hover_text(&tooltip)
            .clicked()
        {
            frame.push(command);
        }
    }
    ui.spacing_mut().item_spacing.x = GAP;
}

/// Draws the slots A and B, and a button that copies the active one to the other.
fn slots(ui: &mut Ui, frame: &mut Frame<'_>) {
    let active = frame.view.history.slot;
    let other = active.other();
    ui.spacing_mut().item_spacing.x = 2.0;
    for slot in [CompareSlot::A, CompareSlot::B] {
        let button = Button::selectable(slot == active, slot.name())
            .frame_when_inactive(true)
            .min_size(vec2(28.0, 26.0));
        let hint = format!("Compare: play the sound in slot {}", slot.name());
        if ui.add(button).on_hover_text(hint).clicked() && slot != active {
            frame.push(HistoryCommand::RecallSlot(slot));
        }
    }
    let copy = format!("Copy to {}", other.name());
    if ui
        .button(&copy)
        .on_hover_text(format!("Copy the present sound to slot {}", other.name()))
        .clicked()
    {
        frame.push(HistoryCommand::StoreSlot(other));
    }
    ui.spacing_mut().item_spacing.x = GAP;
}
