//! Meters and gains of input and output, and the mix.

use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, WidgetInfo, pos2, vec2};
use ondes_player::monitor::MeterLevel;

use crate::frame::Frame;
use crate::panels::tuner;
use crate::theme::{self, GAP, Palette};
use crate::view::{Knob, MixerView};
use crate::{format, knob};

/// Range of a meter, dB.
pub(crate) const FLOOR_DB: f32 = -60.0;
const CEILING_DB: f32 = 6.0;
/// Time for which a peak is held, seconds, and the rate at which it falls afterwards, dB per
/// second.
const HOLD_S: f64 = 1.5;
const FALL_DB_PER_S: f32 = 24.0;
/// Least height of a meter, points.
const LEAST_METER: f32 = 40.0;
/// Channels shown of each signal.
const CHANNELS: usize = 8;

/// Held peaks of all meters.
#[derive(Default)]
pub(crate) struct Meters {
    input: Vec<PeakHold>,
    output: Vec<PeakHold>,
}

/// A held peak.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PeakHold {
    db: f32,
    since_s: f64,
    now_s: f64,
}

impl PeakHold {
    const NONE: Self = Self {
        db: f32::NEG_INFINITY,
        since_s: 0.0,
        now_s: 0.0,
    };

    /// Returns the held peak at a later time.
    fn after(self, peak_db: f32, now_s: f64) -> Self {
        let peak_db = if peak_db.is_nan() {
            f32::NEG_INFINITY
        } else {
            peak_db
        };
        let falling_s = (now_s - (self.since_s + HOLD_S).max(self.now_s)).max(0.0) as f32;
        let fallen = self.db - FALL_DB_PER_S * falling_s;
        if peak_db >= fallen {
            Self {
                db: peak_db,
                since_s: now_s,
                now_s,
            }
        } else {
            Self {
                db: fallen,
                now_s,
                ..self
            }
        }
    }
}

/// Draws the mixer: meters above their gains and the mix below, or all three side by side below the
/// meters.
pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, mixer: &mut Meters, is_tall: bool) {
    if is_tall {
        tall(ui, frame, mixer)
    } else {
        low(ui, frame, mixer)
    }
}

/// Draws the mix and the tuner between the two signals.
fn low(ui: &mut Ui, frame: &mut Frame<'_>, mixer: &mut Meters) {
    let view = frame.view.mixer;
    let height = (ui.available_height() - knob::CELL.y - 2.0 * GAP).max(LEAST_METER);
    ui.horizontal_top(|ui| {
        let mut side = |ui: &mut Ui,
                        name: &str,
                        levels: &[MeterLevel],
                        marks: &mut Vec<PeakHold>,
                        gain: &Knob| {
            ui.vertical(|ui| {
                meter(ui, name, levels, marks, height);
                ui.add_space(GAP);
                knob::show(ui, frame, gain, true, |_, _| ());
            });
        };
        side(
            ui,
            "Input",
            view.input.levels,
            &mut mixer.input,
            view.input_gain,
        );
        side(
            ui,
            "Output",
            view.output.levels,
            &mut mixer.output,
            view.output_gain,
        );
        ui.vertical(|ui| {
            ui.allocate_ui(vec2(knob::CELL.x, height), |ui| {
                ui.set_min_size(vec2(knob::CELL.x, height));
                tuner::toggle(ui, frame);
            });
            ui.add_space(GAP);
            knob::show(ui, frame, view.mix, true, |_, _| ());
        });
    });
}

/// Draws the meters of input and output beside each other.
pub(crate) fn both(ui: &mut Ui, view: MixerView<'_>, mixer: &mut Meters, height: f32) {
    ui.horizontal_top(|ui| {
        meter(ui, "Input", view.input.levels, &mut mixer.input, height);
        meter(ui, "Output", view.output.levels, &mut mixer.output, height);
    });
}

fn tall(ui: &mut Ui, frame: &mut Frame<'_>, mixer: &mut Meters) {
    let view = frame.view.mixer;
    let below = knob::CELL.y;
    // The mix has a row of its own; meters take the rest of the height.
    let height = (ui.available_height() - 2.0 * below - 3.0 * GAP).max(LEAST_METER);
    ui.horizontal_top(|ui| {
        let sides = [
            (
                "Input",
                view.input.levels,
                &mut mixer.input,
                view.input_gain,
            ),
            (
                "Output",
                view.output.levels,
                &mut mixer.output,
                view.output_gain,
            ),
        ];
        for (name, levels, marks, gain) in sides {
            ui.vertical(|ui| {
                meter(ui, name, levels, marks, height);
                ui.add_space(GAP);
                knob::show(ui, frame, gain, true, |_, _| ());
            });
        }
    });
    if frame.view.tuner.available {
        ui.horizontal(|ui| {
            knob::show(ui, frame, view.mix, true, |_, _| ());
            ui.add_space(GAP);
            tuner::toggle(ui, frame);
        });
    } else {
        ui.vertical_centered(|ui| knob::show(ui, frame, view.mix, true, |_, _| ()));
    }
}

