//! Knobs, drawn as a dial with label and value or, in rows of many, as a bar.
//!
//! Gestures are in `knob_gesture`; a knob with labelled positions is drawn by `drop_down`.

use std::f32::consts::TAU;

use egui::accesskit::Action;
use egui::{
    Align2, CursorIcon, Id, Key, Painter, Pos2, Rect, Response, Sense, Stroke, StrokeKind,
    TextEdit, Ui, UiBuilder, Vec2, WidgetInfo, pos2, vec2,
};

use crate::drop_down;
use crate::frame::Frame;
use crate::knob_gesture::{SMALL_STEP, knob_position, set_knob};
use crate::knob_menu::{context_menu, midi_mark, show_tooltip, standard_menu};
use crate::theme::{self, GAP, Palette, RADIUS};
use crate::view::Knob;

/// Angle between straight down and either end of the dial, turns.
const DIAL_GAP: f32 = 0.125;

/// Size of a knob with its label and value, points, and the least width of one in a row of many.
pub(crate) const CELL: Vec2 = vec2(76.0, 84.0);
const LEAST_WIDTH: f32 = 68.0;
/// Width over which knobs are spread at most, points: the hand's and the eye's ways stay short.
const ROOM: f32 = 1080.0;
/// Height of a drop-down with its label in a row of its own, points.
const DROP_DOWN_HEIGHT: f32 = 46.0;
const DIAL: f32 = 46.0;
/// Width of a bar's value, points.
const BAR_TEXT: f32 = 46.0;

/// Draws a knob and handles input. `bound` is false for a macro that is not bound; `menu` adds
/// entries to the menu.
pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    bound: bool,
    menu: impl FnOnce(&mut Ui, &mut Frame<'_>),
) {
    show_in(ui, frame, knob, bound, CELL, menu);
}

