//! Blocks before and after the model.

mod block_panel;
mod equalizer_curve;
mod programs;
mod tiles;

use std::sync::Mutex;

use egui::{Button, Response, RichText, ScrollArea, TextEdit, Ui};
use ondes_engine::effects::{Activity, EFFECTS, looper};
use ondes_engine::model::Kind;
use ondes_engine::rig::blocks::MAX_BLOCKS;
use ondes_engine::sync::lock;
use ondes_player::cabinet::bundled;
use ondes_player::rig::block_state::{BlockState, MODEL, RESPONSE};
use ondes_player::rig::scene::SCENES;

use crate::command::{FileCommand, FilePurpose, RigCommand};
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::knob_menu;
use crate::theme::{self, GAP};
use crate::view::{ModelEntry, RigView, SCENE_PARAMETERS};

/// Longest name of a scene, characters.
const NAME: usize = 40;
/// Height of the lists of models and impulse responses, points.
const LIST: f32 = 320.0;

/// The block that was copied last, in whichever instance of this process.
static COPIED: Mutex<Option<BlockState>> = Mutex::new(None);

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

/// Returns what a looper does, how far it is, 0 to 1, and whether it records; `None` for all else.
pub(crate) fn looper_state(
    block: &BlockState,
    activity: Option<Activity>,
) -> Option<(&'static str, f32, bool)> {
    let activity = activity.filter(|_| block.block == looper::ID)?;
    let state = *looper::STATES.get(usize::from(activity.state))?;
    let is_recording = looper::records(activity.state);
    Some((state, activity.position, is_recording))
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, page: &mut RigPage, rig: RigView<'_>) {
    let mut list = rig.blocks.to_vec();
    let mut outcome = Outcome::default();
    scenes(ui, frame, rig);
    add_menu(ui, frame, &mut list, &mut outcome);
    ui.add_space(GAP);
    // A new block is chosen.
    let count = list.len().max(rig.blocks.len());
    if page.known.is_some_and(|known| count > known) {
        page.chosen = count - 1;
    }
    page.known = Some(count);
    tiles::show(ui, frame, page, rig, &mut list, &mut outcome);
    ui.add_space(GAP);
    page.chosen = page.chosen.min(list.len().saturating_sub(1));
    if list.is_empty() {
        ui.weak("No blocks: add a pedal, a delay or an impulse response before or after the model");
    } else {
        let problem = rig.problems.get(page.chosen).and_then(Option::as_deref);
        let chosen = &mut page.chosen;
        block_panel::show(ui, frame, &mut list, chosen, problem, &mut outcome);
    }
    let mut branches = rig.branches;
    if list.iter().any(|block| block.branch.is_some()) {
        let mut mixed = Outcome::default();
        block_panel::mix_branches(ui, &mut branches, &mut mixed);
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

/// Draws the scenes, and the name of the one that is heard.
fn scenes(ui: &mut Ui, frame: &mut Frame<'_>, rig: RigView<'_>) {
    let scenes = rig.scenes;
    ui.horizontal(|ui| {
        let label = ui.label(RichText::new("Scene").font(theme::small()).weak());
        let steps = [
            (Icon::Left, "Previous scene", -1),
            (Icon::Right, "Next scene", 1),
        ];
        for ((icon, name, steps), place) in steps.into_iter().zip(1..) {
            let button = icon::button(ui, icon, name, false);
            if button.clicked() {
                frame.push(RigCommand::GoToScene(scenes.beside(steps)));
            }
            learn_pedal(ui, frame, button, name, place);
        }
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
            if button.clicked() {
                frame.push(RigCommand::GoToScene(index));
            }
            learn_pedal(ui, frame, button, &format!("{hint} (Alt+{})", index + 1), 0);
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

/// Lets a MIDI controller be learnt for one of [`SCENE_PARAMETERS`].
fn learn_pedal(ui: &mut Ui, frame: &mut Frame<'_>, button: Response, hint: &str, place: usize) {
    let midi = frame.view.rig.scene_midi[place];
    knob_menu::context_menu(ui, &button, |ui| {
        knob_menu::midi_item(ui, frame, SCENE_PARAMETERS[place], midi);
    });
    let midi = knob_menu::midi_hint(midi);
    let midi = midi.unwrap_or_else(|| "Right-click: learn a MIDI controller".into());
    button.on_hover_text(format!("{hint}\n{midi}"));
}

fn add_menu(ui: &mut Ui, frame: &mut Frame<'_>, list: &mut Vec<BlockState>, outcome: &mut Outcome) {
    ui.horizontal_wrapped(|ui| {
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
                models(ui, frame, None);
            })
            .response
            .on_hover_text("Another capture or codec, after the model; it can be moved before it");
            ui.menu_button("Add impulse response", |ui| {
                theme::menu(ui);
                responses(ui, frame, None);
            })
            .response
            .on_hover_text("A cabinet or a room, after the model; it can be moved before it");
        });
        let paste = ui.button("Paste");
        let paste =
            paste.on_hover_text("Add the block that was copied, here or in another instance");
        if paste.clicked()
            && let Some(block) = lock(&COPIED).clone()
        {
            frame.push(RigCommand::Add(block));
        }
        programs::menu(ui, frame);
    });
}

/// Adds a block of a file, or puts it in the place of another one.
fn put(frame: &mut Frame<'_>, block: BlockState, place: Option<usize>) {
    frame.push(match place {
        Some(place) => RigCommand::Replace(place, block),
        None => RigCommand::Add(block),
    });
}

/// Offers the models that process sound, for a new block or the one at a place.
fn models(ui: &mut Ui, frame: &mut Frame<'_>, place: Option<usize>) {
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
                    let block = BlockState::of_file(MODEL, &model.name, model.path.as_deref());
                    put(frame, block, place);
                }
            }
        });
    browse(ui, frame, FilePurpose::ModelBlock(place));
}

/// Offers the impulse responses that are bundled, and those of the user, likewise.
fn responses(ui: &mut Ui, frame: &mut Frame<'_>, place: Option<usize>) {
    for cabinet in &bundled::BUNDLED {
        let item = theme::item(ui, Button::new(cabinet.name));
        if item.on_hover_text(cabinet.description).clicked() {
            put(
                frame,
                BlockState::of_file(RESPONSE, cabinet.name, None),
                place,
            );
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
                    put(frame, BlockState::of_file(RESPONSE, "", Some(path)), place);
                }
            }
        });
    browse(ui, frame, FilePurpose::ResponseBlock(place));
}

fn browse(ui: &mut Ui, frame: &mut Frame<'_>, purpose: FilePurpose) {
    if frame.view.can_browse {
        ui.separator();
        if theme::item(ui, Button::new("Choose a file…")).clicked() {
            frame.push(FileCommand::Browse(purpose));
        }
    }
}
