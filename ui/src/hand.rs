//! What a hand does to knobs: dragging, scrolling, keys, typing.
//!
//! Every way of turning is a gesture with a beginning and an end, so that a host records one curve and undoes one step.

use egui::accesskit::{Action, ActionData};
use egui::{EventFilter, Key, Response, Ui};

use super::command::Command;
use super::desk::Desk;
use super::view::{Knob, KnobId};

/// Way of the pointer from one end to the other, points.
const TRAVEL: f32 = 160.0;
/// How much slower everything is with Shift.
pub(crate) const FINE: f32 = 0.1;
/// What an arrow key turns, and Page Up or Down.
pub(crate) const NUDGE: f32 = 0.01;
const LEAP: f32 = 0.1;
/// What a point of scrolling turns: a notch of a wheel, about 50 points, is 2 %.
const SCROLL: f32 = 0.0004;
/// A wheel that rests for so long has been let go, seconds.
const REST_S: f64 = 0.3;
/// What the user is doing to knobs. There is one hand.
#[derive(Default)]
pub(crate) struct Hand {
    gesture: Option<Gesture>,
    pub typing: Option<Typing>,
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

/// A value that is being typed.
pub(crate) struct Typing {
    pub knob: KnobId,
    pub text: String,
    /// The knob cannot say what was entered.
    pub refused: bool,
    /// The field has not had the keyboard yet.
    pub fresh: bool,
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

    /// Begins to type at the knob, from that text.
    pub fn type_at(&mut self, knob: KnobId, text: String) {
        self.typing = Some(Typing { knob, text, refused: false, fresh: true });
    }
}

/// Where the knob can be drawn: a host may say anything.
pub(crate) fn standing(knob: &Knob) -> f32 {
    if knob.value.is_nan() { 0.0 } else { knob.value.clamp(0.0, 1.0) }
}

/// The nearest place where the knob can stand.
pub(crate) fn snap(knob: &Knob, value: f32) -> f32 {
    let value = value.clamp(0.0, 1.0);
    if knob.steps < 2 {
        return value;
    }
    let last = (knob.steps - 1) as f32;
    (value * last).round() / last
}

/// What an arrow key turns; `fine` makes it smaller where the knob may stand anywhere.
pub(crate) fn step(knob: &Knob, fine: f32) -> f32 {
    if knob.steps < 2 { fine * NUDGE } else { 1.0 / (knob.steps - 1) as f32 }
}

/// Turns the knob in a gesture of its own.
pub(crate) fn turn_to(knob: &Knob, value: f32, commands: &mut Vec<Command>) {
    let value = snap(knob, value);
    if value.is_nan() || value == knob.value {
        return;
    }
    commands.extend([Command::Begin(knob.id), Command::Set(knob.id, value), Command::End(knob.id)]);
}

/// Pointer, wheel, keyboard and those who turn it by other means.
pub(crate) fn turn(ui: &Ui, desk: &mut Desk<'_>, knob: &Knob, response: &Response) {
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
    let step = step(knob, fine);
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
