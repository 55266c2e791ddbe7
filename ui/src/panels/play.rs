//! Detected pitch and loudness, the control source, and the keyboard.

use egui::accesskit::Role;
use egui::scroll_area::{DragScroll, ScrollSource};
use egui::{
    Align2, Button, FontFamily, FontId, Rect, ScrollArea, Sense, Ui, UiBuilder, WidgetInfo, pos2,
    vec2,
};
use ondes_engine::model::Kind;
use ondes_player::choice::{self, CONTROL_INPUTS, SOURCES};
use ondes_player::parameter::{CONTROL_INPUT, SOURCE};

use crate::command::KnobCommand;
use crate::format;
use crate::frame::Frame;
use crate::keyboard_input::KeyboardInput;
use crate::panels::keyboard;
use crate::theme::{self, GAP, Palette};
use crate::view::{Surroundings, WindowView};

/// Width of pitch and loudness, points, and without cents and Hz in a narrow window.
const FIGURES: f32 = 216.0;
const FEW_FIGURES: f32 = 132.0;
/// Width below which a window is narrow, and the least and the largest width of the keyboard.
const NARROW: f32 = 720.0;
const LEAST_KEYBOARD: f32 = 364.0;
const LARGEST_KEYBOARD: f32 = 1560.0;
/// Width of the control source and of the switch for computer keys, points.
const SWITCHES: f32 = 128.0;
/// Width of the switch for computer keys alone, points.
const KEYS: f32 = 98.0;
/// Least level of the loudness bar, dB.
const FLOOR_DB: f32 = -72.0;

/// Returns whether there is anything to play or to follow: effects and codecs have neither notes
/// nor a followed pitch.
pub(crate) fn is_needed(view: &WindowView<'_>) -> bool {
    view.play.can_play
        || view.play.control_source.is_some()
        || view
            .model
            .is_none_or(|model| model.kind == Kind::Instrument)
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, keyboard: &mut KeyboardInput) {
    let (rect, _) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
    let is_narrow = rect.width() < NARROW;
    let width = if is_narrow { FEW_FIGURES } else { FIGURES };
    let (left, mut right) = rect.split_left_right_at_x(rect.left() + width);
    figures(ui, frame, left, is_narrow);
    let view = frame.view.play;
    let has_choice = view.control_source.is_some() || view.follows_side_chain.is_some();
    if has_choice || view.can_play {
        let width = if has_choice { SWITCHES } else { KEYS };
        let (switches, rest) = right.split_left_right_at_x(right.left() + GAP + width);
        right = rest;
        let mut column = ui.new_child(
            UiBuilder::new()
                .max_rect(switches.with_min_x(switches.left() + GAP))
                .id_salt("switches"),
        );
        column.spacing_mut().item_spacing = vec2(2.0, GAP);
        column.spacing_mut().button_padding.x = 6.0;
        control_source(&mut column, frame);
        keys(&mut column, frame, keyboard);
    }
    let mut right = right.with_min_x(right.left() + GAP);
    right.set_width(right.width().min(LARGEST_KEYBOARD));
    if right.width() >= LEAST_KEYBOARD {
        return keyboard::show(ui, frame, keyboard, right);
    }
    // Dragging plays, so that only the bar and the wheel scroll.
    let source = ScrollSource {
        drag: DragScroll::Never,
        ..ScrollSource::ALL
    };
    ui.scope_builder(UiBuilder::new().max_rect(right), |ui| {
        ScrollArea::horizontal()
            .id_salt("keys")
            .auto_shrink(false)
            .scroll_source(source)
            .show(ui, |ui| {
                let size = vec2(LEAST_KEYBOARD, ui.available_height());
                let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
                keyboard::show(ui, frame, keyboard, rect);
            });
    });
}

/// Draws the choice of what controls the model.
fn control_source(ui: &mut Ui, frame: &mut Frame<'_>) {
    let view = frame.view.play;
    let (parameter, names, hints, active) = match (view.control_source, view.follows_side_chain) {
        (Some(active), _) => {
            let hints = [
                "MIDI notes control the model",
                "Audio input controls the model",
            ];
            // Tracks of the app have an input, and no side-chain.
            let is_plugin = frame.view.surroundings == Surroundings::Host;
            let names = if is_plugin {
                SOURCES.names
            } else {
                &["MIDI", "Input"]
            };
            (SOURCE, names, hints, choice::source_value(active) as usize)
        }
        (None, Some(follows)) => {
            let hints = [
                "The track controls the model",
                "The side-chain controls the model",
            ];
            (
                CONTROL_INPUT,
                CONTROL_INPUTS.names,
                hints,
                usize::from(follows),
            )
        }
        (None, None) => return,
    };
    ui.horizontal(|ui| {
        for (index, (name, hint)) in names.iter().zip(hints).enumerate() {
            let button = Button::selectable(index == active, *name)
                .frame_when_inactive(true)
                .min_size(vec2(45.0, 26.0));
            if ui.add(button).on_hover_text(hint).clicked() && index != active {
                frame.push(KnobCommand::SetParameter(parameter, index as f32));
            }
        }
    });
}

