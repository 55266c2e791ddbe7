//! The knob, as a dial with its name and value, or as a bar where there are many.
//!
//! What a hand does to it is in `hand`; a knob whose places have names is a drop-down, in `choice`.

use std::f32::consts::TAU;

use egui::accesskit::Action;
use egui::{
    Align2, Button, CursorIcon, Id, Key, Modifiers, Painter, Popup, Pos2, Rect, Response, Sense, SetOpenCommand,
    Stroke, StrokeKind, TextEdit, Ui, UiBuilder, Vec2, WidgetInfo, pos2, vec2,
};

use super::choice;
use super::command::Command;
use super::desk::Desk;
use super::hand::{NUDGE, standing, turn, turn_to};
use super::theme::{self, Palette, RADIUS};
use super::view::{Knob, Midi};

/// Turns from straight down to either end.
const GAP_TURN: f32 = 0.125;

/// Room for a knob with its name and its value, points.
pub(crate) const CELL: Vec2 = vec2(76.0, 84.0);
const DIAL: f32 = 46.0;
/// Room for a bar's value, points.
const FIGURES: f32 = 46.0;

/// Draws a knob and does what is done to it. `on` is false for a knob that turns nothing; `menu` adds to the menu.
pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, on: bool, menu: impl FnOnce(&mut Ui, &mut Desk<'_>)) {
    let (cell, _) = ui.allocate_exact_size(CELL, Sense::hover());
    let palette = Palette::of(ui);
    let painter = ui.painter();
    let name = theme::fit(painter, &knob.name, theme::small(), CELL.x, palette.dim);
    painter.galley(pos2(cell.center().x - name.size().x / 2.0, cell.top()), name, palette.dim);

    let dial = Rect::from_center_size(pos2(cell.center().x, cell.top() + 17.0 + DIAL / 2.0), Vec2::splat(DIAL));
    if !knob.choices.is_empty() {
        let field = Rect::from_center_size(dial.center(), vec2(CELL.x, 26.0));
        return choice::show(ui, desk, knob, on, field, menu);
    }
    let response = ui.interact(dial.expand(3.0), Id::unique(("knob", knob.id)), Sense::click_and_drag());
    let said = handle(ui, desk, knob, &response, menu);
    paint_dial(ui.painter(), dial, standing(knob), on, response.hovered() || response.dragged(), &palette);
    midi_mark(ui.painter(), dial.right_top() + vec2(-2.0, 4.0), knob.midi, &palette);
    theme::focus_ring(ui, &response, response.rect);

    let field = Rect::from_min_max(pos2(cell.left(), cell.bottom() - 19.0), cell.max);
    if !type_value(ui, desk, knob, field, &response) {
        let ink = if on { palette.text } else { palette.dim };
        let shown = if on { said.as_str() } else { "–" };
        let entry = ui.interact(field, Id::unique(("knob value", knob.id)), Sense::CLICK);
        ui.painter().text(field.center(), Align2::CENTER_CENTER, shown, theme::figures(), ink);
        if entry.on_hover_cursor(CursorIcon::Text).double_clicked() {
            desk.hand.type_at(knob.id, said);
        }
    }
    hint(response, knob.midi);
}

/// Draws a knob as a bar in `rect`, for rows of many; who draws it says its name.
pub(crate) fn bar(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, rect: Rect) {
    let response = ui.interact(rect, Id::unique(("knob", knob.id)), Sense::click_and_drag());
    let said = handle(ui, desk, knob, &response, |_, _| ());
    if type_value(ui, desk, knob, rect, &response) {
        return;
    }
    let palette = Palette::of(ui);
    let painter = ui.painter();
    let edge = if response.hovered() || response.dragged() { palette.dim } else { palette.line };
    painter.rect_filled(rect, RADIUS, palette.ground);
    let (way, said_at) = rect.shrink2(vec2(4.0, 3.0)).split_left_right_at_x(rect.right() - FIGURES);
    // From where it rests: what is bent is seen at once.
    let x = |place: f32| way.left() + if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) * way.width() };
    let (rest, here) = (x(knob.default), x(standing(knob)));
    painter.hline(way.x_range(), way.center().y, Stroke::new(3.0, palette.line));
    painter.hline(rest.min(here)..=rest.max(here), way.center().y, Stroke::new(3.0, palette.accent));
    painter.vline(here, way.y_range(), Stroke::new(2.5, palette.text));
    painter.rect_stroke(rect, RADIUS, Stroke::new(1.0, edge), StrokeKind::Inside);
    painter.text(said_at.right_center(), Align2::RIGHT_CENTER, &said, theme::figures(), palette.text);
    midi_mark(painter, rect.right_top() + vec2(-5.0, 5.0), knob.midi, &palette);
    theme::focus_ring(ui, &response, rect);
    hint(response, knob.midi);
}

