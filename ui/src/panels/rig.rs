//! Blocks before and after the model.

use egui::{
    Button, Checkbox, ComboBox, Grid, Label, Response, RichText, ScrollArea, Slider, TextEdit, Ui,
};
use ondes_engine::effects::{EFFECTS, EffectParameter};
use ondes_engine::model::Kind;
use ondes_engine::rig::blocks::MAX_BLOCKS;
use ondes_player::cabinet::bundled;
use ondes_player::rig::block_state::{BlockState, LEVELS_DB, MODEL, RESPONSE};
use ondes_player::rig::scene::{SCENES, Scenes};

use crate::command::{FileCommand, FilePurpose, RigCommand};
use crate::frame::Frame;
use crate::theme::{self, GAP, Palette};
use crate::view::{ModelEntry, RigView};

/// Width of a slider with its name, points.
const SLIDER: f32 = 235.0;
/// Longest name of a scene, characters.
const NAME: usize = 40;
/// Height of the lists of models and impulse responses, points.
const LIST: f32 = 320.0;

/// Result of a frame.
#[derive(Default)]
struct Outcome {
    changed: bool,
    /// The change is a step of undo, rather than part of a movement that goes on.
    finished: bool,
}

impl Outcome {
    fn done(&mut self) {
        (self.changed, self.finished) = (true, true);
    }

    fn of(&mut self, response: &Response) {
        self.changed |= response.changed();
        self.finished |= response.drag_stopped() || response.changed() && !response.dragged();
    }
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, rig: RigView<'_>) {
    let mut list = rig.blocks.to_vec();
    let mut outcome = Outcome::default();
    scenes(ui, frame, rig.scenes);
    add_menu(ui, frame, &mut list, &mut outcome);
    ui.add_space(GAP);
    ScrollArea::vertical()
        .auto_shrink([false, true])
        .show(ui, |ui| {
            let mut place = 0;
            for before in [true, false] {
                if !before && !list.is_empty() {
                    ui.label(RichText::new("Model").font(theme::small()).weak());
                }
                while place < list.len() && list[place].before == before {
                    let count = list.len();
                    let problem = rig.problems.get(place).and_then(Option::as_deref);
                    ui.push_id(place, |ui| block(ui, &mut list, place, problem, &mut outcome));
                    // One that was removed has left its place to the next.
                    place += usize::from(list.len() == count);
                }
            }
            if list.is_empty() {
                ui.weak("No blocks: add a pedal, a delay or an impulse response before or after the model");
            }
        });
    if outcome.changed {
        // Those before the model come first.
        list.sort_by_key(|block| !block.before);
        frame.push(RigCommand::Change(list));
    }
    if outcome.finished {
        frame.push(RigCommand::Finish);
    }
}

/// Draws the scenes, and the name of the one that is heard.
fn scenes(ui: &mut Ui, frame: &mut Frame<'_>, scenes: &Scenes) {
    ui.horizontal(|ui| {
        let label = ui.label(RichText::new("Scene").font(theme::small()).weak());
        for index in 0..SCENES {
            let scene = scenes.get(index);
            let is_active = index == scenes.active;
            let number = RichText::new((index + 1).to_string());
            let number = if scene.is_some() || is_active {
                number
            } else {
                number.weak()
            };
            let hint = match scene.map(|scene| scene.name.as_str()) {
                Some(name) if !name.is_empty() => name.to_owned(),
                Some(_) => format!("Scene {}", index + 1),
                None if is_active => "The only scene".into(),
                None => "Not used yet: begins as a copy of this one".into(),
            };
            let button = ui.add(Button::selectable(is_active, number));
            let button = button.on_hover_text(format!("{hint} (Alt+{})", index + 1));
            if button.clicked() {
                frame.push(RigCommand::GoToScene(index));
            }
        }
        let now = scenes.get(scenes.active).map_or("", |scene| &scene.name);
        let mut name = now.to_owned();
        let field = TextEdit::singleline(&mut name)
            .hint_text("Name")
            .char_limit(NAME)
            .desired_width(140.0);
        if ui.add(field).labelled_by(label.id).changed() {
            frame.push(RigCommand::NameScene(name));
        }
    });
    ui.add_space(GAP);
}

