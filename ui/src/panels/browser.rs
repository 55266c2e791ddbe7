//! The browser: models to search, filter, audition, mark and load.
//!
//! Tab stops at the list once: the arrow keys move in it, Enter loads, Space auditions, F marks a
//! favourite.

use std::path::Path;
use std::sync::Arc;

use egui::accesskit::Role;
use egui::{
    Align2, Button, EventFilter, Galley, Id, Key, KeyboardShortcut, Modifiers, Rect, RichText,
    ScrollArea, Sense, Stroke, StrokeKind, TextEdit, Ui, WidgetInfo, pos2, vec2,
};
use ondes_engine::model::Kind;
use ondes_player::product::Product;

use crate::command::{FileCommand, FilePurpose, ModelCommand};
use crate::format::{self, finds, parse_path};
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::{EntryOrigin, ModelEntry, ModelEntryId, other_name};

/// Height of a row without what the model is, and of a heading, points.
const ROW: f32 = 30.0;
const HEADING: f32 = 24.0;
/// Widths beside the text of a row: the buttons on the left and on the right.
const LEFT: f32 = 32.0;
const RIGHT: f32 = 28.0;
/// Most lines that tell what a model is; the tooltip tells the rest.
const LINES: usize = 3;

/// Search text, filter and cursor.
#[derive(Default)]
pub(crate) struct BrowserState {
    query: String,
    kind: Option<Kind>,
    /// The row that receives keys.
    cursor: Option<(BrowserSection, ModelEntryId)>,
}

/// Sections of the list. A model appears in every section that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BrowserSection {
    Favourites,
    Recent,
    Bundled,
    User,
}

impl BrowserSection {
    const ALL: [Self; 4] = [Self::Favourites, Self::Recent, Self::Bundled, Self::User];

    fn name(self) -> &'static str {
        match self {
            Self::Favourites => "Favourites",
            Self::Recent => "Recent",
            Self::Bundled => "Bundled",
            Self::User => "User",
        }
    }

    fn holds(self, entry: &ModelEntry) -> bool {
        match self {
            Self::Favourites => entry.favourite,
            Self::Recent => entry.recent.is_some(),
            Self::Bundled => entry.origin == EntryOrigin::Bundled,
            Self::User => entry.origin == EntryOrigin::User,
        }
    }
}

enum BrowserRow<'a> {
    Heading(BrowserSection),
    Entry(BrowserSection, &'a ModelEntry),
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, browser: &mut BrowserState) {
    let view = frame.view;
    let into_list = search(ui, frame, browser);
    filters(ui, browser, view.product);
    if let Some(path) = parse_path(&browser.query) {
        ui.add_space(GAP);
        let wide = vec2(ui.available_width(), 26.0);
        if ui
            .add_sized(wide, Button::new("Open this file"))
            .on_hover_text("Load the file at this path")
            .clicked()
            || into_list
        {
            frame.push(FileCommand::Open(path));
            browser.query.clear();
        }
        return;
    }

    let rows = rows(view.models.list, browser);
    let entries: Vec<(BrowserSection, ModelEntryId)> = rows
        .iter()
        .filter_map(|row| match row {
            BrowserRow::Entry(section, entry) => Some((*section, entry.id)),
            BrowserRow::Heading(_) => None,
        })
        .collect();
    if entries.is_empty() {
        ui.add_space(4.0 * GAP);
        let nothing = if view.models.list.is_empty() {
            "No models found"
        } else {
            "No model fits"
        };
        ui.vertical_centered(|ui| ui.weak(nothing));
        return;
    }
    // The cursor stays on its model; if that has gone it moves to the loaded model, or else to the
    // first.
    let playing = view.model.and_then(|model| model.entry);
    let place = |row: (BrowserSection, ModelEntryId)| entries.iter().position(|one| *one == row);
    let mut at = browser
        .cursor
        .and_then(place)
        .or_else(|| entries.iter().position(|(_, id)| Some(*id) == playing))
        .unwrap_or_default();
    let has_keys = ui.memory(|memory| memory.has_focus(row_id(entries[at])));
    let moved = if has_keys {
        handle_keys(ui, frame, entries[at], &mut at, entries.len())
    } else {
        into_list
    };
    browser.cursor = Some(entries[at]);
    if moved {
        ui.memory_mut(|memory| memory.request_focus(row_id(entries[at])));
    }
    list(ui, frame, browser, &rows, moved);
}

