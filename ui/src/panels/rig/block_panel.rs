//! The chosen block of a rig: what it is and where, its knobs, and the mix of the branches.

use egui::{Checkbox, ComboBox, DragValue, Grid, Label, RichText, Slider, SliderClamping, Ui};
use ondes_engine::effects::EffectParameter;
use ondes_player::rig::block_state::{BlockState, LEVELS_DB};
use ondes_player::rig::branch_state::{self, Branch, BranchState, MAX_DELAY_MS};

use super::Outcome;
use crate::theme::{self, GAP, Palette};

/// Width of a slider with its name, points.
const SLIDER: f32 = 235.0;

/// Draws the chosen block: what it is and where, and its knobs.
pub(super) fn show(
    ui: &mut Ui,
    list: &mut Vec<BlockState>,
    place: &mut usize,
    problem: Option<&str>,
    outcome: &mut Outcome,
) {
    let name = list[*place].name().into_owned();
    ui.horizontal(|ui| {
        let mut on = !list[*place].off;
        let toggle = ui.add(Checkbox::new(&mut on, &name));
        if toggle.on_hover_text("On, or passed unchanged").changed() {
            list[*place].off = !on;
            outcome.done();
        }
        let button = |ui: &mut Ui, text: &str, hint: &str| {
            let button = ui.small_button(text).on_hover_text(hint);
            button.clicked()
        };
        if button(ui, "Earlier", "Move it towards the input, past the model") {
            *place = move_up(list, *place);
            outcome.done();
        }
        if button(ui, "Later", "Move it towards the output, past the model") {
            *place = move_down(list, *place);
            outcome.done();
        }
        branch_choice(ui, &mut list[*place], outcome);
        if button(ui, "Remove", "Remove the block") {
            list.remove(*place);
            *place = place.saturating_sub(usize::from(*place == list.len()));
            outcome.done();
        }
    });
    if let Some(problem) = problem {
        let text = RichText::new(problem)
            .font(theme::small())
            .color(Palette::current(ui).error);
        ui.label(text);
    }
    if let Some(state) = list.get_mut(*place) {
        ui.push_id(state.block.clone(), |ui| knobs(ui, state, outcome));
    }
}

/// Chooses the branch of a block.
fn branch_choice(ui: &mut Ui, block: &mut BlockState, outcome: &mut Outcome) {
    let before = block.branch;
    let choice = ComboBox::from_id_salt("branch")
        .width(70.0)
        .selected_text(branch_name(block.branch))
        .show_ui(ui, |ui| {
            for branch in [None, Some(Branch::A), Some(Branch::B)] {
                ui.selectable_value(&mut block.branch, branch, branch_name(branch));
            }
        });
    choice.response.accessible_name("Branch").on_hover_text(
        "Neighbours in branches A and B play side by side, and are mixed after them",
    );
    if block.branch != before {
        outcome.done();
    }
}

pub(super) fn branch_name(branch: Option<Branch>) -> &'static str {
    match branch {
        None => "No branch",
        Some(Branch::A) => "Branch A",
        Some(Branch::B) => "Branch B",
    }
}

/// Draws how the branches are mixed.
pub(super) fn mix_branches(ui: &mut Ui, branches: &mut [BranchState; 2], outcome: &mut Outcome) {
    ui.add_space(GAP);
    for (branch, name) in branches.iter_mut().zip(["Branch A", "Branch B"]) {
        *branch = branch.valid();
        ui.push_id(name, |ui| {
            ui.horizontal(|ui| {
                ui.label(RichText::new(name).font(theme::small()));
                let values = [
                    (
                        "Level",
                        " dB",
                        0.1,
                        branch_state::LEVELS_DB,
                        &mut branch.level,
                    ),
                    ("Pan", "", 0.01, [-1.0, 1.0], &mut branch.pan),
                    ("Delay", " ms", 0.01, [0.0, MAX_DELAY_MS], &mut branch.delay),
                ];
                for (name, unit, speed, [least, largest], value) in values {
                    let label = ui.label(RichText::new(name).font(theme::small()).weak());
                    let field = DragValue::new(value)
                        .range(least..=largest)
                        .speed(speed)
                        .max_decimals(2)
                        .suffix(unit);
                    let response = ui.add(field).labelled_by(label.id);
                    let hint = "Drag to the side, or click and type";
                    outcome.of(&response.on_hover_text(hint));
                }
                let invert = ui.add(Checkbox::new(&mut branch.inverted, "Invert"));
                if invert.on_hover_text("Inverted polarity").changed() {
                    outcome.done();
                }
            });
        });
    }
}

/// Moves a block past the one before it, or past the model; returns its place.
fn move_up(list: &mut [BlockState], place: usize) -> usize {
    let is_first_after = place == 0 || list[place - 1].before;
    if !list[place].before && is_first_after {
        list[place].before = true;
    } else if place > 0 {
        list.swap(place - 1, place);
        return place - 1;
    }
    place
}

/// Moves a block past the one after it, or past the model; returns its place.
fn move_down(list: &mut [BlockState], place: usize) -> usize {
    let is_last_before = list.get(place + 1).is_none_or(|next| !next.before);
    if list[place].before && is_last_before {
        list[place].before = false;
    } else if place + 1 < list.len() {
        list.swap(place, place + 1);
        return place + 1;
    }
    place
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
        let share = EffectParameter::new("mix", "Mix", "", [0.0, 1.0], kind.mix);
        turn(ui, &share, &mut mix, outcome);
        end_cell(ui);
        let level = EffectParameter::new("level", "Level", " dB", LEVELS_DB, 0.0);
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
            .max_decimals(2)
            // Else what is only shown would be rounded, and count as changed.
            .clamping(SliderClamping::Edits);
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
