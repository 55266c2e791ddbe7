//! Presets: stepping, choosing from a list, saving and deleting.
//!
//! Tab stops at the list once: the arrow keys move in it, Enter loads, Delete pressed twice
//! deletes.

use std::path::Path;

use egui::accesskit::Role;
use egui::{
    Align2, Button, EventFilter, Id, Key, Popup, PopupCloseBehavior, Rect, Response, RichText,
    ScrollArea, Sense, TextEdit, Ui, WidgetInfo, pos2, vec2,
};
use ondes_player::preset::list::PresetId;

use crate::command::PresetCommand;
use crate::drop_down;
use crate::format::finds;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::{EntryOrigin, PresetEntry, PresetsView, other_name};

/// Widths of the field and of its list, points.
const FIELD: f32 = 150.0;
const LIST: f32 = 320.0;
const ROW: f32 = 26.0;
/// Length of a name, characters.
const LONGEST: usize = 64;

/// State of the list.
#[derive(Default)]
pub(crate) struct PresetMenu {
    /// True if the list is open.
    open: bool,
    /// True if a key that may close the list was pressed while it was open.
    by_key: bool,
    query: String,
    /// The row that receives keys.
    cursor: Option<PresetId>,
    /// The preset to delete if the user confirms.
    to_delete: Option<PresetId>,
    name: Option<NameField>,
}

/// The name being typed.
struct NameField {
    text: String,
    /// True if the field has yet to receive the keyboard focus.
    fresh: bool,
}

/// Returns the width in the header, points; `None` if there is nothing to show.
pub(crate) fn width(view: PresetsView<'_>) -> Option<f32> {
    let steps = if view.list.is_empty() {
        0.0
    } else {
        2.0 * (26.0 + GAP)
    };
    (!view.list.is_empty() || view.can_save).then_some(steps + FIELD + 2.0 * GAP)
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, presets: &mut PresetMenu) {
    let view = frame.view.presets;
    if !view.list.is_empty() {
        if icon::button(ui, Icon::Left, "Previous preset", false).clicked() {
            frame.push(PresetCommand::Previous);
        }
        if icon::button(ui, Icon::Right, "Next preset", false).clicked() {
            frame.push(PresetCommand::Next);
        }
    }
    let loaded = view
        .list
        .iter()
        .find(|preset| Some(preset.id) == view.current);
    let (_, response) = ui.allocate_exact_size(vec2(FIELD, 26.0), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, ui.is_enabled(), "Preset"));
    let current = view.name;
    let name = current.unwrap_or("No preset");
    let changed = loaded.is_some() && view.changed;
    let value = current.unwrap_or("none");
    let value = if changed {
        format!("{value}, changed")
    } else {
        value.to_owned()
    };
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(value.as_str()));
    let shown = if changed {
        format!("{name} *")
    } else {
        name.to_owned()
    };
    drop_down::field(ui, &response, &shown, current.is_some());

    let popup = Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let open = popup.show(|ui| {
        theme::menu(ui);
        theme::within_window(ui, LIST, |ui| list(ui, frame, presets));
    });
    let open = open.is_some();
    let by_key = ui.input(|input| input.key_pressed(Key::Enter) || input.key_pressed(Key::Escape));
    if open {
        (presets.open, presets.by_key) = (true, by_key);
    } else if presets.open {
        // The keyboard focus returns to the field.
        if by_key || presets.by_key {
            response.request_focus();
        }
        *presets = PresetMenu::default();
    }
    let about = loaded.map_or("Presets: load, search and save sounds", |preset| {
        preset.about.as_str()
    });
    let state = if changed {
        "Preset, changed since it was loaded"
    } else {
        "Preset"
    };
    match current {
        Some(name) => response.on_hover_text(format!("{state}: {name}\n{about}").trim()),
        None => response.on_hover_text(about),
    };
}

