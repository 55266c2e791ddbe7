//! The tuner: note, deviation in cents on a scale, and a strobe whose stripes stand still when the
//! string is in tune.

use egui::accesskit::Role;
use egui::{
    Align2, Button, Color32, DragValue, FontFamily, FontId, Painter, Rect, RichText, Sense, Stroke,
    Ui, WidgetInfo, pos2, vec2,
};

use crate::command::TunerCommand;
use crate::format;
use crate::frame::Frame;
use crate::icon::{self, Icon};
use crate::theme::{self, GAP, Palette};
use crate::view::{REFERENCE_HZ, TunerView};

/// Deviation that counts as in tune, cents.
const IN_TUNE_CENTS: f32 = 2.0;
/// Width of a stripe of the strobe and the gap after it, points.
const STRIPE: f32 = 36.0;
/// Longest time between frames over which the strobe turns, s.
const MAX_FRAME_S: f64 = 0.1;
/// Height of scale and strobe, points.
const SCALE: f32 = 46.0;
const STROBE: f32 = 22.0;

/// Position of the strobe.
#[derive(Default)]
pub(crate) struct Strobe {
    /// Offset of the stripes, periods.
    phase: f32,
    time_s: f64,
}

impl Strobe {
    /// Turns by as many periods as the string is ahead of the note.
    fn turn(&mut self, difference_hz: f32, time_s: f64) {
        let seconds = (time_s - self.time_s).clamp(0.0, MAX_FRAME_S) as f32;
        (self.phase, self.time_s) = (
            (self.phase + difference_hz * seconds).rem_euclid(1.0),
            time_s,
        );
    }
}

/// A pitch as a tuner names it.
struct Reading {
    note: String,
    cents: f32,
    hz: f32,
    /// Pitch of the note in tune, Hz.
    target_hz: f32,
}

impl Reading {
    fn new(tuner: &TunerView) -> Option<Self> {
        let hz = tuner.pitch_hz?;
        let (key, cents) = format::note_of(hz * 440.0 / tuner.reference_hz)?;
        Some(Self {
            note: format::note(key),
            cents,
            hz,
            target_hz: hz * (-cents / 1200.0).exp2(),
        })
    }

    fn advice(&self) -> &'static str {
        match self.cents {
            cents if cents < -IN_TUNE_CENTS => "Flat: tune up",
            cents if cents > IN_TUNE_CENTS => "Sharp: tune down",
            _ => "In tune",
        }
    }
}

/// Draws the button that opens the tuner, if there is an input.
pub(crate) fn toggle(ui: &mut Ui, frame: &mut Frame<'_>) {
    let tuner = frame.view.tuner;
    if !tuner.available {
        return;
    }
    let button = Button::selectable(tuner.open, "Tuner")
        .frame_when_inactive(true)
        .min_size(vec2(64.0, 26.0));
    if ui
        .add(button)
        .on_hover_text("Show the pitch of the input, to tune an instrument")
        .clicked()
    {
        frame.push(TunerCommand::Open(!tuner.open));
    }
}

pub(crate) fn show(ui: &mut Ui, frame: &mut Frame<'_>, strobe: &mut Strobe) {
    let tuner = frame.view.tuner;
    settings(ui, frame);
    let (rect, response) =
        ui.allocate_exact_size(ui.available_size().max(vec2(200.0, 180.0)), Sense::hover());
    let reading = Reading::new(&tuner);
    let text = match &reading {
        Some(Reading { note, cents, .. }) => format!("Tuner {note} {cents:+.1} cents"),
        None => "Tuner: no note".to_owned(),
    };
    response.widget_info(|| WidgetInfo::labeled(Role::Status, true, &text));
    let palette = Palette::current(ui);
    let painter = ui.painter();
    theme::well(painter, rect, &palette);
    let inner = rect.shrink2(vec2(6.0 * GAP, 2.0 * GAP));
    let below = SCALE + STROBE + 3.0 * GAP;
    let (top, bottom) = inner.split_top_bottom_at_y((inner.bottom() - below).max(inner.top()));
    note(painter, top, reading.as_ref(), &palette);
    let (marks, stripes) = bottom.split_top_bottom_at_y(bottom.bottom() - STROBE);
    let cents = reading.as_ref().map(|reading| reading.cents);
    scale(painter, marks, cents, &palette);
    let ahead = reading
        .as_ref()
        .map(|reading| reading.hz - reading.target_hz);
    strobe.turn(ahead.unwrap_or(0.0), ui.input(|input| input.time));
    paint_strobe(painter, stripes, ahead.map(|_| strobe.phase), &palette);
}

