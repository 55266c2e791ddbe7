//! Waveform and spectrum; the input is drawn behind the output.

use egui::accesskit::Role;
use egui::{Align2, Color32, Painter, Pos2, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};

use crate::theme::{self, GAP, Palette};
use crate::view::{MixerView, SignalView};

/// Range of the frequency axis, Hz.
const LOW_HZ: f32 = 20.0;
const HIGH_HZ: f32 = 20_000.0;
/// Range of the level axis, dB.
pub(crate) const FLOOR_DB: f32 = -96.0;
const CEILING_DB: f32 = 0.0;

pub(crate) fn show(ui: &mut Ui, view: MixerView<'_>) {
    let palette = Palette::current(ui);
    let (rect, _) =
        ui.allocate_exact_size(ui.available_size().max(vec2(120.0, 40.0)), Sense::hover());
    let wave_width = ((rect.width() - GAP) * 0.42).floor();
    let wave = Rect::from_min_size(rect.min, vec2(wave_width, rect.height()));
    let spectrum = Rect::from_min_max(pos2(wave.right() + GAP, rect.top()), rect.max);
    // The input lies behind the output, in a colour that differs clearly.
    let layers = [
        (view.input, palette.dim.gamma_multiply(0.7)),
        (view.output, palette.accent),
    ];

    let place = named(ui, wave, "Waveform");
    let inner = Rect::from_min_max(wave.min + vec2(5.0, 22.0), wave.max - vec2(5.0, 6.0));
    place.hline(
        wave.x_range().shrink(1.0),
        inner.center().y,
        (1.0, palette.line),
    );
    // Both waveforms start at the same time, so that they can be compared.
    let start = trigger(view.output.wave);
    for (sound, ink) in layers {
        let shown = sound.wave.get(start..).unwrap_or_default();
        waveform(
            &place,
            inner,
            &shown[..shown.len().min(sound.wave.len().div_ceil(2))],
            ink,
        );
    }
    let place = named(ui, spectrum, "Spectrum");
    grid(&place, spectrum, &palette);
    for (sound, ink) in layers {
        curve(
            &place,
            spectrum.shrink(2.0),
            sound,
            view.sample_rate_hz,
            ink,
        );
    }
    legend(ui.painter(), wave, &palette);
}

/// Draws a field with a name for assistive technology. Returns a painter clipped to it.
fn named(ui: &Ui, rect: Rect, name: &str) -> Painter {
    let response = ui.interact(rect, ui.scope_id().with(name), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name));
    response.on_hover_text(format!("{name} of input and output"));
    theme::well(ui.painter(), rect, &Palette::current(ui));
    ui.painter()
        .with_clip_rect(rect.shrink(1.0).intersect(ui.clip_rect()))
}

fn legend(painter: &Painter, rect: Rect, palette: &Palette) {
    let mut at = rect.left_top() + vec2(9.0, 6.0);
    for (name, ink) in [("Input", palette.dim), ("Output", palette.accent)] {
        painter.circle_filled(at + vec2(2.0, 7.0), 2.5, ink);
        let text = painter.text(
            at + vec2(8.0, 0.0),
            Align2::LEFT_TOP,
            name,
            theme::small(),
            palette.dim,
        );
        at.x = text.right() + 9.0;
    }
}

/// Returns the first rising zero crossing in the first half, so that periodic waveforms stand
/// still.
fn trigger(wave: &[f32]) -> usize {
    let first = &wave[..wave.len() / 2];
    first
        .windows(2)
        .position(|pair| pair[0] < 0.0 && pair[1] >= 0.0)
        .map_or(0, |before| before + 1)
}

/// Draws the least and the greatest sample per point of width.
fn waveform(painter: &Painter, rect: Rect, wave: &[f32], ink: Color32) {
    let columns = rect.width() as usize;
    if wave.len() < 2 || columns < 2 {
        return;
    }
    let y = |sample: f32| rect.center().y - sample.clamp(-1.0, 1.0) * rect.height() / 2.0;
    let x = |part: f32| rect.left() + part * rect.width();
    let mut points: Vec<Pos2> = Vec::with_capacity(2 * columns);
    let count = columns.min(wave.len());
    for column in 0..count {
        let samples = &wave[column * wave.len() / count..(column + 1) * wave.len() / count];
        let sound = || samples.iter().copied().filter(|sample| !sample.is_nan());
        let (least, most) = sound().fold((f32::MAX, f32::MIN), |(least, most), s| {
            (least.min(s), most.max(s))
        });
        if least > most {
            continue;
        }
        let at = x(column as f32 / (count - 1) as f32);
        points.push(pos2(at, y(least)));
        if least < most {
            points.push(pos2(at, y(most)));
        }
    }
    if points.len() > 1 {
        painter.line(points, Stroke::new(1.2, ink));
    }
}

/// Returns the position of a frequency on the axis, 0 … 1.
pub(crate) fn along(hz: f32) -> f32 {
    (hz / LOW_HZ).ln() / (HIGH_HZ / LOW_HZ).ln()
}

/// Returns the frequency at a position, Hz.
pub(crate) fn hz_at(part: f32) -> f32 {
    LOW_HZ * (HIGH_HZ / LOW_HZ).powf(part)
}