fn list(ui: &mut Ui, frame: &mut Frame<'_>, presets: &mut PresetMenu) {
    let view = frame.view.presets;
    let (down, enter) = search(ui, presets);
    ui.add_space(2.0);

    let query = presets.query.trim();
    let matches = |preset: &&PresetEntry| {
        let file = preset
            .path
            .as_deref()
            .and_then(Path::file_name)
            .unwrap_or_default()
            .to_string_lossy();
        query.split_whitespace().all(|word| {
            [&preset.name, &preset.about, &*file]
                .iter()
                .any(|text| finds(text, word))
        })
    };
    let of = |source: EntryOrigin| {
        view.list
            .iter()
            .filter(move |preset| preset.origin == source)
            .filter(matches)
    };
    let groups = [
        ("Factory", EntryOrigin::Bundled),
        ("User", EntryOrigin::User),
    ];
    let found: Vec<&PresetEntry> = groups.iter().flat_map(|(_, source)| of(*source)).collect();
    if let Some(first) = found
        .first()
        .filter(|first| enter && first.problem.is_none())
    {
        load(ui, frame, first);
    }
    let moved = if found.is_empty() {
        false
    } else {
        handle_keys(ui, frame, presets, &found, down)
    };
    ScrollArea::vertical()
        .max_height(9.0 * ROW)
        .auto_shrink([false, true])
        .show(ui, |ui| {
            for (title, source) in groups {
                if found.iter().any(|preset| preset.origin == source) {
                    ui.add_space(3.0);
                    ui.label(RichText::new(title).font(theme::small()).weak());
                }
                for preset in found.iter().filter(|preset| preset.origin == source) {
                    row(ui, frame, presets, preset, moved);
                }
            }
            if found.is_empty() {
                ui.weak(if view.list.is_empty() {
                    "No presets yet"
                } else {
                    "No preset fits"
                });
            }
        });
    if view.can_save {
        ui.separator();
        save(ui, frame, presets);
    }
}

/// Draws the search field. Returns whether the keyboard focus moves into the list, and whether to
/// load the first match.
fn search(ui: &mut Ui, presets: &mut PresetMenu) -> (bool, bool) {
    let id = Id::unique("search presets");
    let pressed =
        |key| ui.memory(|memory| memory.has_focus(id)) && ui.input(|input| input.key_pressed(key));
    let keys = (pressed(Key::ArrowDown), pressed(Key::Enter));
    let field = TextEdit::singleline(&mut presets.query)
        .id(id)
        .hint_text("Search presets")
        .margin(vec2(8.0, 5.0));
    let response = ui
        .add(field.desired_width(f32::INFINITY))
        .accessible_name("Search presets");
    let response = response.on_hover_text("Words of a name, a model, a tag or an author");
    if !presets.open {
        response.request_focus();
    }
    keys
}

fn row_id(id: PresetId) -> Id {
    Id::unique(("preset row", id))
}

/// Handles keys in the list; `enters` tells that the focus has just moved there. Returns whether
/// the cursor has moved.
fn handle_keys(
    ui: &Ui,
    frame: &mut Frame<'_>,
    presets: &mut PresetMenu,
    found: &[&PresetEntry],
    enters: bool,
) -> bool {
    let place = |id: Option<PresetId>| found.iter().position(|preset| Some(preset.id) == id);
    let before = place(presets.cursor)
        .or_else(|| place(frame.view.presets.current))
        .unwrap_or_default();
    let mut at = before;
    let here = found[before];
    if ui.memory(|memory| memory.has_focus(row_id(here.id))) {
        let arrows = EventFilter {
            vertical_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(row_id(here.id), arrows));
        let (steps, enter, delete) = ui.input(|input| {
            let presses = |key| input.num_presses(key) as isize;
            let page = 8 * (presses(Key::PageDown) - presses(Key::PageUp));
            let far = (presses(Key::End) - presses(Key::Home)) * found.len() as isize;
            let steps = presses(Key::ArrowDown) - presses(Key::ArrowUp) + page + far;
            (
                steps,
                input.key_pressed(Key::Enter),
                input.key_pressed(Key::Delete),
            )
        });
        at = before.saturating_add_signed(steps).min(found.len() - 1);
        if enter {
            load(ui, frame, here);
        }
        if delete && delete_or_ask(frame, presets, here) {
            // The keyboard focus stays in the list.
            at = if before + 1 < found.len() {
                before + 1
            } else {
                before.saturating_sub(1)
            };
        }
    }
    let moved = enters || at != before;
    if at != before {
        presets.to_delete = None;
    }
    presets.cursor = Some(found[at].id);
    if moved {
        ui.memory_mut(|memory| memory.request_focus(row_id(found[at].id)));
    }
    moved
}

