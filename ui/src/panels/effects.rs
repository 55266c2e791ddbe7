//! Effects before and after the model.

use egui::{Button, Checkbox, ComboBox, Grid, Label, Response, RichText, ScrollArea, Slider, Ui};
use ondes_engine::effects::blocks::MAX_BLOCKS;
use ondes_engine::effects::{EFFECTS, EffectParameter};
use ondes_player::effect_list::{EffectState, LEVELS_DB};

use crate::command::EffectCommand;
use crate::frame::Frame;
use crate::theme::{self, GAP};

/// Width of a slider with its name, points.
const SLIDER: f32 = 235.0;

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

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, effects: &[EffectState]) {
    let mut list = effects.to_vec();
    let mut outcome = Outcome::default();
    add_menu(ui, &mut list, &mut outcome);
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
                    ui.push_id(place, |ui| effect(ui, &mut list, place, &mut outcome));
                    // One that was removed has left its place to the next.
                    place += usize::from(list.len() == count);
                }
            }
            if list.is_empty() {
                ui.weak("No effects: add a delay, an equaliser or another one before or after the model");
            }
        });
    if outcome.changed {
        // Those before the model come first.
        list.sort_by_key(|effect| !effect.before);
        frame.push(EffectCommand::Change(list));
    }
    if outcome.finished {
        frame.push(EffectCommand::Finish);
    }
}

fn add_menu(ui: &mut Ui, list: &mut Vec<EffectState>, outcome: &mut Outcome) {
    ui.horizontal(|ui| {
        ui.add_enabled_ui(list.len() < MAX_BLOCKS, |ui| {
            ui.menu_button("Add effect", |ui| {
                theme::menu(ui);
                for kind in EFFECTS {
                    let item = theme::item(ui, Button::new(kind.name));
                    if item.on_hover_text(kind.description).clicked() {
                        list.push(EffectState::new(kind));
                        outcome.done();
                        ui.close();
                    }
                }
            })
            .response
            .on_hover_text("An effect of Ondes, after the model; it can be moved before it");
        });
    });
}

/// Draws an effect: what it is and where, and its knobs.
fn effect(ui: &mut Ui, list: &mut Vec<EffectState>, place: usize, outcome: &mut Outcome) {
    let name = list[place]
        .kind()
        .map_or_else(|| list[place].effect.clone(), |kind| kind.name.to_owned());
    ui.horizontal(|ui| {
        let mut on = !list[place].off;
        let hint = match list[place].kind() {
            Some(kind) => kind.description,
            None => "This version does not know the effect; it is kept and not heard",
        };
        if ui
            .add(Checkbox::new(&mut on, &name))
            .on_hover_text(hint)
            .changed()
        {
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
        if button(ui, "Remove", "Remove the effect") {
            list.remove(place);
            outcome.done();
        }
    });
    if let Some(state) = list.get_mut(place).filter(|state| state.kind().is_some()) {
        knobs(ui, state, outcome);
    }
    ui.add_space(GAP);
}

fn move_up(list: &mut [EffectState], place: usize) {
    let is_first_after = place == 0 || list[place - 1].before;
    if !list[place].before && is_first_after {
        list[place].before = true;
    } else if place > 0 {
        list.swap(place - 1, place);
    }
}

fn move_down(list: &mut [EffectState], place: usize) {
    let is_last_before = list.get(place + 1).is_none_or(|next| !next.before);
    if list[place].before && is_last_before {
        list[place].before = false;
    } else if place + 1 < list.len() {
        list.swap(place, place + 1);
    }
}

fn knobs(ui: &mut Ui, state: &mut EffectState, outcome: &mut Outcome) {
    let Some(kind) = state.kind() else { return };
    let columns = ((ui.available_width() / SLIDER) as usize).max(1);
    Grid::new("knobs").show(ui, |ui| {
        let mut column = 0;
        let mut end_cell = |ui: &mut Ui| {
            column += 1;
            if column % columns == 0 {
                ui.end_row();
            }
        };
        for (place, parameter) in kind.parameters.iter().enumerate() {
            let mut value = state.value(place);
            if turn(ui, parameter, &mut value, outcome) {
                state.set_value(place, value);
            }
            end_cell(ui);
        }
        let mut mix = state.mix();
        let share = EffectParameter {
            id: "mix",
            name: "Mix",
            unit: "",
            range: [0.0, 1.0],
            default: kind.mix,
            is_logarithmic: false,
            options: &[],
        };
        if turn(ui, &share, &mut mix, outcome) {
            state.mix = Some(mix);
        }
        end_cell(ui);
        let level = EffectParameter {
            id: "level",
            name: "Level",
            unit: " dB",
            range: LEVELS_DB,
            default: 0.0,
            ..share
        };
        turn(ui, &level, &mut state.level, outcome);
        end_cell(ui);
    });
}

/// Draws the name and the slider, or the choice, of a parameter; returns whether it has changed.
fn turn(ui: &mut Ui, parameter: &EffectParameter, value: &mut f32, outcome: &mut Outcome) -> bool {
    let label = ui.add(Label::new(
        RichText::new(parameter.name).font(theme::small()).weak(),
    ));
    if parameter.options.is_empty() {
        let [least, largest] = parameter.range;
        let slider = Slider::new(value, least..=largest)
            .logarithmic(parameter.is_logarithmic)
            .suffix(parameter.unit)
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
    let choice = ComboBox::from_id_salt(parameter.id)
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

    fn order(list: &[EffectState]) -> Vec<(&str, bool)> {
        let places = list.iter();
        places
            .map(|effect| (effect.effect.as_str(), effect.before))
            .collect()
    }

    #[test]
    fn effects_move_past_one_another_and_the_model() {
        let state = |id: &str| EffectState {
            effect: id.into(),
            ..EffectState::default()
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
