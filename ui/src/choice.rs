//! A knob whose places have names: a drop-down.

use egui::accesskit::Role;
use egui::{Align2, Button, EventFilter, Id, Key, Popup, Rect, Response, Sense, Ui, WidgetInfo, pos2, vec2};

use super::desk::Desk;
use super::hand::{standing, turn_to};
use super::icon::{self, Icon};
use super::knob::{context_menu, hint, midi_mark, standard_menu};
use super::theme::{self, Palette, RADIUS};
use super::view::Knob;

/// Draws it into `rect`, and does what is done to it. Its name is said by who draws it.
pub(crate) fn show(
    ui: &Ui,
    desk: &mut Desk<'_>,
    knob: &Knob,
    on: bool,
    rect: Rect,
    menu: impl FnOnce(&mut Ui, &mut Desk<'_>),
) {
    let last = knob.choices.len().saturating_sub(1);
    let here = (standing(knob) * last as f32).round() as usize;
    let said = knob.choices.get(here).filter(|_| on).map_or("–", String::as_str);
    let response = ui.interact(rect, Id::unique(("knob", knob.id)), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, ui.is_enabled(), &knob.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(said));

    let value = |index: usize| index as f32 / last.max(1) as f32;
    let steps = walked(ui, &response);
    if steps != 0 {
        turn_to(knob, value(here.saturating_add_signed(steps).min(last)), &mut desk.commands);
    }
    context_menu(ui, &response, |ui| {
        standard_menu(ui, desk, knob, response.id, None);
        menu(ui, desk);
    });
    // The menu of all knobs has the usual name already.
    Popup::menu(&response).id(response.id.with("choices")).show(|ui| {
        theme::menu(ui);
        ui.set_min_width(rect.width());
        for (index, choice) in knob.choices.iter().enumerate() {
            if theme::item(ui, Button::selectable(index == here, choice)).clicked() {
                turn_to(knob, value(index), &mut desk.commands);
            }
        }
    });
    field(ui, &response, said, on);
    midi_mark(ui.painter(), rect.right_top() + vec2(-4.0, 4.0), knob.midi, &Palette::of(ui));
    hint(response, knob.midi);
}

/// Steps that the arrow keys take.
fn walked(ui: &Ui, response: &Response) -> isize {
    if !response.has_focus() {
        return 0;
    }
    let arrows = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    ui.input(|input| {
        let presses = |key| input.num_presses(key) as isize;
        presses(Key::ArrowDown) + presses(Key::ArrowRight) - presses(Key::ArrowUp) - presses(Key::ArrowLeft)
    })
}

/// Paints what opens a list: what is chosen from it, and a sign that there is more.
pub(crate) fn field(ui: &Ui, response: &Response, text: &str, on: bool) {
    let palette = Palette::of(ui);
    let rect = response.rect;
    let fill = if response.hovered() { palette.lit } else { palette.raised };
    ui.painter().rect_filled(rect, RADIUS, fill);
    let sign = Rect::from_center_size(pos2(rect.right() - 11.0, rect.center().y), vec2(12.0, 12.0));
    icon::paint(ui.painter(), sign, Icon::Down, palette.dim);
    let ink = if on { palette.text } else { palette.dim };
    let font = egui::FontId::proportional(12.0);
    let galley = theme::fit(ui.painter(), text, font, sign.left() - 4.0 - (rect.left() + 7.0), ink);
    let place = Align2::LEFT_CENTER.anchor_size(rect.left_center() + vec2(7.0, 0.0), galley.size());
    ui.painter().galley(place.min, galley, ink);
    theme::focus_ring(ui, response, rect);
}