/// Draws a knob into a cell of this size.
fn show_in(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    bound: bool,
    size: Vec2,
    menu: impl FnOnce(&mut Ui, &mut Frame<'_>),
) {
    let (cell, _) = ui.allocate_exact_size(size, Sense::hover());
    let palette = Palette::current(ui);
    let painter = ui.painter();
    // Dials are narrower than their cells, so a long label may use the gap beside them.
    let name = theme::fit(
        painter,
        &knob.name,
        theme::small(),
        size.x + GAP - 1.0,
        palette.dim,
    );
    painter.galley(
        pos2(cell.center().x - name.size().x / 2.0, cell.top()),
        name,
        palette.dim,
    );

    if !knob.choices.is_empty() {
        let middle = 17.0 + if size.y < CELL.y { 13.0 } else { DIAL / 2.0 };
        let field = Rect::from_center_size(
            pos2(cell.center().x, cell.top() + middle),
            vec2(size.x, 26.0),
        );
        return drop_down::show(ui, frame, knob, bound, field, menu);
    }
    let dial = Rect::from_center_size(
        pos2(cell.center().x, cell.top() + 17.0 + DIAL / 2.0),
        Vec2::splat(DIAL),
    );
    let response = ui.interact(
        dial.expand(3.0),
        Id::unique(("knob", knob.id)),
        Sense::click_and_drag(),
    );
    let text = handle_input(ui, frame, knob, &response, menu);
    paint_dial(
        ui.painter(),
        dial,
        knob_position(knob),
        bound,
        response.hovered() || response.dragged(),
        &palette,
    );
    midi_mark(
        ui.painter(),
        dial.right_top() + vec2(-2.0, 4.0),
        knob.midi,
        &palette,
    );
    theme::focus_ring(ui, &response, response.rect);

    let field = Rect::from_min_max(pos2(cell.left(), cell.bottom() - 19.0), cell.max);
    if !edit_value(ui, frame, knob, field, &response) {
        let ink = if bound { palette.text } else { palette.dim };
        let shown = if bound { text.as_str() } else { "–" };
        let entry = ui.interact(field, Id::unique(("knob value", knob.id)), Sense::CLICK);
        ui.painter().text(
            field.center(),
            Align2::CENTER_CENTER,
            shown,
            theme::figures(),
            ink,
        );
        let entry = entry
            .on_hover_cursor(CursorIcon::Text)
            .on_hover_text("Double-click to type a value");
        if entry.double_clicked() {
            frame.gestures.begin_text_entry(knob.id, text);
        }
    }
    show_tooltip(response, knob);
}

/// Draws a knob as a bar in `rect`; the caller draws its label.
pub(crate) fn bar(ui: &mut Ui, frame: &mut Frame<'_>, knob: &Knob, rect: Rect) {
    let response = ui.interact(rect, Id::unique(("knob", knob.id)), Sense::click_and_drag());
    let text = handle_input(ui, frame, knob, &response, |_, _| ());
    if edit_value(ui, frame, knob, rect, &response) {
        return;
    }
    let palette = Palette::current(ui);
    let painter = ui.painter();
    let edge = if response.hovered() || response.dragged() {
        palette.dim
    } else {
        palette.line
    };
    painter.rect_filled(rect, RADIUS, palette.ground);
    let (track, text_area) = rect
        .shrink2(vec2(4.0, 3.0))
        .split_left_right_at_x(rect.right() - BAR_TEXT);
    // Filled from the default position, so that changed values stand out.
    let x = |place: f32| {
        track.left()
            + if place.is_nan() {
                0.0
            } else {
                place.clamp(0.0, 1.0) * track.width()
            }
    };
    let (rest, here) = (x(knob.default), x(knob_position(knob)));
    painter.hline(
        track.x_range(),
        track.center().y,
        Stroke::new(3.0, palette.line),
    );
    painter.hline(
        rest.min(here)..=rest.max(here),
        track.center().y,
        Stroke::new(3.0, palette.accent),
    );
    painter.vline(here, track.y_range(), Stroke::new(2.5, palette.text));
    painter.rect_stroke(rect, RADIUS, Stroke::new(1.0, edge), StrokeKind::Inside);
    painter.text(
        text_area.right_center(),
        Align2::RIGHT_CENTER,
        &text,
        theme::figures(),
        palette.text,
    );
    midi_mark(
        painter,
        rect.right_top() + vec2(-5.0, 5.0),
        knob.midi,
        &palette,
    );
    theme::focus_ring(ui, &response, rect);
    show_tooltip(response, knob);
}

/// Draws knobs in rows, dials first and drop-downs in rows of their own, which are lower.
pub(crate) fn rows(ui: &mut Ui, frame: &mut Frame<'_>, knobs: &[Knob]) {
    let (drop_downs, dials): (Vec<&Knob>, Vec<&Knob>) =
        knobs.iter().partition(|knob| !knob.choices.is_empty());
    for (knobs, height, least, most) in [
        (dials, CELL.y, LEAST_WIDTH, CELL.x),
        (drop_downs, DROP_DOWN_HEIGHT, CELL.x, 1.4 * CELL.x),
    ] {
        if knobs.is_empty() {
            continue;
        }
        let room = ui.available_width().min(ROOM);
        let columns = per_row(room, knobs.len(), least);
        let size = vec2((room / columns as f32 - GAP).clamp(least, most), height);
        for row in knobs.chunks(columns) {
            ui.horizontal(|ui| {
                let between = (room / columns as f32 - size.x).max(0.0);
                ui.spacing_mut().item_spacing.x = between;
                ui.add_space(between / 2.0);
                row.iter()
                    .for_each(|knob| show_in(ui, frame, knob, true, size, |_, _| ()));
            });
        }
    }
}

/// Returns the number of items in each of equally long rows.
fn per_row(width: f32, count: usize, least: f32) -> usize {
    let room = ((width + GAP) / (least + GAP)).floor().max(1.0) as usize;
    count.div_ceil(count.div_ceil(room).max(1)).max(1)
}

/// Draws items in a grid of equally long rows.
pub(crate) fn grid<T>(
    ui: &mut Ui,
    items: impl ExactSizeIterator<Item = T>,
    mut draw: impl FnMut(&mut Ui, T),
) {
    let room = ui.available_width().min(ROOM);
    let columns = per_row(room, items.len(), CELL.x);
    // Items are spread over the whole width.
    let spare = room - columns as f32 * CELL.x;
    let between = (spare / columns as f32).max(0.0);
    let mut items = items.peekable();
    while items.peek().is_some() {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = between;
            ui.add_space(between / 2.0);
            for item in items.by_ref().take(columns) {
                draw(ui, item);
            }
        });
    }
}

/// Handles input, the menu and accessibility of all kinds of knobs. Returns the text of the value.
fn handle_input(
    ui: &Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    response: &Response,
    menu: impl FnOnce(&mut Ui, &mut Frame<'_>),
) -> String {
    let value = knob_position(knob);
    let text = frame.model.format_value(knob.id, value);
    describe(ui, response, knob, value, &text);
    frame
        .gestures
        .handle_input(ui, &mut frame.commands, knob, response);
    if response.double_clicked() {
        set_knob(knob, knob.default, &mut frame.commands);
    } else if response.has_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
        frame.gestures.begin_text_entry(knob.id, text.clone());
    }
    context_menu(ui, response, |ui| {
        standard_menu(ui, frame, knob, response.id, Some(&text));
        menu(ui, frame);
    });
    text
}

