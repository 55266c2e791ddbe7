//! Blocks before and after the model.

use egui::accesskit::Role;
use egui::{
    Align2, Button, Checkbox, ComboBox, DragValue, Grid, Label, Pos2, Rect, Response, RichText,
    ScrollArea, Sense, Slider, Stroke, StrokeKind, TextEdit, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use ondes_engine::effects::{EFFECTS, EffectParameter};
use ondes_engine::model::Kind;
use ondes_engine::rig::blocks::MAX_BLOCKS;
use ondes_player::cabinet::bundled;
use ondes_player::rig::block_state::{BlockState, LEVELS_DB, MODEL, RESPONSE};
use ondes_player::rig::branch_state::{self, Branch, BranchState, MAX_DELAY_MS};
use ondes_player::rig::scene::{SCENES, Scenes};

use crate::command::{FileCommand, FilePurpose, RigCommand};
use crate::frame::Frame;
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::{ModelEntry, RigView};

/// Size of a tile, points.
const TILE: Vec2 = vec2(92.0, 40.0);
/// Range of the level on a tile, dB.
const METER_DB: f32 = 60.0;
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

/// The chosen block.
#[derive(Default)]
pub(crate) struct RigPage {
    chosen: usize,
    /// Number of blocks of the last frame; `None` before the first.
    known: Option<usize>,
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, page: &mut RigPage, rig: RigView<'_>) {
    let mut list = rig.blocks.to_vec();
    let mut outcome = Outcome::default();
    scenes(ui, frame, rig.scenes);
    add_menu(ui, frame, &mut list, &mut outcome);
    ui.add_space(GAP);
    // A new block is chosen.
    let count = list.len().max(rig.blocks.len());
    if page.known.is_some_and(|known| count > known) {
        page.chosen = count - 1;
    }
    page.known = Some(count);
    tiles(ui, frame, page, rig, &mut list, &mut outcome);
    ui.add_space(GAP);
    page.chosen = page.chosen.min(list.len().saturating_sub(1));
    if list.is_empty() {
        ui.weak("No blocks: add a pedal, a delay or an impulse response before or after the model");
    } else {
        let problem = rig.problems.get(page.chosen).and_then(Option::as_deref);
        block(ui, &mut list, &mut page.chosen, problem, &mut outcome);
    }
    let mut branches = rig.branches;
    if list.iter().any(|block| block.branch.is_some()) {
        let mut mixed = Outcome::default();
        mix_branches(ui, &mut branches, &mut mixed);
        let align = ui.small_button("Align").on_hover_text(
            "Find delay and polarity by which the branches fit each other, while something plays",
        );
        if align.clicked() {
            frame.push(RigCommand::AlignBranches);
        }
        if mixed.changed {
            frame.push(RigCommand::ChangeBranches(branches));
        }
        outcome.finished |= mixed.finished;
    }
    if outcome.changed {
        frame.push(RigCommand::Change(list));
    }
    if outcome.finished {
        frame.push(RigCommand::Finish);
    }
}

/// Draws the blocks in their order, with the model among them, and moves one that is dragged.
fn tiles(
    ui: &mut Ui,
    frame: &Frame<'_>,
    page: &mut RigPage,
    rig: RigView<'_>,
    list: &mut [BlockState],
    outcome: &mut Outcome,
) {
    let before = list.iter().filter(|block| block.before).count();
    let mut placed: Vec<Rect> = Vec::new();
    let mut dropped = None;
    let mut dragged = None;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(GAP, GAP);
        for place in 0..=list.len() {
            if place == before {
                let model = frame
                    .view
                    .model
                    .map_or("No model", |model| model.card.name.as_str());
                let model = Tile {
                    name: model,
                    ..Tile::default()
                };
                let rect = model.show(ui, Sense::hover()).rect;
                placed.push(rect);
            }
            let Some(block) = list.get(place) else { break };
            let name = block.name();
            let shown = Tile {
                name: &name,
                is_off: block.off,
                is_chosen: place == page.chosen,
                has_problem: rig.problems.get(place).is_some_and(Option::is_some),
                branch: block.branch,
                peak: Some(rig.peaks.get(place).copied().unwrap_or_default()),
            };
            let response = shown.show(ui, Sense::click_and_drag());
            let hint = block.kind().map_or("", |kind| kind.description);
            placed.push(response.rect);
            if response.clicked() || response.drag_started() {
                page.chosen = place;
            }
            if response.dragged() {
                dragged = response.interact_pointer_pos();
            }
            if response.drag_stopped() {
                dropped = response
                    .interact_pointer_pos()
                    .or(ui.ctx().pointer_latest_pos());
            }
            response.on_hover_text(format!("{name}\n{hint}"));
        }
    });
    // Places are counted with the model among the blocks.
    let target = |pointer: Pos2| {
        let is_behind = |rect: &Rect| {
            pointer.y > rect.bottom() || pointer.y >= rect.top() && pointer.x > rect.center().x
        };
        placed.iter().filter(|rect| is_behind(rect)).count()
    };
    if let Some(gap) = dragged.map(target) {
        let edge = placed.get(gap).map_or_else(
            || placed.last().map(|last| last.right_top()),
            |rect| Some(rect.left_top()),
        );
        if let Some(edge) = edge {
            let x = edge.x
                + if gap < placed.len() {
                    -0.5 * GAP
                } else {
                    0.5 * GAP
                };
            let stroke = Stroke::new(2.0, Palette::current(ui).accent);
            ui.painter().vline(x, edge.y..=edge.y + TILE.y, stroke);
        }
    }
    if let Some(gap) = dropped.map(target) {
        let from = page.chosen;
        page.chosen = move_to(list, from, gap);
        if page.chosen != from || list[page.chosen].before != rig.blocks[from].before {
            outcome.done();
        }
    }
}

