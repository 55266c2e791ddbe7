//! Gestures on knobs: dragging, scrolling, keys, typing.
//!
//! Every change is made within a gesture with a beginning and an end, so that a host records one
//! curve and undoes one step.

use egui::accesskit::{Action, ActionData};
use egui::{EventFilter, Key, Response, Ui};
use ondes_player::parameter::ParameterId;

use crate::command::{KnobCommand, WindowCommand};
use crate::view::Knob;

/// Distance of the pointer for the whole range of a knob, points.
const TRAVEL: f32 = 160.0;
/// Factor of all changes while Shift is held.
pub(crate) const FINE: f32 = 0.1;
/// Step of the arrow keys.
pub(crate) const SMALL_STEP: f32 = 0.01;
/// Step of Page Up and Page Down.
const LARGE_STEP: f32 = 0.1;
/// Change per point of scrolling; a notch of a wheel, about 50 points, is 2 %.
const SCROLL_STEP: f32 = 0.0004;
/// Time without scrolling that ends a gesture of the wheel, seconds.
const WHEEL_REST_S: f64 = 0.3;

/// The gesture in progress, if any, and the value being typed.
#[derive(Default)]
pub(crate) struct KnobGestures {
    gesture: Option<Gesture>,
    pub text_entry: Option<TextEntry>,
}

struct Gesture {
    knob: ParameterId,
    /// Position before rounding to the knob's steps.
    value: f32,
    /// Time of the last scroll event; `None` for a drag.
    wheel_s: Option<f64>,
    /// True if the knob was drawn in this frame.
    drawn: bool,
}

/// A value that is being typed.
pub(crate) struct TextEntry {
    pub knob: ParameterId,
    pub text: String,
    /// True if the entered text was not valid.
    pub invalid: bool,
    /// True if the field has yet to receive the keyboard focus.
    pub fresh: bool,
}

impl KnobGestures {
    /// To be called before the knobs are drawn.
    pub fn begin_frame(&mut self) {
        if let Some(gesture) = &mut self.gesture {
            gesture.drawn = false;
        }
    }

    /// To be called after the knobs are drawn: ends the gesture if its knob has gone or its wheel
    /// rests.
    pub fn end_frame(&mut self, ui: &Ui, commands: &mut Vec<WindowCommand>) {
        let now = ui.input(|input| input.time);
        let rested = |gesture: &mut Gesture| {
            gesture
                .wheel_s
                .is_some_and(|since| now - since >= WHEEL_REST_S)
        };
        if let Some(gesture) = self
            .gesture
            .take_if(|gesture| !gesture.drawn || rested(gesture))
        {
            commands.push(KnobCommand::EndGesture(gesture.knob).into());
        } else if self
            .gesture
            .as_ref()
            .is_some_and(|gesture| gesture.wheel_s.is_some())
        {
            ui.ctx().request_repaint_after_secs(WHEEL_REST_S as f32);
        }
    }

    /// Ends the gesture in progress; returns the command for it.
    pub fn release(&mut self) -> Option<WindowCommand> {
        self.text_entry = None;
        self.gesture
            .take()
            .map(|gesture| KnobCommand::EndGesture(gesture.knob).into())
    }

    /// Returns the gesture on this knob; begins one if necessary.
    fn grasp(
        &mut self,
        knob: &Knob,
        wheel_s: Option<f64>,
        commands: &mut Vec<WindowCommand>,
    ) -> &mut Gesture {
        let other = self
            .gesture
            .take_if(|held| held.knob != knob.id || held.wheel_s.is_some() != wheel_s.is_some());
        commands.extend(other.map(|held| KnobCommand::EndGesture(held.knob).into()));
        let gesture = self.gesture.get_or_insert_with(|| {
            commands.push(KnobCommand::BeginGesture(knob.id).into());
            Gesture {
                knob: knob.id,
                value: knob_position(knob),
                wheel_s,
                drawn: true,
            }
        });
        gesture.wheel_s = wheel_s;
        gesture.drawn = true;
        gesture
    }

    /// Begins typing a value for the knob; `text` is its present value.
    pub fn begin_text_entry(&mut self, knob: ParameterId, text: String) {
        self.text_entry = Some(TextEntry {
            knob,
            text,
            invalid: false,
            fresh: true,
        });
    }

    /// Handles pointer, wheel, keys and accessibility actions on a knob.
    pub fn handle_input(
        &mut self,
        ui: &Ui,
        commands: &mut Vec<WindowCommand>,
        knob: &Knob,
        response: &Response,
    ) {
        let fine = if ui.input(|input| input.modifiers.shift) {
            FINE
        } else {
            1.0
        };
        self.handle_drag(commands, knob, response, fine);
        self.handle_wheel(ui, commands, knob, response, fine);
        handle_keys(ui, commands, knob, response, fine);
    }