fn load(ui: &Ui, frame: &mut Frame<'_>, preset: &PresetEntry) {
    if preset.problem.is_none() {
        frame.push(PresetCommand::Load(preset.id));
        ui.close();
    }
}

/// Deletes a preset on the second request. Returns whether it was deleted.
fn delete_or_ask(frame: &mut Frame<'_>, presets: &mut PresetMenu, preset: &PresetEntry) -> bool {
    if preset.origin != EntryOrigin::User {
        return false;
    }
    if presets
        .to_delete
        .take_if(|to_delete| *to_delete == preset.id)
        .is_some()
    {
        frame.push(PresetCommand::Delete(preset.id));
        return true;
    }
    presets.to_delete = Some(preset.id);
    false
}

fn row(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    presets: &mut PresetMenu,
    preset: &PresetEntry,
    follow: bool,
) {
    let palette = Palette::current(ui);
    let loaded = frame.view.presets.current == Some(preset.id);
    let cursor = presets.cursor == Some(preset.id);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::hover());
    // Tab reaches the row with the cursor only.
    let sense = if cursor { Sense::click() } else { Sense::CLICK };
    let response = ui.interact(rect, row_id(preset.id), sense);
    response.widget_info(|| {
        WidgetInfo::selected(
            Role::ListBoxOption,
            preset.problem.is_none(),
            loaded,
            &preset.name,
        )
    });
    if cursor && follow {
        response.scroll_to_me(None);
    }
    let keyed = ui.input(|input| input.key_pressed(Key::Enter) || input.key_pressed(Key::Space));
    if response.clicked() && !keyed {
        load(ui, frame, preset);
    }
    if loaded || response.hovered() {
        ui.painter().rect_filled(
            rect,
            RADIUS,
            if loaded {
                palette.hovered
            } else {
                palette.raised
            },
        );
    }
    if loaded {
        let bar = Rect::from_min_size(rect.min + vec2(0.0, 5.0), vec2(3.0, rect.height() - 10.0));
        ui.painter().rect_filled(bar, 1.5, palette.accent);
    }
    let right = if preset.origin == EntryOrigin::User {
        delete_button(ui, frame, presets, preset, rect)
    } else {
        rect.right() - 8.0
    };

    let broken = preset.problem.is_some();
    let left = rect.left() + 10.0;
    let ink = if broken { palette.dim } else { palette.text };
    let name = theme::fit(
        ui.painter(),
        &preset.name,
        egui::FontId::proportional(13.0),
        0.62 * (right - left),
        ink,
    );
    let place = Align2::LEFT_CENTER.anchor_size(pos2(left, rect.center().y), name.size());
    ui.painter().galley(place.min, name, ink);
    let file = other_name(preset.path.as_deref(), &preset.name);
    let about = file.map_or_else(
        || preset.about.clone(),
        |file| format!("{file} · {}", preset.about),
    );
    let (about, ink) = preset
        .problem
        .as_ref()
        .map_or((&about, palette.dim), |problem| (problem, palette.error));
    let about = theme::fit(
        ui.painter(),
        about,
        theme::small(),
        right - place.right() - 2.0 * GAP,
        ink,
    );
    let place = Align2::RIGHT_CENTER.anchor_size(pos2(right - 2.0, rect.center().y), about.size());
    ui.painter().galley(place.min, about, ink);
    theme::focus_ring(ui, &response, rect);
    show_tooltip(response, preset);
}

