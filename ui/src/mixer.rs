//! Input, output and mix, with meters.

use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, WidgetInfo, pos2, vec2};

use super::desk::Desk;
use super::knob;
use super::theme::{self, GAP, Palette};
use super::view::Level;
use super::words;

/// Ends of a meter, dB.
const FLOOR_DB: f32 = -60.0;
const CEILING_DB: f32 = 6.0;
/// How long a peak is held, seconds, and how fast its mark falls after, dB per second.
const HOLD_S: f64 = 1.5;
const FALL_DB_PER_S: f32 = 24.0;
/// What would be drawn of a signal that has more channels than fit.
const CHANNELS: usize = 8;

/// The marks of all meters.
#[derive(Default)]
pub(crate) struct Mixer {
    input: Vec<Mark>,
    output: Vec<Mark>,
}

/// The highest peak of late.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    db: f32,
    since_s: f64,
    now_s: f64,
}

impl Mark {
    const NONE: Self = Self { db: f32::NEG_INFINITY, since_s: 0.0, now_s: 0.0 };

    /// The mark a moment later.
    fn after(self, peak_db: f32, now_s: f64) -> Self {
        let peak_db = if peak_db.is_nan() { f32::NEG_INFINITY } else { peak_db };
        let falling_s = (now_s - (self.since_s + HOLD_S).max(self.now_s)).max(0.0) as f32;
        let fallen = self.db - FALL_DB_PER_S * falling_s;
        if peak_db >= fallen { Self { db: peak_db, since_s: now_s, now_s } } else { Self { db: fallen, now_s, ..self } }
    }
}

pub(crate) fn show(ui: &mut Ui, desk: &mut Desk<'_>, mixer: &mut Mixer) {
    let view = desk.view;
    let below = knob::CELL.y;
    // The mix has a line of its own; the meters take what is left.
    let height = (ui.available_height() - 2.0 * below - 3.0 * GAP).max(60.0);
    ui.horizontal_top(|ui| {
        let sides = [
            ("Input", view.input.levels, &mut mixer.input, view.input_gain),
            ("Output", view.output.levels, &mut mixer.output, view.output_gain),
        ];
        for (name, levels, marks, gain) in sides {
            ui.vertical(|ui| {
                meter(ui, name, levels, marks, height);
                ui.add_space(GAP);
                knob::show(ui, desk, gain, true, |_, _| ());
            });
        }
    });
    ui.vertical_centered(|ui| knob::show(ui, desk, view.mix, true, |_, _| ()));
}

fn meter(ui: &mut Ui, name: &str, levels: &[Level], marks: &mut Vec<Mark>, height: f32) {
    let palette = Palette::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(knob::CELL.x, height), Sense::hover());
    let levels = &levels[..levels.len().min(CHANNELS)];
    let now = ui.input(|input| input.time);
    marks.resize(levels.len(), Mark::NONE);
    for (mark, level) in marks.iter_mut().zip(levels) {
        *mark = mark.after(level.peak_db, now);
    }
    let highest = marks.iter().map(|mark| mark.db).fold(f32::NEG_INFINITY, f32::max);
    if highest > FLOOR_DB {
        // A mark that still falls moves even when the sound has ended.
        ui.ctx().request_repaint_after_secs(1.0 / 30.0);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, format!("{name} level")));
    ui.ctx()
        .accesskit_node_builder(response.id, |node| node.set_value(format!("{} dB", words::decibels(highest).trim())));

    let painter = ui.painter();
    let ink = if highest > 0.0 { palette.bad } else { palette.text };
    painter.text(rect.left_top(), Align2::LEFT_TOP, name, theme::small(), palette.dim);
    painter.text(rect.right_top(), Align2::RIGHT_TOP, words::decibels(highest), theme::figures(), ink);
    let well = Rect::from_min_max(rect.min + vec2(0.0, 18.0), rect.max);
    theme::well(painter, well, &palette);
    let inner = well.shrink2(vec2(5.0, 6.0));
    let y = |db: f32| {
        let part = ((db - FLOOR_DB) / (CEILING_DB - FLOOR_DB)).clamp(0.0, 1.0);
        inner.bottom() - if part.is_nan() { 0.0 } else { part } * inner.height()
    };
    let scale = 22.0;
    for db in [0.0, -12.0, -24.0, -36.0, -48.0] {
        painter.text(pos2(inner.right(), y(db)), Align2::RIGHT_CENTER, format!("{db:.0}"), theme::small(), palette.dim);
        painter.hline(inner.left()..=inner.right() - scale, y(db), (1.0, palette.line));
    }
    let count = levels.len().max(1) as f32;
    let width = (inner.width() - scale - 3.0 * (count - 1.0)) / count;
    for (channel, (level, mark)) in levels.iter().zip(marks.iter()).enumerate() {
        let left = inner.left() + channel as f32 * (width + 3.0);
        let bar = |from: f32, to: f32| Rect::from_min_max(pos2(left, y(to)), pos2(left + width, y(from)));
        let db = |db: f32| if db.is_nan() { f32::NEG_INFINITY } else { db };
        painter.rect_filled(bar(FLOOR_DB, db(level.peak_db)), 0.0, palette.accent.gamma_multiply(0.45));
        painter.rect_filled(bar(FLOOR_DB, db(level.rms_db)), 0.0, palette.accent);
        if mark.db > FLOOR_DB {
            let ink = if mark.db > 0.0 { palette.bad } else { palette.text };
            painter.hline(left..=left + width, y(mark.db), (1.5, ink));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_held_and_then_falls() {
        let struck = Mark::NONE.after(-6.0, 10.0);
        assert_eq!(struck.after(-40.0, 11.4).db, -6.0);
        let falling = struck.after(-40.0, 11.5).after(-40.0, 12.0);
        assert!((falling.db - (-6.0 - 12.0)).abs() < 1e-4, "{falling:?}");
        // However often it is looked at.
        let once = struck.after(f32::NAN, 12.0);
        assert!((once.db - falling.db).abs() < 1e-4, "{once:?}");
        assert_eq!(falling.after(-3.0, 12.1).db, -3.0);
        assert_eq!(Mark::NONE.after(f32::NAN, 1.0).db, f32::NEG_INFINITY);
    }
}
