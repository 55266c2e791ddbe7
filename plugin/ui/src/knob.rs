//! A rotary knob: dragged, scrolled, typed at, or turned with the keyboard.
//!
//! Every way of turning is a gesture with a beginning and an end, so that a host records one curve and undoes one step.

use std::f32::consts::TAU;

use egui::accesskit::{Action, ActionData};
use egui::{
    Align2, Button, CursorIcon, EventFilter, Id, Key, Modifiers, Painter, Popup, Pos2, Rect, Response, Sense,
    SetOpenCommand, Stroke, TextEdit, Ui, UiBuilder, Vec2, WidgetInfo, pos2, vec2,
};

use super::desk::Desk;
use super::theme::{self, Palette};
use super::view::{Command, Knob, KnobId, Midi};

/// Way of the pointer from one end to the other, points.
const TRAVEL: f32 = 160.0;
/// How much slower everything is with Shift.
const FINE: f32 = 0.1;
/// What an arrow key turns, and Page Up or Down.
const NUDGE: f32 = 0.01;
const LEAP: f32 = 0.1;
/// What a point of scrolling turns: a notch of a wheel, about 50 points, is 2 %.
const SCROLL: f32 = 0.0004;
/// A wheel that rests for so long has been let go, seconds.
const REST_S: f64 = 0.3;
/// Turns from straight down to either end.
const GAP_TURN: f32 = 0.125;

/// Room for a knob with its name and its value, points.
pub(crate) const CELL: Vec2 = vec2(76.0, 84.0);
const DIAL: f32 = 46.0;

/// What the user is doing to knobs. There is one hand.
#[derive(Default)]
pub(crate) struct Hand {
    gesture: Option<Gesture>,
    typing: Option<Typing>,
}

struct Gesture {
    knob: KnobId,
    /// Where the hand is; the knob may only stand at steps.
    value: f32,
    /// When a wheel was last turned; none for a drag.
    wheel_s: Option<f64>,
    /// Whether the knob was drawn in this frame.
    seen: bool,
}

struct Typing {
    knob: KnobId,
    text: String,
    refused: bool,
    /// The field has not had the keyboard yet.
    fresh: bool,
}

impl Hand {
    /// Before the knobs are drawn.
    pub fn begin_frame(&mut self) {
        if let Some(gesture) = &mut self.gesture {
            gesture.seen = false;
        }
    }

    /// After: a knob that is not there any more cannot be held, nor a wheel that rests.
    pub fn end_frame(&mut self, ui: &Ui, commands: &mut Vec<Command>) {
        let now = ui.input(|input| input.time);
        let rested = |gesture: &mut Gesture| gesture.wheel_s.is_some_and(|since| now - since >= REST_S);
        if let Some(gesture) = self.gesture.take_if(|gesture| !gesture.seen || rested(gesture)) {
            commands.push(Command::End(gesture.knob));
        } else if self.gesture.as_ref().is_some_and(|gesture| gesture.wheel_s.is_some()) {
            ui.ctx().request_repaint_after_secs(REST_S as f32);
        }
    }

    /// The end of the gesture that is going on.
    pub fn let_go(&mut self) -> Option<Command> {
        self.typing = None;
        self.gesture.take().map(|gesture| Command::End(gesture.knob))
    }

    /// The gesture with this knob, begun now if it was not.
    fn grasp(&mut self, knob: &Knob, wheel_s: Option<f64>, commands: &mut Vec<Command>) -> &mut Gesture {
        let other = self.gesture.take_if(|held| held.knob != knob.id || held.wheel_s.is_some() != wheel_s.is_some());
        commands.extend(other.map(|held| Command::End(held.knob)));
        let gesture = self.gesture.get_or_insert_with(|| {
            commands.push(Command::Begin(knob.id));
            Gesture { knob: knob.id, value: standing(knob), wheel_s, seen: true }
        });
        gesture.wheel_s = wheel_s;
        gesture.seen = true;
        gesture
    }

    fn type_at(&mut self, knob: KnobId, text: String) {
        self.typing = Some(Typing { knob, text, refused: false, fresh: true });
    }
}

/// Where the knob can be drawn: a host may say anything.
fn standing(knob: &Knob) -> f32 {
    if knob.value.is_nan() { 0.0 } else { knob.value.clamp(0.0, 1.0) }
}

/// The nearest place where the knob can stand.
fn snap(knob: &Knob, value: f32) -> f32 {
    let value = value.clamp(0.0, 1.0);
    if knob.steps < 2 {
        return value;
    }
    let last = (knob.steps - 1) as f32;
    (value * last).round() / last
}

