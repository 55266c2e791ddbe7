//! The piano keyboard: shows sounding notes, and plays notes with a velocity that grows towards the
//! front of a key.

use egui::accesskit::Role;
use egui::{
    Align2, Color32, FontId, PointerButton, Pos2, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};

use crate::format;
use crate::frame::Frame;
use crate::keyboard_input::KeyboardInput;
use crate::theme::Palette;

/// Lowest and highest MIDI key.
const LOWEST: u8 = 21;
const HIGHEST: u8 = 108;
/// White keys from A0 to C8, and white keys below A0.
const WHITES: u8 = 52;
const BELOW: u8 = 12;
/// Size of a black key relative to a white one.
const NARROW: f32 = 0.62;
const SHORT: f32 = 0.6;
/// Velocity at the back of a key.
const SOFTEST: f32 = 0.1;

fn is_black(key: u8) -> bool {
    matches!(key % 12, 1 | 3 | 6 | 8 | 10)
}

/// Returns the area of a key on a keyboard that fills `rect`.
fn field(rect: Rect, key: u8) -> Rect {
    let whites =
        7 * (key / 12) + [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6][usize::from(key % 12)] - BELOW;
    let width = rect.width() / f32::from(WHITES);
    let left = rect.left() + f32::from(whites) * width;
    if is_black(key) {
        let size = vec2((width * NARROW).max(2.0), rect.height() * SHORT);
        Rect::from_min_size(pos2(left - size.x / 2.0, rect.top()), size)
    } else {
        Rect::from_min_size(pos2(left, rect.top()), vec2(width, rect.height()))
    }
}

/// Returns the key at a point and its velocity there.
fn struck(rect: Rect, at: Pos2) -> Option<(u8, f32)> {
    let found = |black: bool| {
        (LOWEST..=HIGHEST).find(|key| is_black(*key) == black && field(rect, *key).contains(at))
    };
    // Black keys lie above white ones.
    let key = found(true).or_else(|| found(false))?;
    let field = field(rect, key);
    let depth = ((at.y - field.top()) / field.height()).clamp(0.0, 1.0);
    Some((key, SOFTEST + (1.0 - SOFTEST) * depth))
}

pub(crate) fn show(ui: &Ui, frame: &mut Frame<'_>, keyboard: &mut KeyboardInput, rect: Rect) {
    let names: Vec<String> = frame
        .view
        .play
        .notes
        .iter()
        .map(|note| format::note(i32::from(note.key)))
        .collect();
    let sense = if frame.view.play.can_play {
        Sense::CLICK | Sense::DRAG
    } else {
        Sense::hover()
    };
    let response = ui.interact(rect, ui.scope_id().with("keyboard"), sense);
    let text = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(" ")
    };
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, format!("Notes {text}")));

    if frame.view.play.can_play {
        let down =
            response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_down());
        // A short touch may begin and end between two frames.
        let touched = down || response.clicked_by(PointerButton::Primary);
        let at = response.interact_pointer_pos().filter(|_| touched);
        if down && ui.input(|input| input.pointer.latest_pos().is_none()) {
            keyboard.pointer_lost(&mut frame.commands);
        }
        keyboard.pointer_down(at.and_then(|at| struck(rect, at)), &mut frame.commands);
        if !down {
            keyboard.pointer_up(&mut frame.commands);
        }
    }
    paint(ui, frame, keyboard, rect);
    let hint = if frame.view.play.can_play {
        "Click a key to play it, louder near its front"
    } else {
        "Notes that sound"
    };
    response.on_hover_text(hint);
}

fn paint(ui: &Ui, frame: &Frame<'_>, keyboard: &KeyboardInput, rect: Rect) {
    let palette = Palette::current(ui);
    // `[key]`: brightness, 0 … 1, of the loudest note on each key.
    let mut lit = [0.0_f32; 128];
    let mut light = |key: u8, strength: f32| {
        if let Some(key) = lit.get_mut(usize::from(key)) {
            *key = key.max(strength);
        }
    };
    for note in frame.view.play.notes {
        light(
            note.key,
            if note.velocity.is_nan() {
                1.0
            } else {
                0.4 + 0.6 * note.velocity.clamp(0.0, 1.0)
            },
        );
    }
    keyboard.held().for_each(|key| light(key, 0.4));
    let dark = ui.visuals().dark_mode;
    let white = if dark {
        palette.text.gamma_multiply(0.86)
    } else {
        Color32::WHITE
    };
    let black = if dark { palette.ground } else { palette.text };
    let shade =
        |resting: Color32, key: u8| resting.lerp_to_gamma(palette.accent, lit[usize::from(key)]);

    let painter = ui.painter();
    painter.rect_filled(rect, 1.5, palette.line);
    for key in (LOWEST..=HIGHEST).filter(|key| !is_black(*key)) {
        let field = field(rect, key);
        painter.rect_filled(field.shrink2(vec2(0.5, 0.0)), 1.5, shade(white, key));
        if key % 12 == 0 {
            let at = field.center_bottom() - vec2(0.0, 2.0);
            let name = format::note(i32::from(key));
            painter.text(
                at,
                Align2::CENTER_BOTTOM,
                name,
                FontId::proportional(8.0),
                Color32::from_gray(90),
            );
        }
    }
    for key in (LOWEST..=HIGHEST).filter(|key| is_black(*key)) {
        let edge = Stroke::new(0.5, black);
        painter.rect(
            field(rect, key),
            1.0,
            shade(black, key),
            edge,
            egui::StrokeKind::Inside,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_struck_where_it_lies() {
        let rect = Rect::from_min_size(pos2(40.0, 10.0), vec2(520.0, 60.0));
        for key in LOWEST..=HIGHEST {
            let place = field(rect, key);
            let front = pos2(place.center().x, place.bottom() - 1.0);
            let (found, velocity) = struck(rect, front).expect("a key");
            assert_eq!(found, key);
            assert!(velocity > 0.9, "{velocity}");
        }
        assert_eq!(field(rect, HIGHEST).right(), rect.right());
        assert_eq!(struck(rect, pos2(39.0, 20.0)), None);
    }

    #[test]
    fn a_key_is_struck_harder_towards_the_front() {
        let rect = Rect::from_min_size(pos2(0.0, 0.0), vec2(520.0, 60.0));
        let black = field(rect, 61).center().x;
        let [soft, hard] = [0.5, 35.0].map(|y| struck(rect, pos2(black, y)).expect("a key"));
        assert_eq!((soft.0, hard.0), (61, 61));
        assert!(soft.1 < 0.15 && hard.1 > 0.9, "{soft:?} {hard:?}");
    }
}