fn meter(ui: &mut Ui, name: &str, levels: &[MeterLevel], marks: &mut Vec<PeakHold>, height: f32) {
    let palette = Palette::current(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(knob::CELL.x, height), Sense::hover());
    let levels = &levels[..levels.len().min(CHANNELS)];
    let now = ui.input(|input| input.time);
    marks.resize(levels.len(), PeakHold::NONE);
    for (mark, level) in marks.iter_mut().zip(levels) {
        *mark = mark.after(level.peak_db, now);
    }
    let highest = marks
        .iter()
        .map(|mark| mark.db)
        .fold(f32::NEG_INFINITY, f32::max);
    if highest > FLOOR_DB {
        // A falling peak needs repainting even if there is no sound.
        ui.ctx().request_repaint_after_secs(1.0 / 30.0);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, format!("{name} level")));
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_value(format!("{} dB", format::decibels(highest).trim()))
    });

    response.on_hover_text(format!(
        "{name}: peak and mean level; the number is the highest peak"
    ));
    let painter = ui.painter();
    let ink = if highest > 0.0 {
        palette.error
    } else {
        palette.text
    };
    painter.text(
        rect.left_top(),
        Align2::LEFT_TOP,
        name,
        theme::small(),
        palette.dim,
    );
    painter.text(
        rect.right_top(),
        Align2::RIGHT_TOP,
        format::decibels(highest),
        theme::figures(),
        ink,
    );
    let well = Rect::from_min_max(rect.min + vec2(0.0, 18.0), rect.max);
    theme::well(painter, well, &palette);
    let inner = well.shrink2(vec2(5.0, 6.0));
    let y = |db: f32| {
        let part = ((db - FLOOR_DB) / (CEILING_DB - FLOOR_DB)).clamp(0.0, 1.0);
        inner.bottom() - if part.is_nan() { 0.0 } else { part } * inner.height()
    };
    let scale = 22.0;
    // Labels that would touch are left out.
    let step = if inner.height() < 60.0 { 24.0 } else { 12.0 };
    for db in [0.0, -12.0, -24.0, -36.0, -48.0]
        .into_iter()
        .filter(|db| db % step == 0.0)
    {
        painter.text(
            pos2(inner.right(), y(db)),
            Align2::RIGHT_CENTER,
            format!("{db:.0}"),
            theme::small(),
            palette.dim,
        );
        painter.hline(
            inner.left()..=inner.right() - scale,
            y(db),
            (1.0, palette.line),
        );
    }
    let count = levels.len().max(1) as f32;
    let width = (inner.width() - scale - 3.0 * (count - 1.0)) / count;
    for (channel, (level, mark)) in levels.iter().zip(marks.iter()).enumerate() {
        let left = inner.left() + channel as f32 * (width + 3.0);
        let bar =
            |from: f32, to: f32| Rect::from_min_max(pos2(left, y(to)), pos2(left + width, y(from)));
        let db = |db: f32| if db.is_nan() { f32::NEG_INFINITY } else { db };
        painter.rect_filled(
            bar(FLOOR_DB, db(level.peak_db)),
            0.0,
            palette.accent.gamma_multiply(0.45),
        );
        painter.rect_filled(bar(FLOOR_DB, db(level.rms_db)), 0.0, palette.accent);
        if mark.db > FLOOR_DB {
            let ink = if mark.db > 0.0 {
                palette.error
            } else {
                palette.text
            };
            painter.hline(left..=left + width, y(mark.db), (1.5, ink));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_held_and_then_falls() {
        let struck = PeakHold::NONE.after(-6.0, 10.0);
        assert_eq!(struck.after(-40.0, 11.4).db, -6.0);
        let falling = struck.after(-40.0, 11.5).after(-40.0, 12.0);
        assert!((falling.db - (-6.0 - 12.0)).abs() < 1e-4, "{falling:?}");
        // The result does not depend on the number of frames.
        let once = struck.after(f32::NAN, 12.0);
        assert!((once.db - falling.db).abs() < 1e-4, "{once:?}");
        assert_eq!(falling.after(-3.0, 12.1).db, -3.0);
        assert_eq!(PeakHold::NONE.after(f32::NAN, 1.0).db, f32::NEG_INFINITY);
    }
}