/// Turns the knob in a gesture of its own.
fn turn_to(knob: &Knob, value: f32, commands: &mut Vec<Command>) {
    let value = snap(knob, value);
    if value.is_nan() || value == knob.value {
        return;
    }
    commands.extend([Command::Begin(knob.id), Command::Set(knob.id, value), Command::End(knob.id)]);
}

/// Draws a knob and does what is done to it. `on` is false for a knob that turns nothing; `menu` adds to the menu.
pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, on: bool, menu: impl FnOnce(&mut Ui, &mut Desk<'_>)) {
    let (cell, _) = ui.allocate_exact_size(CELL, Sense::hover());
    let palette = Palette::of(ui);
    let value = standing(knob);
    let dial = Rect::from_center_size(pos2(cell.center().x, cell.top() + 17.0 + DIAL / 2.0), Vec2::splat(DIAL));
    let response = ui.interact(dial.expand(3.0), Id::unique(("knob", knob.id)), Sense::click_and_drag());
    let said = desk.owner.text(knob.id, value);
    describe(ui, &response, knob, value, &said);

    turn(ui, desk, knob, &response);
    if response.double_clicked() {
        turn_to(knob, knob.default, &mut desk.commands);
    } else if response.has_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
        desk.hand.type_at(knob.id, said.clone());
    }
    context_menu(ui, &response, |ui| {
        standard_menu(ui, desk, knob, &said);
        menu(ui, desk);
    });

    let painter = ui.painter();
    let name = fit(painter, &knob.name, CELL.x, palette.dim);
    painter.galley(pos2(cell.center().x - name.size().x / 2.0, cell.top()), name, palette.dim);
    paint_dial(painter, dial, value, on, response.hovered() || response.dragged(), &palette);
    if let Midi::Controller(_) | Midi::Learning = knob.midi {
        let ink = if knob.midi == Midi::Learning { palette.bad } else { palette.accent };
        painter.circle_filled(dial.right_top() + vec2(-2.0, 4.0), 3.0, ink);
    }
    theme::focus_ring(ui, &response, response.rect);

    let field = Rect::from_min_max(pos2(cell.left(), cell.bottom() - 19.0), cell.max);
    if desk.hand.typing.as_ref().is_some_and(|typing| typing.knob == knob.id) {
        type_value(ui, desk, knob, field, &response);
    } else {
        let ink = if on { palette.text } else { palette.dim };
        let shown = if on { said.as_str() } else { "–" };
        let entry = ui.interact(field, Id::unique(("knob value", knob.id)), Sense::CLICK);
        ui.painter().text(field.center(), Align2::CENTER_CENTER, shown, theme::figures(), ink);
        if entry.on_hover_cursor(CursorIcon::Text).double_clicked() {
            desk.hand.type_at(knob.id, said);
        }
    }
    let hint = match knob.midi {
        Midi::None => None,
        Midi::Learning => Some("Move a MIDI controller".to_owned()),
        Midi::Controller(number) => Some(format!("MIDI controller {number}")),
    };
    if let Some(hint) = hint {
        response.on_hover_text(hint);
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

/// Pointer, wheel, keyboard and those who turn it by other means.
fn turn(ui: &Ui, desk: &mut Desk<'_>, knob: &Knob, response: &Response) {
    let (fine, now) = ui.input(|input| (if input.modifiers.shift { FINE } else { 1.0 }, input.time));
    let Desk { hand, commands, .. } = desk;

    if response.drag_started_by(egui::PointerButton::Primary) {
        hand.grasp(knob, None, commands);
    }
    if response.dragged_by(egui::PointerButton::Primary) {
        let way = response.drag_delta().x - response.drag_delta().y;
        let gesture = hand.grasp(knob, None, commands);
        // Beyond the end the hand goes on, but not so far that it had to come back.
        gesture.value = (gesture.value + fine * way / TRAVEL).clamp(0.0, 1.0);
        let value = snap(knob, gesture.value);
        if way != 0.0 && value != knob.value {
            commands.push(Command::Set(knob.id, value));
        }
    } else if let Some(gesture) = hand.gesture.take_if(|held| held.knob == knob.id && held.wheel_s.is_none()) {
        commands.push(Command::End(gesture.knob));
    }
    if let Some(gesture) = hand.gesture.as_mut().filter(|held| held.knob == knob.id) {
        gesture.seen = true;
    }

    if response.hovered() && !response.dragged() {
        // What turns the knob must not scroll the page.
        let scrolled = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta));
        let way = scrolled.x + scrolled.y;
        if way != 0.0 {
            let gesture = hand.grasp(knob, Some(now), commands);
            gesture.value = (gesture.value + fine * way * SCROLL).clamp(0.0, 1.0);
            let value = snap(knob, gesture.value);
            if value != knob.value {
                commands.push(Command::Set(knob.id, value));
            }
        }
    }

    let focused = response.has_focus();
    if focused {
        let arrows = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    }
    let step = if knob.steps < 2 { fine * NUDGE } else { 1.0 / (knob.steps - 1) as f32 };
    let mut by = 0.0;
    let mut to = None;
    ui.input(|input| {
        if focused {
            let count = |key| input.num_presses(key) as f32;
            by += step * (count(Key::ArrowUp) + count(Key::ArrowRight) - count(Key::ArrowDown) - count(Key::ArrowLeft));
            by += LEAP.max(step) * (count(Key::PageUp) - count(Key::PageDown));
            if input.key_pressed(Key::Home) {
                to = Some(0.0);
            } else if input.key_pressed(Key::End) {
                to = Some(1.0);
            } else if input.key_pressed(Key::Delete) || input.key_pressed(Key::Backspace) {
                to = Some(knob.default);
            }
        }
        by += step * input.num_accesskit_action_requests(response.id, Action::Increment) as f32;
        by -= step * input.num_accesskit_action_requests(response.id, Action::Decrement) as f32;
        for request in input.accesskit_action_requests(response.id, Action::SetValue) {
            if let Some(ActionData::NumericValue(value)) = &request.data {
                to = Some(*value as f32);
            }
        }
    });
    if let Some(value) = to {
        turn_to(knob, value, commands);
    } else if by != 0.0 {
        turn_to(knob, standing(knob) + by, commands);
    }
}