/// Draws the mute, the reference and the button that closes.
fn settings(ui: &mut Ui, frame: &mut Frame<'_>) {
    let tuner = frame.view.tuner;
    ui.horizontal(|ui| {
        ui.label(RichText::new("Tuner").font(theme::heading()));
        ui.add_space(2.0 * GAP);
        let mute = Button::selectable(tuner.mute, "Mute output").frame_when_inactive(true);
        if ui
            .add(mute)
            .on_hover_text("Be silent while the tuner is open")
            .clicked()
        {
            frame.push(TunerCommand::Mute(!tuner.mute));
        }
        ui.add_space(2.0 * GAP);
        ui.label(RichText::new("A4").font(theme::small()).weak());
        let mut hz = tuner.reference_hz;
        let field = DragValue::new(&mut hz)
            .range(REFERENCE_HZ.0..=REFERENCE_HZ.1)
            .speed(0.1)
            .fixed_decimals(1);
        let field = ui
            .add(field.suffix(" Hz"))
            .on_hover_text("Frequency of A4, 430 to 450 Hz; drag, or click to type");
        if field.accessible_name("Frequency of A4").changed() {
            frame.push(TunerCommand::SetReference(hz));
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if icon::button(ui, Icon::Cross, "Close the tuner", false).clicked() {
                frame.push(TunerCommand::Open(false));
            }
        });
    });
}

/// Draws the note and what to do.
fn note(painter: &Painter, rect: Rect, reading: Option<&Reading>, palette: &Palette) {
    let large = FontId::new(
        (0.62 * rect.height()).clamp(36.0, 110.0),
        FontFamily::Proportional,
    );
    let Some(reading) = reading else {
        painter.text(
            rect.center(),
            Align2::CENTER_CENTER,
            "–",
            large,
            palette.dim,
        );
        let hint = rect.center_bottom();
        painter.text(
            hint,
            Align2::CENTER_BOTTOM,
            "Play one string",
            theme::heading(),
            palette.dim,
        );
        return;
    };
    let ink = if reading.cents.abs() <= IN_TUNE_CENTS {
        palette.accent
    } else {
        palette.text
    };
    painter.text(
        rect.center() - vec2(0.0, 1.5 * GAP),
        Align2::CENTER_CENTER,
        &reading.note,
        large,
        ink,
    );
    let side = |right: bool, y: f32, text: String, font: FontId, ink: Color32| {
        let (x, align) = if right {
            (rect.right(), Align2::RIGHT_CENTER)
        } else {
            (rect.left(), Align2::LEFT_CENTER)
        };
        painter.text(pos2(x, rect.center().y + y), align, text, font, ink);
    };
    let figures = FontId::new(20.0, FontFamily::Monospace);
    side(
        false,
        0.0,
        format!("{:+.1} ct", reading.cents),
        figures.clone(),
        ink,
    );
    side(
        true,
        0.0,
        format!("{:.2} Hz", reading.hz),
        figures,
        palette.text,
    );
    side(
        true,
        20.0,
        format!("{:.2} Hz in tune", reading.target_hz),
        theme::figures(),
        palette.dim,
    );
    painter.text(
        rect.center_bottom(),
        Align2::CENTER_BOTTOM,
        reading.advice(),
        theme::heading(),
        ink,
    );
}