fn add_menu(ui: &mut Ui, frame: &mut Frame<'_>, list: &mut Vec<BlockState>, outcome: &mut Outcome) {
    ui.horizontal(|ui| {
        ui.add_enabled_ui(list.len() < MAX_BLOCKS, |ui| {
            ui.menu_button("Add effect", |ui| {
                theme::menu(ui);
                for kind in EFFECTS {
                    let item = theme::item(ui, Button::new(kind.name));
                    if item.on_hover_text(kind.description).clicked() {
                        list.push(BlockState::of_effect(kind));
                        outcome.done();
                    }
                }
            })
            .response
            .on_hover_text("An effect of Ondes, after the model; it can be moved before it");
            ui.menu_button("Add model", |ui| {
                theme::menu(ui);
                models(ui, frame);
            })
            .response
            .on_hover_text("Another capture or codec, after the model; it can be moved before it");
            ui.menu_button("Add impulse response", |ui| {
                theme::menu(ui);
                responses(ui, frame);
            })
            .response
            .on_hover_text("A cabinet or a room, after the model; it can be moved before it");
        });
    });
}

/// Offers the models that process sound.
fn models(ui: &mut Ui, frame: &mut Frame<'_>) {
    let models = frame.view.models.list.iter();
    let fitting: Vec<&ModelEntry> = models
        .filter(|model| matches!(model.kind, Kind::Effect | Kind::Codec))
        .collect();
    let height = ui.spacing().interact_size.y;
    ScrollArea::vertical()
        .max_height(LIST)
        .show_rows(ui, height, fitting.len(), |ui, rows| {
            for model in &fitting[rows] {
                let item = theme::item(ui, Button::new(&model.name));
                if item.on_hover_text(&model.about).clicked() {
                    frame.push(RigCommand::Add(BlockState::of_file(
                        MODEL,
                        &model.name,
                        model.path.as_deref(),
                    )));
                }
            }
        });
    browse(ui, frame, FilePurpose::ModelBlock);
}

/// Offers the impulse responses that are bundled, and those of the user.
fn responses(ui: &mut Ui, frame: &mut Frame<'_>) {
    for cabinet in &bundled::BUNDLED {
        let item = theme::item(ui, Button::new(cabinet.name));
        if item.on_hover_text(cabinet.description).clicked() {
            frame.push(RigCommand::Add(BlockState::of_file(
                RESPONSE,
                cabinet.name,
                None,
            )));
        }
    }
    let files = frame.view.chain.cabinets;
    let height = ui.spacing().interact_size.y;
    ScrollArea::vertical()
        .max_height(LIST)
        .show_rows(ui, height, files.len(), |ui, rows| {
            for path in &files[rows] {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let item = theme::item(ui, Button::new(&*name));
                if item.on_hover_text(path.display().to_string()).clicked() {
                    frame.push(RigCommand::Add(BlockState::of_file(
                        RESPONSE,
                        "",
                        Some(path),
                    )));
                }
            }
        });
    browse(ui, frame, FilePurpose::ResponseBlock);
}

fn browse(ui: &mut Ui, frame: &mut Frame<'_>, purpose: FilePurpose) {
    if frame.view.can_browse {
        ui.separator();
        if theme::item(ui, Button::new("Choose a file…")).clicked() {
            frame.push(FileCommand::Browse(purpose));
        }
    }
}

/// Draws a block: what it is and where, and its knobs.
fn block(
    ui: &mut Ui,
    list: &mut Vec<BlockState>,
    place: usize,
    problem: Option<&str>,
    outcome: &mut Outcome,
) {
    let name = list[place].name().into_owned();
    ui.horizontal(|ui| {
        let mut on = !list[place].off;
        let hint = list[place].kind().map_or("", |kind| kind.description);
        let mut toggle = ui.add(Checkbox::new(&mut on, &name));
        if !hint.is_empty() {
            toggle = toggle.on_hover_text(hint);
        }
        if toggle.changed() {
            list[place].off = !on;
            outcome.done();
        }
        let button = |ui: &mut Ui, text: &str, hint: &str| {
            let button = ui.small_button(text).on_hover_text(hint);
            button.clicked()
        };
        if button(
            ui,
            "Up",
            "Move it towards the input; the first after the model goes before it",
        ) {
            move_up(list, place);
            outcome.done();
        }
        if button(
            ui,
            "Down",
            "Move it towards the output; the last before the model goes after it",
        ) {
            move_down(list, place);
            outcome.done();
        }
        if button(ui, "Remove", "Remove the block") {
            list.remove(place);
            outcome.done();
        }
    });
    if let Some(problem) = problem {
        let text = RichText::new(problem)
            .font(theme::small())
            .color(Palette::current(ui).error);
        ui.label(text);
    }
    if let Some(state) = list.get_mut(place) {
        knobs(ui, state, outcome);
    }
    ui.add_space(GAP);
}