/// Draws the search field. Returns whether the keyboard focus moves into the list.
fn search(ui: &mut Ui, frame: &mut Frame<'_>, browser: &mut BrowserState) -> bool {
    ui.horizontal(|ui| {
        let id = Id::unique("search models");
        let find = ui.input_mut(|input| input.consume_key(egui::Modifiers::COMMAND, Key::F));
        let down = ui.memory(|memory| memory.has_focus(id))
            && ui.input(|input| input.key_pressed(Key::ArrowDown) || input.key_pressed(Key::Enter));
        let buttons = if frame.view.can_browse { 2.0 } else { 1.0 };
        let field = TextEdit::singleline(&mut browser.query)
            .id(id)
            .hint_text("Search models, or a path")
            .margin(vec2(8.0, 5.0))
            .desired_width(ui.available_width() - buttons * (26.0 + GAP));
        let response = ui.add(field).accessible_name("Search models");
        let keys = ui
            .ctx()
            .format_shortcut(&KeyboardShortcut::new(Modifiers::COMMAND, Key::F));
        let hint =
            format!("Words of a name, an author or a description, or the path of a file ({keys})");
        let response = response.on_hover_text(hint);
        if find {
            response.request_focus();
        }
        if frame.view.can_browse && icon::button(ui, Icon::Folder, "Open a file", false).clicked() {
            frame.push(FileCommand::Browse(FilePurpose::Model));
        }
        if icon::button(ui, Icon::Refresh, "Rescan folders", false).clicked() {
            frame.push(ModelCommand::Rescan);
        }
        down
    })
    .inner
}

fn filters(ui: &mut Ui, browser: &mut BrowserState, product: Product) {
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(3.0, 3.0);
        ui.spacing_mut().button_padding = vec2(4.0, 2.0);
        ui.spacing_mut().interact_size.y = 20.0;
        for kind in std::iter::once(None).chain(product.kinds().map(Some)) {
            let label = kind.map_or("All", format::kind);
            let hint = kind.map_or("Show all models".to_owned(), |kind| {
                format!("Show models of the kind {}", format::kind(kind))
            });
            let chip = Button::selectable(browser.kind == kind, RichText::new(label).small())
                .frame_when_inactive(true);
            if ui.add(chip).on_hover_text(hint).clicked() {
                browser.kind = kind;
            }
        }
    });
}

fn rows<'a>(entries: &'a [ModelEntry], browser: &BrowserState) -> Vec<BrowserRow<'a>> {
    let query = browser.query.trim();
    let matches = |entry: &&ModelEntry| {
        browser.kind.is_none_or(|kind| entry.kind == kind)
            && query.split_whitespace().all(|word| {
                [&entry.name, &entry.author, &entry.about]
                    .iter()
                    .any(|text| finds(text, word))
                    || named(entry, word)
            })
    };
    let mut rows = Vec::new();
    for section in BrowserSection::ALL {
        let mut found: Vec<&ModelEntry> = entries
            .iter()
            .filter(|entry| section.holds(entry))
            .filter(matches)
            .collect();
        if section == BrowserSection::Recent {
            found.sort_by_key(|entry| entry.recent);
        }
        if !found.is_empty() {
            rows.push(BrowserRow::Heading(section));
            rows.extend(
                found
                    .into_iter()
                    .map(|entry| BrowserRow::Entry(section, entry)),
            );
        }
    }
    rows
}

/// Returns whether a word occurs in the name of the model's file.
fn named(entry: &ModelEntry, word: &str) -> bool {
    let name = entry.path.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| finds(&name.to_string_lossy(), word))
}

fn row_id(row: (BrowserSection, ModelEntryId)) -> Id {
    Id::unique(("model row", row))
}

