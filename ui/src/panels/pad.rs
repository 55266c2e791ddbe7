//! The pad, which turns two knobs at once, one horizontally and one vertically.
//!
//! Both knobs follow the pointer. The arrow keys move it; Delete and a double click reset it.

use egui::accesskit::Role;
use egui::{
    Align2, Button, ComboBox, EventFilter, Id, Key, PointerButton, Pos2, Rect, Response, RichText,
    Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use ondes_player::parameter::ParameterId;

use crate::command::{KnobCommand, WindowCommand};
use crate::frame::Frame;
use crate::knob_gesture::{FINE, key_step, knob_position, set_knob, snap};
use crate::theme::{self, GAP, Palette};
use crate::view::{Knob, WindowView};

/// Heights of the pad and width of its drop-downs, points. It takes what a high window has left
/// over.
const LEAST_HEIGHT: f32 = 176.0;
const LARGEST_HEIGHT: f32 = 480.0;
const LARGEST_WIDTH: f32 = 960.0;
const SIDE: f32 = 144.0;
/// Distance between the pad's edge and the ends of the knobs' ranges, points.
const MARGIN: f32 = 9.0;

/// The gestures in progress on the pad.
#[derive(Default)]
pub(crate) struct PadState {
    held: Vec<ParameterId>,
    /// True if the pad was drawn in this frame.
    seen: bool,
}

/// The horizontal and the vertical knob, if they exist; never the same one.
type Axes<'a> = [Option<&'a Knob>; 2];

impl PadState {
    /// To be called before the panels are drawn.
    pub fn begin_frame(&mut self) {
        self.seen = false;
    }

    /// To be called after the panels are drawn: ends the gestures if the pad has gone.
    pub fn end_frame(&mut self, commands: &mut Vec<WindowCommand>) {
        if !self.seen {
            self.release(commands);
        }
    }

    /// Ends the gestures in progress.
    pub fn release(&mut self, commands: &mut Vec<WindowCommand>) {
        commands.extend(
            self.held
                .drain(..)
                .map(|id| KnobCommand::EndGesture(id).into()),
        );
    }

    /// Begins gestures on these knobs and ends all others.
    fn grasp(&mut self, axes: Axes<'_>, commands: &mut Vec<WindowCommand>) {
        let ids = || axes.into_iter().flatten().map(|knob| knob.id);
        if !self.held.iter().copied().eq(ids()) {
            self.release(commands);
            self.held.extend(ids());
            commands.extend(ids().map(|id| KnobCommand::BeginGesture(id).into()));
        }
    }
}

pub(crate) fn show(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    pad: &mut PadState,
    ids: (ParameterId, ParameterId),
) {
    let view = frame.view;
    let knobs = offered(&view);
    let find = |id: ParameterId| knobs.iter().copied().find(|knob| knob.id == id);
    let axes = [find(ids.0), find(ids.1).filter(|_| ids.0 != ids.1)];
    pad.seen = true;
    ui.horizontal_top(|ui| {
        let width = (ui.available_width() - SIDE - 2.0 * GAP).clamp(60.0, LARGEST_WIDTH);
        let height = (0.42 * ui.available_height()).clamp(LEAST_HEIGHT, LARGEST_HEIGHT);
        let (rect, _) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
        field(ui, frame, pad, axes, rect);
        ui.add_space(GAP);
        ui.vertical(|ui| {
            // Choosing the other axis's knob swaps both.
            let (across, up) = ids;
            let put_across = |id: ParameterId| if id == up { (up, across) } else { (id, up) };
            let put_up = |id: ParameterId| {
                if id == across {
                    (up, across)
                } else {
                    (across, id)
                }
            };
            choose(ui, frame, &knobs, "Horizontally", axes[0], put_across);
            choose(ui, frame, &knobs, "Vertically", axes[1], put_up);
        });
    });
}

/// Returns the knobs that the pad can turn.
fn offered<'a>(view: &WindowView<'a>) -> Vec<&'a Knob> {
    let knobs = view.knobs;
    let macros = knobs
        .macros
        .iter()
        .filter(|one| one.control.is_some())
        .map(|one| &one.knob);
    let latents = knobs
        .latents
        .iter()
        .flat_map(|latent| [&latent.scale, &latent.offset]);
    let voice = if view.has_voice() { knobs.voice } else { &[] };
    macros.chain(latents).chain(voice).collect()
}

/// Draws a drop-down beside the pad.
fn choose(
    ui: &mut Ui,
    frame: &mut Frame<'_>,
    knobs: &[&Knob],
    name: &str,
    chosen: Option<&Knob>,
    turned: impl Fn(ParameterId) -> (ParameterId, ParameterId),
) {
    ui.label(RichText::new(name).font(theme::small()).weak());
    let text = chosen.map_or("–", |knob| knob.name.as_str());
    let shown = ComboBox::from_id_salt(name)
        .width(SIDE)
        .truncate()
        .selected_text(text)
        .show_ui(ui, |ui| {
            for knob in knobs {
                let on = chosen.is_some_and(|chosen| chosen.id == knob.id);
                if theme::item(ui, Button::selectable(on, knob.name.as_str())).clicked() && !on {
                    let (across, up) = turned(knob.id);
                    frame.push(KnobCommand::SetPad(across, up));
                }
            }
        });
    let hint = format!("Knob that the pad turns {}", name.to_lowercase());
    shown
        .response
        .accessible_name(format!("Pad {}", name.to_lowercase()))
        .on_hover_text(hint);
    let text = chosen
        .map(|knob| frame.model.format_value(knob.id, knob_position(knob)))
        .unwrap_or_default();
    ui.label(RichText::new(text).font(theme::figures()));
    ui.add_space(GAP);
}