fn move_up(list: &mut [BlockState], place: usize) {
    let is_first_after = place == 0 || list[place - 1].before;
    if !list[place].before && is_first_after {
        list[place].before = true;
    } else if place > 0 {
        list.swap(place - 1, place);
    }
}

fn move_down(list: &mut [BlockState], place: usize) {
    let is_last_before = list.get(place + 1).is_none_or(|next| !next.before);
    if list[place].before && is_last_before {
        list[place].before = false;
    } else if place + 1 < list.len() {
        list.swap(place, place + 1);
    }
}

fn knobs(ui: &mut Ui, state: &mut BlockState, outcome: &mut Outcome) {
    let Some(kind) = state.kind() else { return };
    let mut changes = Vec::new();
    let mut mix = state.mix();
    let mut level_db = state.level_db();
    let before = (mix, level_db);
    let columns = ((ui.available_width() / SLIDER) as usize).max(1);
    Grid::new("knobs").show(ui, |ui| {
        let mut column = 0;
        let mut end_cell = |ui: &mut Ui| {
            column += 1;
            if column % columns == 0 {
                ui.end_row();
            }
        };
        for parameter in kind.parameters {
            let mut value = state.value(parameter);
            if turn(ui, parameter, &mut value, outcome) {
                changes.push((parameter.clone(), value));
            }
            end_cell(ui);
        }
        let share = EffectParameter {
            id: "mix".into(),
            name: "Mix".into(),
            unit: "".into(),
            range: [0.0, 1.0],
            default: kind.mix,
            is_logarithmic: false,
            options: &[],
        };
        turn(ui, &share, &mut mix, outcome);
        end_cell(ui);
        let level = EffectParameter {
            id: "level".into(),
            name: "Level".into(),
            unit: " dB".into(),
            range: LEVELS_DB,
            default: 0.0,
            ..share
        };
        turn(ui, &level, &mut level_db, outcome);
        end_cell(ui);
    });
    for (parameter, value) in changes {
        state.set_value(&parameter, value);
    }
    if mix.to_bits() != before.0.to_bits() {
        state.mix = Some(mix);
    }
    if level_db.to_bits() != before.1.to_bits() {
        state.level = level_db;
    }
}

/// Draws the name and the slider, or the choice, of a parameter; returns whether it has changed.
fn turn(ui: &mut Ui, parameter: &EffectParameter, value: &mut f32, outcome: &mut Outcome) -> bool {
    let label = ui.add(Label::new(
        RichText::new(&*parameter.name).font(theme::small()).weak(),
    ));
    if parameter.options.is_empty() {
        let [least, largest] = parameter.range;
        let slider = Slider::new(value, least..=largest)
            .logarithmic(parameter.is_logarithmic)
            .suffix(&*parameter.unit)
            .max_decimals(2);
        let response = ui.add(slider).labelled_by(label.id);
        outcome.of(&response);
        return response.changed();
    }
    let before = *value;
    let shown = parameter
        .options
        .get(*value as usize)
        .copied()
        .unwrap_or_default();
    let choice = ComboBox::from_id_salt(&*parameter.id)
        .selected_text(shown)
        .show_ui(ui, |ui| {
            for (place, option) in parameter.options.iter().enumerate() {
                ui.selectable_value(value, place as f32, *option);
            }
        });
    choice.response.labelled_by(label.id);
    let changed = before.to_bits() != value.to_bits();
    if changed {
        outcome.done();
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(list: &[BlockState]) -> Vec<(&str, bool)> {
        let places = list.iter();
        places
            .map(|block| (block.block.as_str(), block.before))
            .collect()
    }

    #[test]
    fn blocks_move_past_one_another_and_the_model() {
        let state = |id: &str| BlockState {
            block: id.into(),
            ..BlockState::default()
        };
        let mut list = vec![state("a"), state("b")];
        move_up(&mut list, 1);
        assert_eq!(order(&list), [("b", false), ("a", false)]);
        move_up(&mut list, 0);
        assert_eq!(order(&list), [("b", true), ("a", false)]);
        move_up(&mut list, 0);
        assert_eq!(order(&list), [("b", true), ("a", false)]);
        move_up(&mut list, 1);
        assert_eq!(order(&list), [("b", true), ("a", true)]);
        move_down(&mut list, 0);
        assert_eq!(order(&list), [("a", true), ("b", true)]);
        move_down(&mut list, 1);
        assert_eq!(order(&list), [("a", true), ("b", false)]);
        move_down(&mut list, 1);
        assert_eq!(order(&list), [("a", true), ("b", false)]);
    }
}