/// Handles keys in the list. Returns whether the cursor has moved.
fn handle_keys(
    ui: &Ui,
    frame: &mut Frame<'_>,
    (section, id): (BrowserSection, ModelEntryId),
    at: &mut usize,
    count: usize,
) -> bool {
    let arrows = EventFilter {
        vertical_arrows: true,
        ..EventFilter::default()
    };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(row_id((section, id)), arrows));
    let before = *at;
    let (steps, enter, space, mark) = ui.input(|input| {
        let presses = |key| input.num_presses(key) as isize;
        let page = 8 * (presses(Key::PageDown) - presses(Key::PageUp));
        let far = (presses(Key::End) - presses(Key::Home)) * count as isize;
        let steps = presses(Key::ArrowDown) - presses(Key::ArrowUp) + page + far;
        (
            steps,
            input.key_pressed(Key::Enter),
            input.key_pressed(Key::Space),
            input.key_pressed(Key::F),
        )
    });
    *at = at.saturating_add_signed(steps).min(count - 1);
    if enter {
        frame.push(ModelCommand::Load(id));
    }
    if space {
        audition(frame, id);
    }
    let mut list = frame.view.models.list.iter();
    if mark && let Some(entry) = list.find(|entry| entry.id == id) {
        frame.push(ModelCommand::Favourite(id, !entry.favourite));
    }
    *at != before
}

/// Starts or ends an audition.
fn audition(frame: &mut Frame<'_>, id: ModelEntryId) {
    let on = frame.view.models.auditioned != Some(id);
    frame.push(ModelCommand::Audition(on.then_some(id)));
}

fn list(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    browser: &mut BrowserState,
    rows: &[BrowserRow<'_>],
    follow: bool,
) {
    let width = ui.available_width();
    // Heights follow from the texts, whose layouts egui caches.
    let about = |row: &BrowserRow<'_>| match row {
        BrowserRow::Heading(_) => None,
        BrowserRow::Entry(_, entry) => {
            let text = if entry.about.is_empty() {
                &entry.author
            } else {
                &entry.about
            };
            let file = other_name(entry.path.as_deref(), &entry.name);
            let text = match file {
                Some(file) if text.is_empty() => file,
                Some(file) => format!("{file} · {text}").into(),
                None => text.into(),
            };
            Some(theme::fit_lines(
                ui.painter(),
                &text,
                width - LEFT - 6.0,
                LINES,
                Palette::current(ui).dim,
            ))
        }
    };
    let abouts: Vec<Option<Arc<Galley>>> = rows.iter().map(about).collect();
    let height =
        |about: &Option<Arc<Galley>>| about.as_ref().map_or(HEADING, |about| ROW + about.size().y);
    let total: f32 = abouts.iter().map(height).sum();
    ScrollArea::vertical().auto_shrink(false).show_viewport(ui, |ui, seen| {
        ui.set_height(total);
        let origin = ui.max_rect().min;
        let width = ui.available_width();
        let mut top = 0.0;
        for (row, about) in rows.iter().zip(abouts) {
            let height = height(&about);
            let rect = Rect::from_min_size(origin + vec2(0.0, top), vec2(width, height));
            top += height;
            let cursor =
                matches!(row, BrowserRow::Entry(section, entry) if browser.cursor == Some((*section, entry.id)));
            if cursor && follow {
                ui.scroll_to_rect(rect, None);
            }
            // Only visible rows are drawn, and the one with the cursor, which would lose the
            // keyboard focus otherwise.
            if !cursor && (top < seen.min.y || top - height > seen.max.y) {
                continue;
            }
            match (row, about) {
                (BrowserRow::Heading(section), _) => {
                    let ink = Palette::current(ui).dim;
                    let place = pos2(rect.left() + 2.0, rect.bottom() - 4.0);
                    ui.painter().text(place, Align2::LEFT_BOTTOM, section.name(), theme::small(), ink);
                }
                (BrowserRow::Entry(section, entry), Some(about)) => {
                    entry_row(ui, frame, browser, (*section, entry), about, rect);
                }
                (BrowserRow::Entry(..), None) => {}
            }
        }
    });
}

