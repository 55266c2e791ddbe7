//! Drop-downs: knobs whose positions have labels.

use egui::accesskit::Role;
use egui::{
    Align2, Button, EventFilter, Id, Key, Popup, Rect, Response, Sense, Ui, WidgetInfo, pos2, vec2,
};

use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::knob_gesture::{knob_position, set_knob};
use crate::knob_menu::{context_menu, midi_mark, show_tooltip, standard_menu};
use crate::theme::{self, Palette, RADIUS};
use crate::view::Knob;

/// Draws the knob into `rect` and handles input; the caller draws its label.
pub(crate) fn show(
    ui: &Ui,
    frame: &mut Frame<'_>,
    knob: &Knob,
    bound: bool,
    rect: Rect,
    menu: impl FnOnce(&mut Ui, &mut Frame<'_>),
) {
    let last = knob.choices.len().saturating_sub(1);
    let here = (knob_position(knob) * last as f32).round() as usize;
    let text = knob
        .choices
        .get(here)
        .filter(|_| bound)
        .map_or("–", String::as_str);
    let response = ui.interact(rect, Id::unique(("knob", knob.id)), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, ui.is_enabled(), &knob.name));
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(text));

    let value = |index: usize| index as f32 / last.max(1) as f32;
    let steps = arrow_steps(ui, &response);
    if steps != 0 {
        set_knob(
            knob,
            value(here.saturating_add_signed(steps).min(last)),
            &mut frame.commands,
        );
    }
    context_menu(ui, &response, |ui| {
        standard_menu(ui, frame, knob, response.id, None);
        menu(ui, frame);
    });
    // The context menu has the default id already.
    Popup::menu(&response)
        .id(response.id.with("choices"))
        .show(|ui| {
            ui.set_min_width(rect.width());
            theme::short_menu(ui, |ui| {
                for (index, choice) in knob.choices.iter().enumerate() {
                    if theme::item(ui, Button::selectable(index == here, choice)).clicked() {
                        set_knob(knob, value(index), &mut frame.commands);
                    }
                }
            });
        });
    field(ui, &response, text, bound);
    midi_mark(
        ui.painter(),
        rect.right_top() + vec2(-4.0, 4.0),
        knob.midi,
        &Palette::current(ui),
    );
    show_tooltip(response, knob);
}

/// Returns the steps of the arrow keys.
fn arrow_steps(ui: &Ui, response: &Response) -> isize {
    if !response.has_focus() {
        return 0;
    }
    let arrows = EventFilter {
        horizontal_arrows: true,
        vertical_arrows: true,
        ..EventFilter::default()
    };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    ui.input(|input| {
        let presses = |key| input.num_presses(key) as isize;
        presses(Key::ArrowDown) + presses(Key::ArrowRight)
            - presses(Key::ArrowUp)
            - presses(Key::ArrowLeft)
    })
}

/// Paints the closed field of a drop-down.
pub(crate) fn field(ui: &Ui, response: &Response, text: &str, bound: bool) {
    let palette = Palette::current(ui);
    let rect = response.rect;
    let fill = if response.hovered() {
        palette.hovered
    } else {
        palette.raised
    };
    ui.painter().rect_filled(rect, RADIUS, fill);
    let sign = Rect::from_center_size(pos2(rect.right() - 11.0, rect.center().y), vec2(12.0, 12.0));
    icon::paint(ui.painter(), sign, Icon::Down, palette.dim);
    let ink = if bound { palette.text } else { palette.dim };
    let font = egui::FontId::proportional(12.0);
    let galley = theme::fit(
        ui.painter(),
        text,
        font,
        sign.left() - 4.0 - (rect.left() + 7.0),
        ink,
    );
    let place = Align2::LEFT_CENTER.anchor_size(rect.left_center() + vec2(7.0, 0.0), galley.size());
    ui.painter().galley(place.min, galley, ink);
    theme::focus_ring(ui, response, rect);
}
