//! The chosen block of a rig: what it is and where, its knobs, and the mix of the branches.

use egui::{
    Button, Checkbox, ComboBox, DragValue, Grid, Label, Response, RichText, Sense, Slider,
    SliderClamping, Ui,
};
use ondes_engine::effects::{EffectParameter, equalizer};
use ondes_engine::sync::lock;
use ondes_player::rig::block_macros;
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::rig::branch_state::{self, Branch, BranchState, MAX_DELAY_MS};

use super::{COPIED, Outcome, equalizer_curve, models, responses};
use crate::frame::Frame;
use crate::knob_menu;
use crate::theme::{self, GAP, Palette};
use crate::view::MacroKnob;

/// Shortest press of a pedal, s: longer than a block.
const PRESSED_S: f64 = 0.15;
/// Width of a slider with its name, points.
const SLIDER: f32 = 235.0;

/// Draws the chosen block: what it is and where, and its knobs.
pub(super) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    list: &mut Vec<BlockState>,
    place: &mut usize,
    problem: Option<&str>,
    outcome: &mut Outcome,
) {
    let macros = frame.view.knobs.macros;
    let name = list[*place].name().into_owned();
    ui.horizontal_wrapped(|ui| {
        let block = &mut list[*place];
        let mut on = !block.off;
        let by = block.macro_of(block_macros::ON);
        let toggle = ui.add(Checkbox::new(&mut on, macro_name(&name, by)));
        let toggle =
            toggle.on_hover_text("On, or passed unchanged; right-click: let a macro turn it");
        macro_menu(ui, &toggle, by, macros, |by| {
            block.turn_by(block_macros::ON, by);
            outcome.done();
        });
        if toggle.changed() {
            block.off = !on;
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
        replace_menu(ui, frame, &list[*place].block, *place);
        if button(
            ui,
            "Copy",
            "Copy it, to be pasted here or in another instance",
        ) {
            *lock(&COPIED) = Some(list[*place].clone());
        }
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
        ui.push_id(state.block.clone(), |ui| knobs(ui, state, macros, outcome));
    }
}

/// Offers other files for a block, which keeps its place and its settings.
fn replace_menu(ui: &mut Ui, frame: &mut Frame<'_>, block: &str, place: usize) {
    let offer = match block {
        MODEL => models,
        RESPONSE => responses,
        _ => return,
    };
    let menu = ui.menu_button("Replace", |ui| {
        theme::menu(ui);
        offer(ui, frame, Some(place));
    });
    let hint = "Another file in its place, with the same settings";
    menu.response.on_hover_text(hint);
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

fn knobs(ui: &mut Ui, state: &mut BlockState, macros: &[MacroKnob], outcome: &mut Outcome) {
    let band = (state.block == equalizer::ID).then(|| equalizer_curve::show(ui, state, outcome));
    let Some(kind) = state.kind() else { return };
    let [share, level] = [state.mix_parameter(), state.level_parameter()];
    let own = match band {
        Some(band) => equalizer_curve::of_band(kind.parameters, band),
        None => kind.parameters,
    };
    let own = own.iter();
    let mut all: Vec<(EffectParameter, f32)> = own
        .map(|parameter| (parameter.clone(), state.value(parameter)))
        .collect();
    all.extend([(share, state.mix()), (level, state.level_db())]);
    let turnable: Vec<_> = state
        .turnable()
        .map(|(_, found)| found.parameter.id)
        .collect();
    let (mut changes, mut bindings) = (Vec::new(), Vec::new());
    let columns = ((ui.available_width() / SLIDER) as usize).max(1);
    Grid::new("knobs").show(ui, |ui| {
        for (place, (parameter, mut value)) in all.into_iter().enumerate() {
            let before = value;
            let by = state.macro_of(&parameter.id);
            let response = turn(ui, &parameter, by, &mut value, outcome);
            if turnable.contains(&parameter.id) {
                macro_menu(ui, &response, by, macros, |by| {
                    bindings.push((parameter.id.clone().into_owned(), by));
                });
            }
            if before.to_bits() != value.to_bits() {
                outcome.changed = true;
                changes.push((parameter, value));
            }
            if (place + 1) % columns == 0 {
                ui.end_row();
            }
        }
    });
    for (parameter, value) in changes {
        match &*parameter.id {
            block_macros::MIX => state.mix = Some(value),
            block_macros::LEVEL => state.level = value,
            _ => state.set_value(&parameter, value),
        }
    }
    for (id, by) in bindings {
        state.turn_by(&id, by);
        outcome.done();
    }
}

/// Offers the macros that can turn a setting.
fn macro_menu(
    ui: &Ui,
    response: &Response,
    by: Option<usize>,
    macros: &[MacroKnob],
    mut bind: impl FnMut(Option<usize>),
) {
    knob_menu::context_menu(ui, response, |ui| {
        ui.label(RichText::new("Turned by").font(theme::small()).weak());
        for (number, one) in macros.iter().enumerate() {
            let name = match one.turns {
                true => format!("Macro {}: {}", number + 1, one.knob.name),
                false => format!("Macro {}", number + 1),
            };
            if theme::item(ui, Button::selectable(by == Some(number), name)).clicked() {
                bind(Some(number));
            }
        }
        if by.is_some() && theme::item(ui, Button::new("No macro")).clicked() {
            bind(None);
        }
    });
}

/// Draws the name and the slider, the choice, or the pedal of a parameter; returns what has its menu.
fn turn(
    ui: &mut Ui,
    parameter: &EffectParameter,
    by: Option<usize>,
    value: &mut f32,
    outcome: &mut Outcome,
) -> Response {
    if parameter.is_trigger {
        ui.label("");
        let button = ui.button(macro_name(&parameter.name, by));
        press(ui, &button, value);
        return button.on_hover_text("Right-click: let a macro press it, such as a learnt pedal");
    }
    let name = RichText::new(macro_name(&parameter.name, by)).font(theme::small());
    let name = match by {
        Some(_) => name.color(Palette::current(ui).accent),
        None => name.weak(),
    };
    // The list of a choice is a menu already, so the other one belongs to its name.
    let sense = match parameter.options.is_empty() {
        true => Sense::hover(),
        false => Sense::click(),
    };
    let label = ui.add(Label::new(name).sense(sense));
    let hint = match by {
        Some(number) => format!("Macro {} turns it from here", number + 1),
        None => "Right-click: let a macro turn it".into(),
    };
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
        return response.on_hover_text(hint);
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
    if before.to_bits() != value.to_bits() {
        outcome.done();
    }
    choice.response.labelled_by(label.id);
    label.on_hover_text(hint)
}

/// Holds a pedal down while its button is held, and for long enough to be noticed.
fn press(ui: &Ui, button: &Response, value: &mut f32) {
    let id = button.id.with("pressed");
    let now = ui.input(|input| input.time);
    if button.is_pointer_button_down_on() || button.clicked() {
        ui.data_mut(|data| data.insert_temp(id, now));
        *value = 1.0;
    }
    if *value == 1.0 {
        let since = ui.data(|data| data.get_temp::<f64>(id));
        let left_s = PRESSED_S - (now - since.unwrap_or(f64::NEG_INFINITY));
        match left_s > 0.0 {
            true => ui.ctx().request_repaint_after_secs(left_s as f32),
            false => *value = 0.0,
        }
    }
}

/// Returns the name of a setting with the macro that turns it.
fn macro_name(name: &str, by: Option<usize>) -> String {
    match by {
        Some(number) => format!("{name} (macro {})", number + 1),
        None => name.to_owned(),
    }
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