/// A block, or the model.
#[derive(Default)]
struct Tile<'a> {
    name: &'a str,
    is_off: bool,
    is_chosen: bool,
    has_problem: bool,
    branch: Option<Branch>,
    /// Peak of its output; `None` for the model, which is no block.
    peak: Option<f32>,
}

impl Tile<'_> {
    fn show(&self, ui: &mut Ui, sense: Sense) -> Response {
        let palette = Palette::current(ui);
        let (rect, response) = ui.allocate_exact_size(TILE, sense);
        response.widget_info(|| match self.peak {
            Some(_) => WidgetInfo::selected(Role::Button, true, self.is_chosen, self.name),
            None => WidgetInfo::labeled(Role::Label, true, self.name),
        });
        if !ui.is_rect_visible(rect) {
            return response;
        }
        let painter = ui.painter();
        let ground = match self.peak {
            Some(_) if response.hovered() => palette.hovered,
            Some(_) => palette.raised,
            None => palette.ground,
        };
        painter.rect_filled(rect, RADIUS, ground);
        let edge = match self.is_chosen {
            true => Stroke::new(1.5, palette.accent),
            false => Stroke::new(1.0, palette.line),
        };
        painter.rect_stroke(rect, RADIUS, edge, StrokeKind::Inside);
        let ink = match (self.has_problem, self.is_off) {
            (true, _) => palette.error,
            (false, true) => palette.dim,
            (false, false) => palette.text,
        };
        let width = TILE.x - 2.0 * GAP;
        let text = theme::fit(painter, self.name, theme::small(), width, ink);
        let corner = rect.center() - 0.5 * text.size() - vec2(0.0, 3.0);
        painter.galley(corner, text, ink);
        if let Some(branch) = self.branch {
            let letter = &branch_name(Some(branch))["Branch ".len()..];
            let place = rect.left_top() + vec2(GAP, 3.0);
            painter.text(
                place,
                Align2::LEFT_TOP,
                letter,
                theme::small(),
                palette.accent,
            );
        }
        if let Some(peak) = self.peak {
            let corner = pos2(rect.left() + GAP, rect.bottom() - 9.0);
            let bar = Rect::from_min_size(corner, vec2(width, 3.0));
            painter.rect_filled(bar, 1, palette.line);
            let db = 20.0 * peak.max(1e-6).log10();
            let share = (1.0 + db / METER_DB).clamp(0.0, 1.0);
            let color = match db > 0.0 {
                true => palette.error,
                false => palette.accent,
            };
            let lit = Rect::from_min_size(bar.min, vec2(share * bar.width(), bar.height()));
            painter.rect_filled(lit, 1, color);
        }
        theme::focus_ring(ui, &response, rect);
        response
    }
}

/// Moves a block before what is at a place, counted with the model among the blocks. Returns where
/// it is then, among the blocks.
fn move_to(list: &mut [BlockState], from: usize, gap: usize) -> usize {
    let model = list.iter().filter(|block| block.before).count();
    // Up to the gap in front of the model it is before it.
    let before = gap <= model;
    let to = gap - usize::from(!before);
    list[from].before = before;
    if to > from {
        list[from..to].rotate_left(1);
        to - 1
    } else {
        list[to..=from].rotate_right(1);
        to
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

/// Draws the chosen block: what it is and where, and its knobs.
fn block(
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

fn branch_name(branch: Option<Branch>) -> &'static str {
    match branch {
        None => "No branch",
        Some(Branch::A) => "Branch A",
        Some(Branch::B) => "Branch B",
    }
}

/// Draws how the branches are mixed.
fn mix_branches(ui: &mut Ui, branches: &mut [BranchState; 2], outcome: &mut Outcome) {
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
            .max_decimals(2)
            // Else what is only shown would be rounded, and count as changed.
            .clamping(egui::SliderClamping::Edits);
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

    #[test]
    fn blocks_are_dropped_before_and_after_the_model() {
        let state = |id: &str, before| BlockState {
            block: id.into(),
            before,
            ..BlockState::default()
        };
        // a b MODEL c: gaps 0 to 4.
        let list = || vec![state("a", true), state("b", true), state("c", false)];
        let moved = |from, gap| {
            let mut list = list();
            let to = move_to(&mut list, from, gap);
            let names: String = list.iter().map(|block| block.block.as_str()).collect();
            let before = list.iter().filter(|block| block.before).count();
            assert!(list.iter().take(before).all(|block| block.before));
            (names, before, to)
        };
        assert_eq!(moved(0, 0), ("abc".into(), 2, 0));
        assert_eq!(moved(0, 1), ("abc".into(), 2, 0));
        assert_eq!(moved(0, 2), ("bac".into(), 2, 1));
        assert_eq!(moved(0, 3), ("bac".into(), 1, 1));
        assert_eq!(moved(0, 4), ("bca".into(), 1, 2));
        assert_eq!(moved(2, 0), ("cab".into(), 3, 0));
        assert_eq!(moved(2, 2), ("abc".into(), 3, 2));
        assert_eq!(moved(2, 3), ("abc".into(), 2, 2));
        assert_eq!(moved(2, 4), ("abc".into(), 2, 2));
    }
}