    fn handle_drag(
        &mut self,
        commands: &mut Vec<WindowCommand>,
        knob: &Knob,
        response: &Response,
        fine: f32,
    ) {
        if response.drag_started_by(egui::PointerButton::Primary) {
            self.grasp(knob, None, commands);
        }
        if response.dragged_by(egui::PointerButton::Primary) {
            let distance = response.drag_delta().x - response.drag_delta().y;
            let gesture = self.grasp(knob, None, commands);
            // Clamped, so that a pointer that has gone beyond an end acts at once when it turns
            // back.
            gesture.value = (gesture.value + fine * distance / TRAVEL).clamp(0.0, 1.0);
            let value = snap(knob, gesture.value);
            if distance != 0.0 && value != knob.value {
                commands.push(KnobCommand::Set(knob.id, value).into());
            }
        } else if let Some(gesture) = self
            .gesture
            .take_if(|held| held.knob == knob.id && held.wheel_s.is_none())
        {
            commands.push(KnobCommand::EndGesture(gesture.knob).into());
        }
        if let Some(gesture) = self.gesture.as_mut().filter(|held| held.knob == knob.id) {
            gesture.drawn = true;
        }
    }

    fn handle_wheel(
        &mut self,
        ui: &Ui,
        commands: &mut Vec<WindowCommand>,
        knob: &Knob,
        response: &Response,
        fine: f32,
    ) {
        if !response.hovered() || response.dragged() {
            return;
        }
        // Taken out of the input, so that the page does not scroll.
        let scrolled = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta));
        let distance = scrolled.x + scrolled.y;
        if distance != 0.0 {
            let now = ui.input(|input| input.time);
            let gesture = self.grasp(knob, Some(now), commands);
            gesture.value = (gesture.value + fine * distance * SCROLL_STEP).clamp(0.0, 1.0);
            let value = snap(knob, gesture.value);
            if value != knob.value {
                commands.push(KnobCommand::Set(knob.id, value).into());
            }
        }
    }
}

/// Handles keys and accessibility actions, each in a gesture of its own.
fn handle_keys(
    ui: &Ui,
    commands: &mut Vec<WindowCommand>,
    knob: &Knob,
    response: &Response,
    fine: f32,
) {
    let focused = response.has_focus();
    if focused {
        let arrows = EventFilter {
            horizontal_arrows: true,
            vertical_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    }
    let step = key_step(knob, fine);
    let mut change = 0.0;
    let mut target = None;
    ui.input(|input| {
        if focused {
            let count = |key| input.num_presses(key) as f32;
            change += step
                * (count(Key::ArrowUp) + count(Key::ArrowRight)
                    - count(Key::ArrowDown)
                    - count(Key::ArrowLeft));
            change += LARGE_STEP.max(step) * (count(Key::PageUp) - count(Key::PageDown));
            if input.key_pressed(Key::Home) {
                target = Some(0.0);
            } else if input.key_pressed(Key::End) {
                target = Some(1.0);
            } else if input.key_pressed(Key::Delete) || input.key_pressed(Key::Backspace) {
                target = Some(knob.default);
            }
        }
        change += step * input.num_accesskit_action_requests(response.id, Action::Increment) as f32;
        change -= step * input.num_accesskit_action_requests(response.id, Action::Decrement) as f32;
        for request in input.accesskit_action_requests(response.id, Action::SetValue) {
            if let Some(ActionData::NumericValue(value)) = &request.data {
                target = Some(*value as f32);
            }
        }
    });
    if let Some(value) = target {
        set_knob(knob, value, commands);
    } else if change != 0.0 {
        set_knob(knob, knob_position(knob) + change, commands);
    }
}

/// Returns the position to draw, 0 … 1, whatever the knob's value is.
pub(crate) fn knob_position(knob: &Knob) -> f32 {
    if knob.value.is_nan() {
        0.0
    } else {
        knob.value.clamp(0.0, 1.0)
    }
}

/// Returns the nearest position that the knob can have.
pub(crate) fn snap(knob: &Knob, value: f32) -> f32 {
    let value = value.clamp(0.0, 1.0);
    if knob.steps < 2 {
        return value;
    }
    let last = (knob.steps - 1) as f32;
    (value * last).round() / last
}

/// Returns the step of an arrow key; `fine` scales it for a continuous knob.
pub(crate) fn key_step(knob: &Knob, fine: f32) -> f32 {
    if knob.steps < 2 {
        fine * SMALL_STEP
    } else {
        1.0 / (knob.steps - 1) as f32
    }
}

/// Sets the knob in a gesture of its own.
pub(crate) fn set_knob(knob: &Knob, value: f32, commands: &mut Vec<WindowCommand>) {
    let value = snap(knob, value);
    if value.is_nan() || value == knob.value {
        return;
    }
    commands.extend([
        KnobCommand::BeginGesture(knob.id).into(),
        KnobCommand::Set(knob.id, value).into(),
        KnobCommand::EndGesture(knob.id).into(),
    ]);
}
