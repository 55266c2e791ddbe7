//! The equaliser as a curve, whose bands are points that are dragged.

use egui::accesskit::Role;
use egui::{
    Align2, Button, FontFamily, FontId, Pos2, Rect, Response, Sense, Stroke, Ui, WidgetInfo, pos2,
    vec2,
};
use ondes_engine::effects::EffectParameter;
use ondes_engine::effects::equalizer::{BANDS, Curve, OF_A_BAND};
use ondes_player::rig::block_state::BlockState;

use super::Outcome;
use crate::panels::scope::{along, hz_at};
use crate::theme::{self, Palette};

/// Height of the curve, and radius of a point, points.
const HEIGHT: f32 = 132.0;
const POINT: f32 = 7.0;
/// Range of the gain, dB.
const RANGE_DB: f32 = 18.0;
/// Points of the curve for each point of width.
const DENSITY: f32 = 0.5;
/// Change of Q, octaves, for each point that is dragged with Shift.
const Q_PER_POINT: f32 = 0.02;
/// Sample rate of the curve, Hz; a higher one changes it only near 20 kHz.
const RATE: u32 = 48_000;

/// Draws the curve, and lets points be dragged. Returns the chosen band.
pub(super) fn show(ui: &mut Ui, state: &mut BlockState, outcome: &mut Outcome) -> usize {
    let id = ui.scope_id().with("band");
    let mut chosen: usize = ui.data(|data| data.get_temp(id)).unwrap_or_default();
    let size = vec2(ui.available_width().max(200.0), HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Group, true, "Curve"));
    let inner = rect.shrink(POINT);
    if (response.drag_started() || response.clicked())
        && let Some(pointer) = response.interact_pointer_pos()
    {
        chosen = nearest(state, inner, pointer);
    }
    touch(ui, state, &response, inner, chosen, outcome);
    paint(ui, state, rect, inner, chosen);
    response.on_hover_text(
        "Drag a point: frequency and gain; with Shift its Q; double-click makes it flat",
    );
    ui.horizontal(|ui| {
        for band in 0..BANDS {
            let name = format!("Band {}", band + 1);
            let button = ui.add(Button::selectable(band == chosen, name));
            if button.on_hover_text("Turn this band below").clicked() {
                chosen = band;
            }
        }
    });
    ui.data_mut(|data| data.insert_temp(id, chosen));
    chosen
}

/// Returns the parameters of a band: frequency, gain, Q.
pub(super) fn of_band(parameters: &[EffectParameter], band: usize) -> &[EffectParameter] {
    let start = band * OF_A_BAND;
    parameters.get(start..start + OF_A_BAND).unwrap_or_default()
}

/// Returns frequency, gain and Q of a band.
fn values(state: &BlockState, band: usize) -> [f32; OF_A_BAND] {
    let all = state.all_values();
    let start = band * OF_A_BAND;
    let own = all.get(start..start + OF_A_BAND);
    own.and_then(|own| own.try_into().ok())
        .unwrap_or([1_000.0, 0.0, 1.0])
}

fn place(inner: Rect, hz: f32, db: f32) -> Pos2 {
    let x = inner.left() + along(hz) * inner.width();
    pos2(x, inner.center().y - db / RANGE_DB * 0.5 * inner.height())
}

fn nearest(state: &BlockState, inner: Rect, pointer: Pos2) -> usize {
    let distance = |band: &usize| {
        let [hz, db, _] = values(state, *band);
        place(inner, hz, db).distance_sq(pointer)
    };
    let mut bands = 0..BANDS;
    let first = bands.next().unwrap_or_default();
    bands.fold(first, |near, band| {
        if distance(&band) < distance(&near) {
            band
        } else {
            near
        }
    })
}

fn touch(
    ui: &Ui,
    state: &mut BlockState,
    response: &Response,
    inner: Rect,
    band: usize,
    outcome: &mut Outcome,
) {
    let kind = state.kind();
    let own = of_band(kind.map_or(&[][..], |kind| kind.parameters), band).to_vec();
    let [frequency, gain, quality] = own.as_slice() else {
        return;
    };
    if response.double_clicked() {
        state.set_value(gain, gain.default);
        return outcome.done();
    }
    let [_, _, q] = values(state, band);
    if response.dragged()
        && let Some(pointer) = response.interact_pointer_pos()
    {
        let moved = response.drag_delta();
        if ui.input(|input| input.modifiers.shift) {
            state.set_value(quality, q * (-Q_PER_POINT * moved.y).exp2());
        } else if moved != egui::Vec2::ZERO {
            let part = (pointer.x - inner.left()) / inner.width();
            let db = (inner.center().y - pointer.y) / (0.5 * inner.height()) * RANGE_DB;
            state.set_value(frequency, hz_at(part.clamp(0.0, 1.0)));
            // Flat is easily met.
            state.set_value(gain, if db.abs() < 0.3 { 0.0 } else { db });
        }
        outcome.changed = true;
    }
    outcome.finished |= response.drag_stopped();
}

fn paint(ui: &Ui, state: &BlockState, rect: Rect, inner: Rect, chosen: usize) {
    let palette = Palette::current(ui);
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    theme::well(&painter, rect, &palette);
    for hz in [50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 10e3] {
        let at = place(inner, hz, 0.0);
        painter.vline(at.x, rect.y_range().shrink(1.0), (1.0, palette.line));
        let name = match hz >= 1e3 {
            true => format!("{:.0}k", hz / 1e3),
            false => format!("{hz:.0}"),
        };
        let below = pos2(at.x + 2.0, rect.bottom() - 2.0);
        painter.text(
            below,
            Align2::LEFT_BOTTOM,
            name,
            theme::small(),
            palette.dim,
        );
    }
    for db in [-12.0, -6.0, 0.0, 6.0, 12.0] {
        let y = place(inner, 1e3, db).y;
        let ink = if db == 0.0 { palette.dim } else { palette.line };
        painter.hline(rect.x_range().shrink(1.0), y, (1.0, ink));
    }
    let curve = Curve::new(&state.all_values(), RATE);
    let count = (DENSITY * inner.width()).max(2.0) as usize;
    let points = (0..=count).map(|n| {
        let hz = hz_at(n as f32 / count as f32);
        place(inner, hz, curve.gain_db(hz.into()) as f32)
    });
    let ink = if state.off {
        palette.dim
    } else {
        palette.accent
    };
    painter.line(points.collect(), Stroke::new(1.8, ink));
    for band in 0..BANDS {
        let [hz, db, _] = values(state, band);
        let at = place(inner, hz, db);
        let (fill, text) = match band == chosen {
            true => (palette.accent, palette.ground),
            false => (palette.raised, palette.text),
        };
        painter.circle(at, POINT, fill, Stroke::new(1.0, palette.dim));
        let font = FontId::new(10.0, FontFamily::Proportional);
        painter.text(at, Align2::CENTER_CENTER, band + 1, font, text);
    }
}
