//! Choice of a TorchScript program's method, and of its settings that are no numbers.

use egui::{Button, ComboBox, PopupCloseBehavior, Ui};
use ondes_engine::media::display_name;
use ondes_engine::model::program::{ProgramOptions, Setting, SettingKind};

use crate::command::{EngineCommand, FileCommand, FilePurpose};
use crate::frame::Frame;
use crate::panels::executor_menu::row;
use crate::theme::{self, GAP};
use crate::view::ProgramView;

/// Width of the box and of a text field, points.
const BOX: f32 = 128.0;
const TEXT: f32 = 160.0;

/// Returns whether there is a choice to show.
pub(crate) fn is_shown(program: Option<ProgramView<'_>>) -> bool {
    program.as_ref().is_some_and(has_choice)
}

fn has_choice(program: &ProgramView<'_>) -> bool {
    program.methods.len() > 1 || !program.settings.is_empty()
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>) {
    let Some(program) = frame.view.engine.program.filter(has_choice) else {
        return;
    };
    ui.add_space(GAP);
    ui.weak("Method");
    let is_chosen = |method: &Option<String>| *method == program.options.method;
    let chosen = program
        .methods
        .iter()
        .find(|choice| is_chosen(&choice.method));
    let combo = ComboBox::from_id_salt("method").width(BOX).truncate();
    let combo = combo.selected_text(chosen.map_or("–", |choice| choice.name.as_str()));
    let shown = combo
        .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
        .show_ui(ui, |ui| {
            theme::menu(ui);
            for choice in program.methods {
                if theme::item(
                    ui,
                    Button::selectable(is_chosen(&choice.method), choice.name.as_str()),
                )
                .clicked()
                {
                    let options = ProgramOptions {
                        method: choice.method.clone(),
                        ..program.options.clone()
                    };
                    frame.push(EngineCommand::SetProgram(options));
                }
            }
            if !program.settings.is_empty() {
                ui.separator();
            }
            for (index, setting) in program.settings.iter().enumerate() {
                row(ui, &setting.name, |ui| match setting.kind {
                    SettingKind::Text(_) => text(ui, frame, program, setting),
                    SettingKind::Sound(_) => sound(ui, frame, program, index),
                });
            }
        });
    let hint = "Method of the TorchScript model to play, and its settings";
    shown.response.accessible_name("Method").on_hover_text(hint);
}

/// Draws a text, which counts once it is entered.
fn text(ui: &mut Ui, frame: &mut Frame<'_>, program: ProgramView<'_>, setting: &Setting) {
    let current = program
        .options
        .texts
        .get(&setting.name)
        .unwrap_or(&setting.value);
    let id = ui.scope_id().with(("setting", &setting.name));
    let mut text = ui
        .data(|data| data.get_temp::<String>(id))
        .unwrap_or_else(|| current.clone());
    let response = ui.add(egui::TextEdit::singleline(&mut text).desired_width(TEXT));
    if response.changed() {
        ui.data_mut(|data| data.insert_temp(id, text.clone()));
    }
    if response.lost_focus() {
        ui.data_mut(|data| data.remove::<String>(id));
        if text != *current {
            let mut options = program.options.clone();
            options.texts.insert(setting.name.clone(), text);
            frame.push(EngineCommand::SetProgram(options));
        }
    }
    response.accessible_name(setting.name.as_str());
}

/// Draws the name of a sound file, and what opens and removes one.
fn sound(ui: &mut Ui, frame: &mut Frame<'_>, program: ProgramView<'_>, index: usize) {
    let name = &program.settings[index].name;
    let file = program.options.sounds.get(name);
    let label = file.map_or_else(|| "Open …".to_owned(), |path| display_name(path));
    let open = ui.add_enabled(frame.view.can_browse, Button::new(label));
    if open.clicked() {
        frame.push(FileCommand::Browse(FilePurpose::Sound(index)));
    }
    open.accessible_name(format!("Open a sound for {name}"));
    if file.is_some() {
        let remove = ui.button("None");
        if remove.clicked() {
            let mut options = program.options.clone();
            options.sounds.remove(name);
            frame.push(EngineCommand::SetProgram(options));
        }
        remove.accessible_name(format!("No sound for {name}"));
    }
}