/// What all forms of a knob have in common: it is turned, typed at, described, and has its menu. Gives what it says.
fn handle(
    ui: &Ui,
    desk: &mut Desk<'_>,
    knob: &Knob,
    response: &Response,
    menu: impl FnOnce(&mut Ui, &mut Desk<'_>),
) -> String {
    let value = standing(knob);
    let said = desk.owner.text(knob.id, value);
    describe(ui, response, knob, value, &said);
    turn(ui, desk, knob, response);
    if response.double_clicked() {
        turn_to(knob, knob.default, &mut desk.commands);
    } else if response.has_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
        desk.hand.type_at(knob.id, said.clone());
    }
    context_menu(ui, response, |ui| {
        standard_menu(ui, desk, knob, response.id, Some(&said));
        menu(ui, desk);
    });
    said
}

/// A point on what a controller turns, or shall.
pub(crate) fn midi_mark(painter: &Painter, at: Pos2, midi: Midi, palette: &Palette) {
    if !matches!(midi, Midi::None | Midi::Never) {
        let ink = if midi == Midi::Learning { palette.bad } else { palette.accent };
        painter.circle_filled(at, 3.0, ink);
    }
}

/// What the point stands for.
pub(crate) fn hint(response: Response, midi: Midi) {
    match midi {
        Midi::None | Midi::Never => {}
        Midi::Learning => drop(response.on_hover_text("Move a MIDI controller")),
        Midi::Controller(number) => drop(response.on_hover_text(format!("MIDI controller {number}"))),
    }
}

/// What is read to those who cannot see it.
fn describe(ui: &Ui, response: &Response, knob: &Knob, value: f32, said: &str) {
    response.widget_info(|| WidgetInfo::slider(ui.is_enabled(), f64::from(value), &knob.name));
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_value(said);
        node.set_min_numeric_value(0.0);
        node.set_max_numeric_value(1.0);
        node.set_numeric_value_step(f64::from(NUDGE));
        for action in [Action::Increment, Action::Decrement, Action::SetValue] {
            node.add_action(action);
        }
    });
}

/// A menu that the other mouse button opens, or the menu key, or Shift+F10.
pub(crate) fn context_menu(ui: &Ui, response: &Response, content: impl FnOnce(&mut Ui)) {
    // Where there was no pointer, the menu stands by the knob.
    let by_key = response.id.with("menu by key");
    let called = response.has_focus()
        && ui.input_mut(|input| {
            input.consume_key(Modifiers::NONE, Key::Menu) || input.consume_key(Modifiers::SHIFT, Key::F10)
        });
    if called || response.secondary_clicked() {
        ui.data_mut(|data| data.insert_temp(by_key, called));
    }
    let mut popup = Popup::context_menu(response);
    if called {
        popup = popup.open_memory(SetOpenCommand::Bool(true));
    }
    let opened_by_key = ui.data(|data| data.get_temp(by_key) == Some(true));
    if opened_by_key {
        popup = popup.anchor(response.rect);
    }
    popup.show(|ui| {
        theme::menu(ui);
        content(ui);
    });
    if opened_by_key && !Popup::is_id_open(ui.ctx(), Popup::default_response_id(response)) {
        // The keyboard goes back to where it came from.
        ui.data_mut(|data| data.remove_temp::<bool>(by_key));
        response.request_focus();
    }
}