/// Draws the switch for computer keys, and their octave and velocity.
fn keys(ui: &mut Ui, frame: &Frame<'_>, keyboard: &mut KeyboardInput) {
    if !frame.view.play.can_play {
        return;
    }
    ui.horizontal(|ui| {
        let on = keyboard.keys();
        let button = Button::selectable(on, "Keys").frame_when_inactive(true).min_size(vec2(45.0, 26.0));
        let response = ui.add(button).on_hover_text(
            "Play notes on the computer keyboard: A W S E D … from C\nZ X: octave down, up\nC V: softer, louder",
        );
        if response.clicked() {
            keyboard.set_keys(!on);
            // Hosts pass keys on only to a window whose widget has the keyboard focus.
            response.request_focus();
        }
        if on {
            let (first, percent) = (format::note(i32::from(keyboard.first_key())), 100.0 * keyboard.velocity());
            let (rect, response) = ui.allocate_exact_size(vec2(45.0, 26.0), Sense::hover());
            let line = format!("Keys from {first}, velocity {percent:.0} %");
            response.widget_info(|| WidgetInfo::labeled(Role::Status, true, &line));
            let palette = Palette::current(ui);
            let left = rect.left() + GAP;
            let (above, below) = (pos2(left, rect.top() + 1.0), pos2(left, rect.bottom() - 1.0));
            ui.painter().text(above, Align2::LEFT_TOP, first, theme::figures(), palette.text);
            ui.painter().text(below, Align2::LEFT_BOTTOM, format!("{percent:.0} %"), theme::figures(), palette.dim);
            response.on_hover_text(line);
        }
    });
}

fn figures(ui: &Ui, frame: &Frame<'_>, rect: Rect, is_narrow: bool) {
    let palette = Palette::current(ui);
    let view = frame.view.play;
    let pitch = view
        .pitch_hz
        .and_then(|hz| format::note_of(hz).map(|(key, cents)| (format::note(key), cents, hz)));
    let loudness = view.loudness_db.filter(|db| !db.is_nan());
    let text = match &pitch {
        Some((note, cents, hz)) => format!("{note} {cents:+.0} cents, {hz:.1} Hz"),
        None => "none".to_owned(),
    };
    let response = ui.interact(rect, ui.scope_id().with("followed"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("Pitch {text}")));
    response.on_hover_text("Pitch and loudness of the input, which can play an instrument");

    let painter = ui.painter();
    let caption = |x: f32, text: &str| {
        painter.text(
            pos2(x, rect.top()),
            Align2::LEFT_TOP,
            text,
            theme::small(),
            palette.dim,
        );
    };
    caption(rect.left(), "Pitch");
    let large = FontId::new(24.0, FontFamily::Proportional);
    let name = pitch.as_ref().map_or("–", |(note, ..)| note.as_str());
    let ink = if pitch.is_some() {
        palette.text
    } else {
        palette.dim
    };
    painter.text(
        rect.left_top() + vec2(0.0, 15.0),
        Align2::LEFT_TOP,
        name,
        large,
        ink,
    );
    let middle = rect.left() + if is_narrow { 56.0 } else { 108.0 };
    if let Some((_, cents, hz)) = pitch.as_ref().filter(|_| !is_narrow) {
        let line = |y: f32, text: String, ink| {
            painter.text(
                pos2(middle, rect.top() + y),
                Align2::RIGHT_TOP,
                text,
                theme::figures(),
                ink,
            );
        };
        line(17.0, format!("{cents:+.0} cents"), palette.text);
        line(31.0, format!("{hz:.1} Hz"), palette.dim);
    }
    // Deviation from the note, -50 … 50 cents.
    let track = Rect::from_min_max(
        pos2(rect.left(), rect.bottom() - 5.0),
        pos2(middle, rect.bottom() - 2.0),
    );
    painter.rect_filled(track, 1.5, palette.line);
    painter.vline(
        track.center().x,
        track.y_range().expand(2.0),
        (1.0, palette.dim),
    );
    if let Some((_, cents, _)) = &pitch {
        painter.circle_filled(
            track.center() + vec2(cents / 100.0 * track.width(), 0.0),
            4.0,
            palette.accent,
        );
    }

    let left = middle + if is_narrow { 2.0 } else { 4.0 } * GAP;
    caption(left, "Loudness");
    let text = loudness.map_or_else(
        || "–".to_owned(),
        |db| format!("{} dB", format::decibels(db).trim()),
    );
    let ink = if loudness.is_some() {
        palette.text
    } else {
        palette.dim
    };
    painter.text(
        pos2(rect.right() - GAP, rect.top() + 17.0),
        Align2::RIGHT_TOP,
        text,
        theme::figures(),
        ink,
    );
    let track = Rect::from_min_max(
        pos2(left, rect.bottom() - 5.0),
        pos2(rect.right() - GAP, rect.bottom() - 2.0),
    );
    painter.rect_filled(track, 1.5, palette.line);
    if let Some(db) = loudness {
        let mut bar = track;
        bar.set_right(track.left() + (1.0 - db / FLOOR_DB).clamp(0.0, 1.0) * track.width());
        painter.rect_filled(bar, 1.5, palette.accent);
    }
}