/// Draws the scale from −50 to 50 cents with a needle.
fn scale(painter: &Painter, rect: Rect, cents: Option<f32>, palette: &Palette) {
    let x = |cents: f32| rect.center().x + cents / 100.0 * rect.width();
    let line = rect.bottom() - 2.0 * GAP;
    let zone = Rect::from_min_max(
        pos2(x(-IN_TUNE_CENTS), line - 16.0),
        pos2(x(IN_TUNE_CENTS), line),
    );
    painter.rect_filled(zone, 1.0, palette.accent.gamma_multiply(0.35));
    for step in -10..=10 {
        let cents = 5.0 * step as f32;
        let (height, ink) = match step {
            0 => (18.0, palette.text),
            step if step % 2 == 0 => (12.0, palette.dim),
            _ => (6.0, palette.line),
        };
        painter.vline(x(cents), line - height..=line, Stroke::new(1.0, ink));
        if step % 4 == 0 {
            let label = if step == 0 {
                "0".to_owned()
            } else {
                format!("{cents:+.0}")
            };
            painter.text(
                pos2(x(cents), line - 20.0),
                Align2::CENTER_BOTTOM,
                label,
                theme::small(),
                palette.dim,
            );
        }
    }
    painter.hline(rect.x_range(), line, Stroke::new(1.0, palette.dim));
    if let Some(cents) = cents {
        let ink = if cents.abs() <= IN_TUNE_CENTS {
            palette.accent
        } else {
            palette.error
        };
        painter.vline(
            x(cents),
            rect.top() + 10.0..=line + GAP,
            Stroke::new(3.0, ink),
        );
        painter.circle_filled(pos2(x(cents), line + GAP), 5.0, ink);
    }
}

/// Draws the strobe; without a note it is dark.
fn paint_strobe(painter: &Painter, rect: Rect, phase: Option<f32>, palette: &Palette) {
    painter.rect_filled(rect, theme::RADIUS, palette.panel);
    let Some(phase) = phase else { return };
    let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
    let mut left = rect.left() + (phase - 1.0) * STRIPE;
    while left < rect.right() {
        let stripe = Rect::from_min_max(
            pos2(left, rect.top()),
            pos2(left + 0.5 * STRIPE, rect.bottom()),
        );
        painter.rect_filled(stripe, 0.0, palette.accent.gamma_multiply(0.55));
        left += STRIPE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pitch_hz: f32, reference_hz: f32) -> Reading {
        let tuner = TunerView {
            available: true,
            open: true,
            mute: false,
            reference_hz,
            pitch_hz: Some(pitch_hz),
        };
        Reading::new(&tuner).expect("a pitch")
    }

    #[test]
    fn notes_and_cents_follow_the_reference() {
        let low = read(82.0, 440.0);
        assert_eq!(low.note, "E2");
        assert!(
            (low.cents + 8.6).abs() < 0.1 && (low.target_hz - 82.407).abs() < 0.01,
            "{}",
            low.cents
        );
        assert_eq!(low.advice(), "Flat: tune up");
        let other = read(442.0, 442.0);
        assert!(other.note == "A4" && other.cents.abs() < 0.01 && other.advice() == "In tune");
        assert_eq!(read(442.0, 438.0).advice(), "Sharp: tune down");
    }

    #[test]
    fn the_strobe_turns_by_the_difference() {
        let mut strobe = Strobe::default();
        strobe.turn(5.0, 100.0);
        assert!(
            (strobe.phase - 0.5).abs() < 1e-5,
            "a long pause counts as one frame"
        );
        strobe.turn(0.0, 100.05);
        strobe.turn(-2.0, 100.1);
        assert!((strobe.phase - 0.4).abs() < 1e-4, "{}", strobe.phase);
    }
}