fn show_tooltip(response: Response, preset: &PresetEntry) {
    let more = preset.problem.as_ref().unwrap_or(&preset.about);
    let keys = if preset.origin == EntryOrigin::User {
        "\nEnter loads, Delete twice deletes"
    } else {
        ""
    };
    let file = preset
        .path
        .as_ref()
        .map(|path| format!("\n{}", path.display()))
        .unwrap_or_default();
    response.on_hover_text(format!("{}\n{more}{file}{keys}", preset.name));
}

/// Draws the button that deletes a user preset. Returns its left edge.
fn delete_button(
    ui: &Ui,
    frame: &mut Frame<'_>,
    presets: &mut PresetMenu,
    preset: &PresetEntry,
    row: Rect,
) -> f32 {
    let to_delete = presets.to_delete == Some(preset.id);
    let width = if to_delete { 58.0 } else { 24.0 };
    let rect = Rect::from_min_max(
        pos2(row.right() - width, row.top() + 2.0),
        row.max - vec2(2.0, 2.0),
    );
    let response = ui.interact(rect, row_id(preset.id).with("delete"), Sense::CLICK);
    let label = if to_delete { "Really delete" } else { "Delete" };
    response.widget_info(|| {
        WidgetInfo::labeled(Role::Button, true, format!("{label} {}", preset.name))
    });
    let palette = Palette::current(ui);
    if to_delete {
        ui.painter().rect_filled(rect, RADIUS, palette.error);
        ui.painter().text(
            rect.center(),
            Align2::CENTER_CENTER,
            "Delete?",
            theme::small(),
            palette.ground,
        );
    } else {
        let ink = if response.hovered() {
            palette.text
        } else {
            palette.dim.gamma_multiply(0.7)
        };
        icon::paint(ui.painter(), rect, Icon::Cross, ink);
    }
    if response.clicked() {
        delete_or_ask(frame, presets, preset);
    }
    rect.left()
}

/// Draws the button for saving, and then the field for the name.
fn save(ui: &mut Ui, frame: &mut Frame<'_>, presets: &mut PresetMenu) {
    let view = frame.view.presets;
    let Some(name) = &mut presets.name else {
        if ui
            .button("Save as…")
            .on_hover_text("Save the sound as a preset of your own")
            .clicked()
        {
            let loaded = view
                .list
                .iter()
                .find(|preset| Some(preset.id) == view.current);
            let text = loaded.map(|preset| preset.name.clone()).unwrap_or_default();
            presets.name = Some(NameField { text, fresh: true });
        }
        return;
    };
    ui.horizontal(|ui| {
        let id = Id::unique("preset name");
        let field = TextEdit::singleline(&mut name.text)
            .id(id)
            .hint_text("Name")
            .char_limit(LONGEST);
        let field = field
            .margin(vec2(8.0, 5.0))
            .desired_width(ui.available_width() - 76.0);
        let output = field.show(ui);
        let response = output.response.response.accessible_name("Preset name");
        if name.fresh {
            name.fresh = false;
            response.request_focus();
            theme::select_all(ui.ctx(), id, output.state, &output.galley);
        }
        let text = name.text.trim();
        let taken = view
            .list
            .iter()
            .any(|preset| preset.origin == EntryOrigin::User && preset.name == text);
        let button = Button::new(if taken { "Replace" } else { "Save" })
            .fill(Palette::current(ui).raised)
            .min_size(vec2(68.0, 26.0));
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let pressed = ui.add_enabled(!text.is_empty(), button).clicked();
        if (entered || pressed) && !text.is_empty() {
            frame
                .commands
                .push(PresetCommand::Save(text.to_owned()).into());
            ui.close();
        }
    });
}
