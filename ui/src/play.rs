//! What is being played: pitch and loudness that are followed, what plays, and the notes.

use egui::accesskit::Role;
use egui::{Align2, Button, FontFamily, FontId, Rect, Sense, Ui, UiBuilder, WidgetInfo, pos2, vec2};

use super::command::Command;
use super::desk::Desk;
use super::fingers::Fingers;
use super::keyboard;
use super::theme::{self, GAP, Palette};
use super::view::PlayedBy;
use super::words;

/// Room for pitch and loudness, points.
const FIGURES: f32 = 216.0;
/// Room for what plays it, points.
const SWITCHES: f32 = 98.0;
/// Ends of the loudness bar, dB.
const FLOOR_DB: f32 = -72.0;

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, fingers: &mut Fingers) {
    let (rect, _) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
    let (left, mut right) = rect.split_left_right_at_x(rect.left() + FIGURES);
    figures(ui, desk, left);
    if desk.view.played_by.is_some() || desk.view.can_play {
        let (switches, rest) = right.split_left_right_at_x(right.left() + GAP + SWITCHES);
        right = rest;
        let mut column =
            ui.new_child(UiBuilder::new().max_rect(switches.with_min_x(switches.left() + GAP)).id_salt("switches"));
        column.spacing_mut().item_spacing = vec2(2.0, GAP);
        column.spacing_mut().button_padding.x = 6.0;
        played_by(&mut column, desk);
        keys(&mut column, desk, fingers);
    }
    keyboard::show(ui, desk, fingers, Rect::from_min_max(right.min + vec2(GAP, 0.0), right.max));
}

/// Notes or the input.
fn played_by(ui: &mut Ui, desk: &mut Desk<'_>) {
    let Some(now) = desk.view.played_by else { return };
    ui.horizontal(|ui| {
        let ways = [(PlayedBy::Notes, "Notes", "MIDI plays"), (PlayedBy::Input, "Input", "What comes in plays")];
        for (one, name, hint) in ways {
            let button = Button::selectable(one == now, name).frame_when_inactive(true).min_size(vec2(45.0, 26.0));
            if ui.add(button).on_hover_text(hint).clicked() && one != now {
                desk.tell(Command::PlayedBy(one));
            }
        }
    });
}

/// Whether computer keys play, and which ones.
fn keys(ui: &mut Ui, desk: &Desk<'_>, fingers: &mut Fingers) {
    if !desk.view.can_play {
        return;
    }
    ui.horizontal(|ui| {
        let on = fingers.keys();
        let button = Button::selectable(on, "Keys").frame_when_inactive(true).min_size(vec2(45.0, 26.0));
        let response = ui.add(button).on_hover_text(
            "Play on the computer's keys: A W S E D … from C\nZ X: an octave down or up\nC V: softer or harder",
        );
        if response.clicked() {
            fingers.set_keys(!on);
            // A host leaves letters to a window that has something to take them.
            response.request_focus();
        }
        if on {
            let (first, percent) = (words::note(i32::from(fingers.first())), 100.0 * fingers.velocity());
            let (rect, said) = ui.allocate_exact_size(vec2(45.0, 26.0), Sense::hover());
            let line = format!("Keys from {first}, velocity {percent:.0} %");
            said.widget_info(|| WidgetInfo::labeled(Role::Status, true, &line));
            let palette = Palette::of(ui);
            let left = rect.left() + GAP;
            let (above, below) = (pos2(left, rect.top() + 1.0), pos2(left, rect.bottom() - 1.0));
            ui.painter().text(above, Align2::LEFT_TOP, first, theme::figures(), palette.text);
            ui.painter().text(below, Align2::LEFT_BOTTOM, format!("{percent:.0} %"), theme::figures(), palette.dim);
            said.on_hover_text(line);
        }
    });
}

fn figures(ui: &Ui, desk: &Desk<'_>, rect: Rect) {
    let palette = Palette::of(ui);
    let view = desk.view;
    let pitch = view.pitch_hz.and_then(|hz| words::note_of(hz).map(|(key, cents)| (words::note(key), cents, hz)));
    let loudness = view.loudness_db.filter(|db| !db.is_nan());
    let said = match &pitch {
        Some((note, cents, hz)) => format!("{note} {cents:+.0} cents, {hz:.1} Hz"),
        None => "none".to_owned(),
    };
    let response = ui.interact(rect, ui.scope_id().with("followed"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("Pitch {said}")));

    let painter = ui.painter();
    let caption = |x: f32, text: &str| {
        painter.text(pos2(x, rect.top()), Align2::LEFT_TOP, text, theme::small(), palette.dim);
    };
    caption(rect.left(), "Pitch");
    let large = FontId::new(24.0, FontFamily::Proportional);
    let name = pitch.as_ref().map_or("–", |(note, ..)| note.as_str());
    let ink = if pitch.is_some() { palette.text } else { palette.dim };
    painter.text(rect.left_top() + vec2(0.0, 15.0), Align2::LEFT_TOP, name, large, ink);
    let middle = rect.left() + 108.0;
    if let Some((_, cents, hz)) = &pitch {
        let line = |y: f32, text: String, ink| {
            painter.text(pos2(middle, rect.top() + y), Align2::RIGHT_TOP, text, theme::figures(), ink);
        };
        line(17.0, format!("{cents:+.0} ct"), palette.text);
        line(31.0, format!("{hz:.1} Hz"), palette.dim);
    }
    // How far off, from 50 cents below to 50 above.
    let track = Rect::from_min_max(pos2(rect.left(), rect.bottom() - 5.0), pos2(middle, rect.bottom() - 2.0));
    painter.rect_filled(track, 1.5, palette.line);
    painter.vline(track.center().x, track.y_range().expand(2.0), (1.0, palette.dim));
    if let Some((_, cents, _)) = &pitch {
        painter.circle_filled(track.center() + vec2(cents / 100.0 * track.width(), 0.0), 4.0, palette.accent);
    }

    let left = middle + 4.0 * GAP;
    caption(left, "Loudness");
    let text = loudness.map_or_else(|| "–".to_owned(), |db| format!("{} dB", words::decibels(db).trim()));
    let ink = if loudness.is_some() { palette.text } else { palette.dim };
    painter.text(pos2(rect.right() - GAP, rect.top() + 17.0), Align2::RIGHT_TOP, text, theme::figures(), ink);
    let track = Rect::from_min_max(pos2(left, rect.bottom() - 5.0), pos2(rect.right() - GAP, rect.bottom() - 2.0));
    painter.rect_filled(track, 1.5, palette.line);
    if let Some(db) = loudness {
        let mut bar = track;
        bar.set_right(track.left() + (1.0 - db / FLOOR_DB).clamp(0.0, 1.0) * track.width());
        painter.rect_filled(bar, 1.5, palette.accent);
    }
}