fn entry_row(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    browser: &mut BrowserState,
    (section, entry): (BrowserSection, &ModelEntry),
    about: Arc<Galley>,
    rect: Rect,
) {
    let palette = Palette::current(ui);
    let key = (section, entry.id);
    let cursor = browser.cursor == Some(key);
    let playing = frame.view.model.and_then(|model| model.entry) == Some(entry.id);
    // Tab reaches the row with the cursor only, instead of every model.
    let sense = if cursor { Sense::click() } else { Sense::CLICK };
    let response = ui.interact(rect.shrink2(vec2(0.0, 1.0)), row_id(key), sense);
    response.widget_info(|| {
        WidgetInfo::selected(Role::ListBoxOption, ui.is_enabled(), playing, &entry.name)
    });
    if response.clicked()
        && !ui.input(|input| input.key_pressed(Key::Enter) || input.key_pressed(Key::Space))
    {
        browser.cursor = Some(key);
        ui.memory_mut(|memory| memory.request_focus(row_id(key)));
        if !playing {
            frame.push(ModelCommand::Load(entry.id));
        }
    }

    let field = response.rect;
    if playing || response.hovered() {
        ui.painter().rect_filled(
            field,
            RADIUS,
            if playing {
                palette.raised
            } else {
                palette.panel.lerp_to_gamma(palette.raised, 0.6)
            },
        );
    }
    if playing {
        let bar = Rect::from_min_size(field.min + vec2(0.0, 6.0), vec2(3.0, field.height() - 12.0));
        ui.painter().rect_filled(bar, 1.5, palette.accent);
    }
    let auditioned = frame.view.models.auditioned == Some(entry.id);
    let first_line = Rect::from_min_size(field.min, vec2(field.width(), ROW));
    let left = Rect::from_min_size(first_line.min + vec2(6.0, 0.0), vec2(LEFT - 8.0, ROW));
    let right = Rect::from_min_max(
        pos2(field.right() - RIGHT, field.top()),
        pos2(field.right() - 2.0, first_line.bottom()),
    );
    let listen = if auditioned { "Stop" } else { "Audition" };
    if row_button(
        ui,
        key,
        left,
        if auditioned { Icon::Stop } else { Icon::Play },
        &format!("{listen} {}", entry.name),
        auditioned,
    ) {
        audition(frame, entry.id);
    }
    let star = if entry.favourite {
        Icon::StarFull
    } else {
        Icon::Star
    };
    let mark = if entry.favourite { "Remove" } else { "Add" };
    let (to, name) = (if entry.favourite { "from" } else { "to" }, &entry.name);
    if row_button(
        ui,
        key,
        right,
        star,
        &format!("{mark} {name} {to} favourites"),
        entry.favourite,
    ) {
        frame.push(ModelCommand::Favourite(entry.id, !entry.favourite));
    }

    let painter = ui.painter();
    let kind = painter.layout_no_wrap(
        format::kind(entry.kind).to_owned(),
        theme::small(),
        palette.dim,
    );
    let kind_place = Align2::RIGHT_CENTER.anchor_size(
        pos2(right.left() - 2.0, first_line.center().y + 0.5),
        kind.size(),
    );
    let start = pos2(field.left() + LEFT, first_line.center().y);
    let font = egui::TextStyle::Body.resolve(ui.style());
    let name = theme::fit(
        painter,
        &entry.name,
        font,
        kind_place.left() - GAP - start.x,
        palette.text,
    );
    painter.galley(
        Align2::LEFT_CENTER.anchor_size(start, name.size()).min,
        name,
        palette.text,
    );
    painter.galley(kind_place.min, kind, palette.dim);
    painter.galley(pos2(start.x, first_line.bottom() - 5.0), about, palette.dim);
    if response.has_focus() {
        ui.painter().rect_stroke(
            field,
            RADIUS,
            Stroke::new(1.5, palette.accent),
            StrokeKind::Inside,
        );
    }
    let file = entry
        .path
        .as_ref()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let facts = [entry.about.as_str(), &entry.author, &entry.quality, &file];
    let facts = facts
        .into_iter()
        .filter(|fact| !fact.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    response.on_hover_text(format!(
        "{}\n{facts}\nA click or Enter loads, Space auditions, F marks",
        entry.name
    ));
}

/// Draws a small button within a row, for the pointer only; keys do the same.
fn row_button(
    ui: &Ui,
    key: (BrowserSection, ModelEntryId),
    rect: Rect,
    icon: Icon,
    label: &str,
    on: bool,
) -> bool {
    let response = ui.interact(
        rect,
        row_id(key).with(rect.left() > ui.max_rect().center().x),
        Sense::CLICK,
    );
    response.widget_info(|| WidgetInfo::selected(Role::Button, ui.is_enabled(), on, label));
    let palette = Palette::current(ui);
    let ink = match (on, response.hovered()) {
        (true, _) => palette.accent,
        (false, true) => palette.text,
        (false, false) => palette.dim.gamma_multiply(0.7),
    };
    icon::paint(ui.painter(), rect, icon, ink);
    response.on_hover_text(label).clicked()
}