fn grid(painter: &Painter, rect: Rect, palette: &Palette) {
    let faint = palette.line.gamma_multiply(0.6);
    for decade in [10.0, 100.0, 1000.0, 10_000.0] {
        for times in 1..10 {
            let part = along(decade * times as f32);
            if (0.01..0.99).contains(&part) {
                let ink = if times == 1 { palette.line } else { faint };
                painter.vline(
                    rect.left() + part * rect.width(),
                    rect.y_range(),
                    (1.0, ink),
                );
            }
        }
    }
    for db in [-72.0, -48.0, -24.0] {
        let y = rect.top() + db / (FLOOR_DB - CEILING_DB) * rect.height();
        painter.hline(rect.x_range(), y, (1.0, faint));
        painter.text(
            pos2(rect.right() - 4.0, y),
            Align2::RIGHT_BOTTOM,
            format!("{db:.0}"),
            theme::small(),
            palette.dim,
        );
    }
    for (hz, label) in [(100.0, "100 Hz"), (1000.0, "1 kHz"), (10_000.0, "10 kHz")] {
        // At the top, where curves seldom are.
        let at = pos2(rect.left() + along(hz) * rect.width(), rect.top() + 4.0);
        // The last label stands to the left of its line if there is no room on the right.
        let (anchor, aside) = if rect.right() - at.x < 44.0 {
            (Align2::RIGHT_TOP, vec2(-3.0, 0.0))
        } else {
            (Align2::LEFT_TOP, vec2(3.0, 0.0))
        };
        painter.text(at + aside, anchor, label, theme::small(), palette.dim);
    }
}

fn curve(painter: &Painter, rect: Rect, sound: SignalView<'_>, rate_hz: f32, ink: Color32) {
    let points = spectrum_points(sound.spectrum_db, rate_hz, rect);
    if points.len() > 1 {
        painter.line(points, Stroke::new(1.5, ink));
    }
}

/// Returns a point per point of width: the greatest bin within it, or an interpolated value between
/// two bins.
fn spectrum_points(bins: &[f32], rate_hz: f32, rect: Rect) -> Vec<Pos2> {
    let columns = rect.width() as usize;
    let width_hz = rate_hz / 2.0 / bins.len().saturating_sub(1) as f32;
    if bins.len() < 2 || columns < 2 || !width_hz.is_finite() || width_hz <= 0.0 {
        return Vec::new();
    }
    let level = |bin: usize| {
        let db = bins.get(bin).copied().unwrap_or(FLOOR_DB);
        if db.is_nan() {
            FLOOR_DB
        } else {
            db.clamp(FLOOR_DB, CEILING_DB)
        }
    };
    let last = (bins.len() - 1) as f32;
    let mut points = Vec::with_capacity(columns);
    for column in 0..columns {
        let part = column as f32 / (columns - 1) as f32;
        let half = 0.5 / (columns - 1) as f32;
        let at = hz_at(part) / width_hz;
        if at > last {
            break;
        }
        let (from, to) = (hz_at(part - half) / width_hz, hz_at(part + half) / width_hz);
        let (first, end) = (from.ceil() as usize, to.min(last).floor() as usize);
        let db = if first <= end {
            (first..=end).map(level).fold(FLOOR_DB, f32::max)
        } else {
            let below = at.floor() as usize;
            level(below) + at.fract() * (level(below + 1) - level(below))
        };
        let y = rect.top() + (CEILING_DB - db) / (CEILING_DB - FLOOR_DB) * rect.height();
        points.push(pos2(rect.left() + part * rect.width(), y));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_stands_where_its_frequency_is() {
        let rect = Rect::from_min_size(pos2(0.0, 0.0), vec2(300.0, 96.0));
        let mut bins = vec![-90.0; 1025];
        // At 48 kHz and 2048 bins, bin 43 is at 1008 Hz.
        bins[43] = -12.0;
        bins[44] = f32::NAN;
        let points = spectrum_points(&bins, 48_000.0, rect);
        let top = points
            .iter()
            .copied()
            .min_by(|a, b| a.y.total_cmp(&b.y))
            .expect("points");
        assert!((top.y - 12.0).abs() < 1.0, "{top:?}");
        assert!((top.x - 300.0 * along(1008.0)).abs() <= 1.5, "{top:?}");
        assert!(points.iter().all(|point| point.y.is_finite()));
    }

    #[test]
    fn a_wave_that_repeats_stands_still() {
        let wave = |shift: usize| {
            (0..256)
                .map(|n| ((n + shift) as f32 * 0.2).sin())
                .collect::<Vec<f32>>()
        };
        for shift in [0, 7, 19, 30] {
            let wave = wave(shift);
            let start = trigger(&wave);
            assert!(
                start < 128 && wave[start] >= 0.0 && wave[start] < 0.2,
                "{start}"
            );
        }
        for wave in [&[][..], &[-1.0][..], &[f32::NAN; 9][..], &[1.0, 2.0][..]] {
            assert_eq!(trigger(wave), 0);
        }
    }

    #[test]
    fn invalid_spectra_are_not_drawn() {
        let rect = Rect::from_min_size(pos2(0.0, 0.0), vec2(300.0, 96.0));
        for (bins, rate) in [
            (&[][..], 48_000.0),
            (&[0.0][..], 48_000.0),
            (&[0.0, 0.0][..], 0.0),
            (&[0.0, 0.0][..], f32::NAN),
        ] {
            assert!(spectrum_points(bins, rate, rect).is_empty());
        }
        // The curve of a low rate ends within the axis.
        let low = spectrum_points(&[-10.0; 65], 8000.0, rect);
        assert!(low.last().expect("points").x < 300.0 * along(4100.0));
    }
}
