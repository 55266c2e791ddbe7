//! What is being played: pitch and loudness that are followed, and the notes.

use egui::accesskit::Role;
use egui::{Align2, FontFamily, FontId, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};

use super::desk::Desk;
use super::theme::{self, GAP, Palette};
use super::words;

/// The keys of a piano, MIDI.
const LOWEST: u8 = 21;
const HIGHEST: u8 = 108;
/// Room for pitch and loudness, points.
const FIGURES: f32 = 216.0;
/// Ends of the loudness bar, dB.
const FLOOR_DB: f32 = -72.0;

pub(crate) fn show(ui: &mut Ui, desk: &Desk<'_>) {
    let (rect, _) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
    let (left, right) = rect.split_left_right_at_x(rect.left() + FIGURES);
    figures(ui, desk, left);
    keyboard(ui, desk, Rect::from_min_max(right.min + vec2(GAP, 0.0), right.max));
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

fn is_black(key: u8) -> bool {
    matches!(key % 12, 1 | 3 | 6 | 8 | 10)
}

fn keyboard(ui: &Ui, desk: &Desk<'_>, rect: Rect) {
    let palette = Palette::of(ui);
    let notes = desk.view.notes;
    let names: Vec<String> = notes.iter().map(|note| words::note(i32::from(note.key))).collect();
    let response = ui.interact(rect, ui.scope_id().with("keyboard"), Sense::hover());
    let said = if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("Notes {said}")));

    // `[key]`: how strongly it is lit, 0 … 1; of equal notes the loudest counts.
    let mut lit = [0.0_f32; 128];
    for note in notes {
        let strength = if note.velocity.is_nan() { 1.0 } else { 0.4 + 0.6 * note.velocity.clamp(0.0, 1.0) };
        if let Some(key) = lit.get_mut(usize::from(note.key)) {
            *key = key.max(strength);
        }
    }
    let dark = ui.visuals().dark_mode;
    let white = if dark { palette.text.gamma_multiply(0.86) } else { egui::Color32::WHITE };
    let black = if dark { palette.ground } else { palette.text };
    let shade = |resting: egui::Color32, key: u8| resting.lerp_to_gamma(palette.accent, lit[usize::from(key)]);

    let painter = ui.painter();
    let whites = (LOWEST..=HIGHEST).filter(|key| !is_black(*key)).count();
    let width = rect.width() / whites as f32;
    painter.rect_filled(rect, 1.5, palette.line);
    let mut left = rect.left();
    for key in (LOWEST..=HIGHEST).filter(|key| !is_black(*key)) {
        let field = Rect::from_min_size(pos2(left, rect.top()), vec2(width, rect.height()));
        painter.rect_filled(field.shrink2(vec2(0.5, 0.0)), 1.5, shade(white, key));
        if key % 12 == 0 {
            let ink = egui::Color32::from_gray(90);
            let at = field.center_bottom() - vec2(0.0, 2.0);
            painter.text(at, Align2::CENTER_BOTTOM, words::note(i32::from(key)), FontId::proportional(8.0), ink);
        }
        left += width;
    }
    let mut left = rect.left();
    for key in LOWEST..=HIGHEST {
        if is_black(key) {
            let size = vec2((width * 0.62).max(2.0), rect.height() * 0.6);
            let field = Rect::from_min_size(pos2(left - size.x / 2.0, rect.top()), size);
            painter.rect(field, 1.0, shade(black, key), Stroke::new(0.5, black), egui::StrokeKind::Inside);
        } else {
            left += width;
        }
    }
}