fn field(ui: &Ui, frame: &mut Frame<'_>, pad: &mut PadState, axes: Axes<'_>, rect: Rect) {
    let response = ui.interact(rect, Id::unique("pad"), Sense::click_and_drag());
    let text = |knob: &Knob| {
        format!(
            "{} {}",
            knob.name,
            frame.model.format_value(knob.id, knob_position(knob))
        )
    };
    let text = axes
        .into_iter()
        .flatten()
        .map(text)
        .collect::<Vec<_>>()
        .join(", ");
    response.widget_info(|| WidgetInfo::labeled(Role::Group, ui.is_enabled(), "Pad"));
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(text));

    let inner = rect.shrink(MARGIN);
    touch(ui, frame, pad, axes, &response, inner);
    handle_keys(ui, frame, axes, &response);
    paint(ui, axes, &response, inner);
    response.on_hover_text("Drag to turn both knobs at once; double-click resets them");
}

fn touch(
    ui: &Ui,
    frame: &mut Frame<'_>,
    pad: &mut PadState,
    axes: Axes<'_>,
    response: &Response,
    inner: Rect,
) {
    let down =
        response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_down());
    let commands = &mut frame.commands;
    if response.double_clicked() {
        pad.release(commands);
        axes.into_iter()
            .flatten()
            .for_each(|knob| set_knob(knob, knob.default, commands));
        return;
    }
    // A short touch may begin and end between two frames.
    let touched = down || response.clicked_by(PointerButton::Primary);
    if let Some(at) = response.interact_pointer_pos().filter(|_| touched) {
        commands.extend(frame.gestures.release());
        pad.grasp(axes, commands);
        let places = [
            (at.x - inner.left()) / inner.width(),
            (inner.bottom() - at.y) / inner.height(),
        ];
        for (knob, place) in axes.into_iter().zip(places) {
            let Some((knob, value)) = knob.map(|knob| (knob, snap(knob, place))) else {
                continue;
            };
            if value.is_finite() && value != knob.value {
                commands.push(KnobCommand::Set(knob.id, value).into());
            }
        }
    }
    if !down {
        pad.release(commands);
    }
}

/// Handles keys.
fn handle_keys(ui: &Ui, frame: &mut Frame<'_>, axes: Axes<'_>, response: &Response) {
    if !response.has_focus() {
        return;
    }
    let arrows = EventFilter {
        horizontal_arrows: true,
        vertical_arrows: true,
        ..EventFilter::default()
    };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    let (fine, ways, reset) = ui.input(|input| {
        let way = |more, less| input.num_presses(more) as f32 - input.num_presses(less) as f32;
        let ways = [
            way(Key::ArrowRight, Key::ArrowLeft),
            way(Key::ArrowUp, Key::ArrowDown),
        ];
        let reset = input.key_pressed(Key::Delete) || input.key_pressed(Key::Backspace);
        (if input.modifiers.shift { FINE } else { 1.0 }, ways, reset)
    });
    for (knob, way) in axes.into_iter().zip(ways) {
        match knob {
            Some(knob) if reset => set_knob(knob, knob.default, &mut frame.commands),
            Some(knob) if way != 0.0 => set_knob(
                knob,
                knob_position(knob) + way * key_step(knob, fine),
                &mut frame.commands,
            ),
            _ => {}
        }
    }
}

fn paint(ui: &Ui, axes: Axes<'_>, response: &Response, inner: Rect) {
    let palette = Palette::current(ui);
    let painter = ui
        .painter()
        .with_clip_rect(response.rect.intersect(ui.clip_rect()));
    theme::well(&painter, response.rect, &palette);
    for quarter in [0.25, 0.5, 0.75] {
        let at = inner.lerp_inside(vec2(quarter, quarter));
        painter.vline(at.x, inner.y_range(), (1.0, palette.line));
        painter.hline(inner.x_range(), at.y, (1.0, palette.line));
    }
    let names = axes.map(|knob| knob.map_or("", |knob| knob.name.as_str()));
    painter.text(
        inner.right_bottom(),
        Align2::RIGHT_BOTTOM,
        names[0],
        theme::small(),
        palette.dim,
    );
    painter.text(
        inner.left_top(),
        Align2::LEFT_TOP,
        names[1],
        theme::small(),
        palette.dim,
    );

    let [x, y] = axes.map(|knob| knob.map_or(0.5, knob_position));
    let at: Pos2 = pos2(
        inner.left() + x * inner.width(),
        inner.bottom() - y * inner.height(),
    );
    let thread = palette.accent.gamma_multiply(0.5);
    painter.vline(at.x, response.rect.y_range(), (1.0, thread));
    painter.hline(response.rect.x_range(), at.y, (1.0, thread));
    let size = if response.hovered() || response.is_pointer_button_down_on() {
        8.0
    } else {
        7.0
    };
    painter.circle(at, size, palette.accent, Stroke::new(2.0, palette.ground));
    theme::focus_ring(ui, response, response.rect);
}