/// A menu that the other mouse button opens, or the menu key, or Shift+F10.
fn context_menu(ui: &Ui, response: &Response, content: impl FnOnce(&mut Ui)) {
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

fn standard_menu(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, said: &str) {
    let first = theme::item(ui, Button::new("Reset"));
    if ui.memory(|memory| memory.focused().is_none_or(|id| id == Id::unique(("knob", knob.id)))) {
        first.request_focus();
    }
    if first.clicked() {
        turn_to(knob, knob.default, &mut desk.commands);
    }
    if theme::item(ui, Button::new("Type a value")).clicked() {
        desk.hand.type_at(knob.id, said.to_owned());
    }
    if !desk.view.can_learn {
        return;
    }
    let (label, command) = match knob.midi {
        Midi::None => ("MIDI learn".to_owned(), Command::Learn(knob.id)),
        Midi::Learning => ("Stop MIDI learn".to_owned(), Command::Forget(knob.id)),
        Midi::Controller(number) => (format!("Forget MIDI controller {number}"), Command::Forget(knob.id)),
    };
    if theme::item(ui, Button::new(label)).clicked() {
        desk.tell(command);
    }
}

/// The field for a typed value. What the knob cannot say is refused, and stays to be put right.
fn type_value(ui: &mut Ui, desk: &mut Desk<'_>, knob: &Knob, field: Rect, dial: &Response) {
    let palette = Palette::of(ui);
    let Desk { owner, hand, commands, .. } = desk;
    let Some(typing) = &mut hand.typing else { return };
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
        // What is there gives way to the first thing typed.
        let mut state = output.state;
        let all = egui::text::CCursorRange::two(egui::text::CCursor::default(), output.galley.end());
        state.cursor.set_char_range(Some(all));
        state.store(ui.ctx(), id);
        return;
    }
    if response.changed() {
        typing.refused = false;
    }
    if typing.refused {
        let stroke = Stroke::new(1.5, palette.bad);
        ui.painter().rect_stroke(response.rect, theme::RADIUS, stroke, egui::StrokeKind::Outside);
    }
    if !response.lost_focus() {
        return;
    }
    let (entered, left) = ui.input(|input| (input.key_pressed(Key::Enter), input.key_pressed(Key::Escape)));
    let value = if left { None } else { owner.parse(knob.id, typing.text.trim()).filter(|value| value.is_finite()) };
    match value {
        Some(value) => turn_to(knob, value, commands),
        None if entered => {
            typing.refused = true;
            response.request_focus();
            return;
        }
        None => {}
    }
    hand.typing = None;
    if entered || left {
        dial.request_focus();
    }
}

/// A name in one line, shortened where it must be.
fn fit(painter: &Painter, name: &str, width: f32, ink: egui::Color32) -> std::sync::Arc<egui::Galley> {
    let mut job = egui::text::LayoutJob::simple_singleline(name.to_owned(), theme::small(), ink);
    job.wrap = egui::text::TextWrapping::truncate_at_width(width);
    painter.layout_job(job)
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