/// Describes the knob to assistive technology.
fn describe(ui: &Ui, response: &Response, knob: &Knob, value: f32, text: &str) {
    response.widget_info(|| WidgetInfo::slider(ui.is_enabled(), f64::from(value), &knob.name));
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_value(text);
        node.set_min_numeric_value(0.0);
        node.set_max_numeric_value(1.0);
        node.set_numeric_value_step(f64::from(SMALL_STEP));
        for action in [Action::Increment, Action::Decrement, Action::SetValue] {
            node.add_action(action);
        }
    });
}

/// Draws the field for a value that is being typed. Returns false if none is. Invalid text stays,
/// marked, until it is corrected.
fn edit_value(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    field: Rect,
    dial: &Response,
) -> bool {
    let palette = Palette::current(ui);
    let Frame {
        model,
        gestures,
        commands,
        ..
    } = frame;
    let Some(entry) = gestures
        .text_entry
        .as_mut()
        .filter(|entry| entry.knob == knob.id)
    else {
        return false;
    };
    let id = Id::unique(("knob entry", knob.id));
    let ink = if entry.invalid {
        palette.error
    } else {
        palette.text
    };
    let mut child = ui.new_child(UiBuilder::new().max_rect(field));
    let edit = TextEdit::singleline(&mut entry.text)
        .id(id)
        .font(theme::figures())
        .text_color(ink)
        .align(egui::Align2::CENTER_CENTER)
        .margin(vec2(3.0, 2.0))
        .desired_width(field.width());
    let output = edit.show(&mut child);
    let response = output
        .response
        .response
        .accessible_name(format!("{} value", knob.name));
    if entry.fresh {
        entry.fresh = false;
        response.request_focus();
        theme::select_all(ui.ctx(), id, output.state, &output.galley);
        return true;
    }
    if response.changed() {
        entry.invalid = false;
    }
    if entry.invalid {
        let stroke = Stroke::new(1.5, palette.error);
        ui.painter().rect_stroke(
            response.rect,
            theme::RADIUS,
            stroke,
            egui::StrokeKind::Outside,
        );
    }
    if !response.lost_focus() {
        return true;
    }
    let (entered, left) = ui.input(|input| {
        (
            input.key_pressed(Key::Enter),
            input.key_pressed(Key::Escape),
        )
    });
    let value = if left {
        None
    } else {
        model
            .parse_value(knob.id, entry.text.trim())
            .filter(|value| value.is_finite())
    };
    match value {
        Some(value) => set_knob(knob, value, commands),
        None if entered => {
            entry.invalid = true;
            response.request_focus();
            return true;
        }
        None => {}
    }
    gestures.text_entry = None;
    if entered || left {
        dial.request_focus();
    }
    true
}

fn paint_dial(
    painter: &Painter,
    rect: Rect,
    value: f32,
    bound: bool,
    highlighted: bool,
    palette: &Palette,
) {
    let center = rect.center();
    let radius = rect.width() / 2.0;
    let at = |part: f32, radius: f32| -> Pos2 {
        let turn = (0.25 + DIAL_GAP + part * (1.0 - 2.0 * DIAL_GAP)) * TAU;
        center + radius * vec2(turn.cos(), turn.sin())
    };
    let arc = |from: f32, to: f32| -> Vec<Pos2> {
        let count = (48.0 * (to - from)).ceil().max(1.0) as usize;
        (0..=count)
            .map(|n| at(from + (to - from) * n as f32 / count as f32, radius - 1.5))
            .collect()
    };
    painter.line(arc(0.0, 1.0), Stroke::new(3.0, palette.line));
    if bound && value > 0.0 {
        painter.line(arc(0.0, value), Stroke::new(3.0, palette.accent));
    }
    let body = if highlighted {
        palette.hovered
    } else {
        palette.raised
    };
    painter.circle(center, radius - 6.0, body, Stroke::new(1.0, palette.line));
    let hand = if bound { palette.text } else { palette.dim };
    painter.line_segment(
        [at(value, radius - 16.0), at(value, radius - 8.5)],
        Stroke::new(2.0, hand),
    );
}