/// What every knob's menu offers; `owner` is the widget that it belongs to, `said` what can be typed over.
pub(crate) fn standard_menu(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, owner: Id, said: Option<&str>) {
    let first = theme::item(ui, Button::new("Reset"));
    if ui.memory(|memory| memory.focused().is_none_or(|id| id == owner)) {
        first.request_focus();
    }
    if first.clicked() {
        turn_to(knob, knob.default, &mut desk.commands);
    }
    if let Some(said) = said
        && theme::item(ui, Button::new("Type a value")).clicked()
    {
        desk.hand.type_at(knob.id, said.to_owned());
    }
    if !desk.view.can_learn {
        return;
    }
    let (label, command) = match knob.midi {
        Midi::None => ("MIDI learn".to_owned(), Command::Learn(knob.id)),
        Midi::Never => return,
        Midi::Learning => ("Stop MIDI learn".to_owned(), Command::Forget(knob.id)),
        Midi::Controller(number) => (format!("Forget MIDI controller {number}"), Command::Forget(knob.id)),
    };
    if theme::item(ui, Button::new(label)).clicked() {
        desk.tell(command);
    }
}

/// The field for a typed value, while one is typed: else false. What the knob cannot say is refused, and stays to be put right.
fn type_value(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, field: Rect, dial: &Response) -> bool {
    let palette = Palette::of(ui);
    let Desk { owner, hand, commands, .. } = desk;
    let Some(typing) = hand.typing.as_mut().filter(|typing| typing.knob == knob.id) else { return false };
    let id = Id::unique(("knob entry", knob.id));
    let ink = if typing.refused { palette.bad } else { palette.text };
    let mut child = ui.new_child(UiBuilder::new().max_rect(field));
    let edit = TextEdit::singleline(&mut typing.text)
        .id(id)
        .font(theme::figures())
        .text_color(ink)
        .align(egui::Align2::CENTER_CENTER)
        .margin(vec2(3.0, 2.0))
        .desired_width(field.width());
    let output = edit.show(&mut child);
    let response = output.response.response.accessible_name(format!("{} value", knob.name));
    if typing.fresh {
        typing.fresh = false;
        response.request_focus();
        theme::select_all(ui.ctx(), id, output.state, &output.galley);
        return true;
    }
    if response.changed() {
        typing.refused = false;
    }
    if typing.refused {
        let stroke = Stroke::new(1.5, palette.bad);
        ui.painter().rect_stroke(response.rect, theme::RADIUS, stroke, egui::StrokeKind::Outside);
    }
    if !response.lost_focus() {
        return true;
    }
    let (entered, left) = ui.input(|input| (input.key_pressed(Key::Enter), input.key_pressed(Key::Escape)));
    let value = if left { None } else { owner.parse(knob.id, typing.text.trim()).filter(|value| value.is_finite()) };
    match value {
        Some(value) => turn_to(knob, value, commands),
        None if entered => {
            typing.refused = true;
            response.request_focus();
            return true;
        }
        None => {}
    }
    hand.typing = None;
    if entered || left {
        dial.request_focus();
    }
    true
}

fn paint_dial(painter: &Painter, rect: Rect, value: f32, on: bool, lit: bool, palette: &Palette) {
    let center = rect.center();
    let radius = rect.width() / 2.0;
    let at = |part: f32, radius: f32| -> Pos2 {
        let turn = (0.25 + GAP_TURN + part * (1.0 - 2.0 * GAP_TURN)) * TAU;
        center + radius * vec2(turn.cos(), turn.sin())
    };
    let arc = |from: f32, to: f32| -> Vec<Pos2> {
        let count = (48.0 * (to - from)).ceil().max(1.0) as usize;
        (0..=count).map(|n| at(from + (to - from) * n as f32 / count as f32, radius - 1.5)).collect()
    };
    painter.line(arc(0.0, 1.0), Stroke::new(3.0, palette.line));
    if on && value > 0.0 {
        painter.line(arc(0.0, value), Stroke::new(3.0, palette.accent));
    }
    let body = if lit { palette.lit } else { palette.raised };
    painter.circle(center, radius - 6.0, body, Stroke::new(1.0, palette.line));
    let hand = if on { palette.text } else { palette.dim };
    painter.line_segment([at(value, radius - 16.0), at(value, radius - 8.5)], Stroke::new(2.0, hand));
}
