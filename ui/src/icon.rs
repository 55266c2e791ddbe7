//! Icons, drawn as lines.

use std::f32::consts::PI;

use egui::{
    Color32, Painter, Pos2, Rect, Response, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2,
};

use crate::theme::{self, Palette, RADIUS};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    List,
    Left,
    Right,
    Down,
    Play,
    Stop,
    Star,
    StarFull,
    More,
    Refresh,
    Folder,
    Cross,
    Undo,
    Redo,
}

/// Paints an icon at the centre of `rect`, 12 points wide.
pub(crate) fn paint(painter: &Painter, rect: Rect, icon: Icon, color: Color32) {
    let at = |x: f32, y: f32| rect.center() + vec2(x, y);
    let stroke = Stroke::new(1.5, color);
    match icon {
        Icon::List => {
            for y in [-4.5, 0.0, 4.5] {
                painter.line_segment([at(-6.0, y), at(6.0, y)], stroke);
            }
        }
        Icon::Left => {
            painter.line(vec![at(2.5, -5.0), at(-2.5, 0.0), at(2.5, 5.0)], stroke);
        }
        Icon::Right => {
            painter.line(vec![at(-2.5, -5.0), at(2.5, 0.0), at(-2.5, 5.0)], stroke);
        }
        Icon::Down => {
            painter.line(vec![at(-4.0, -2.0), at(0.0, 2.0), at(4.0, -2.0)], stroke);
        }
        Icon::Play => {
            painter.add(Shape::convex_polygon(
                vec![at(-3.0, -4.5), at(5.0, 0.0), at(-3.0, 4.5)],
                color,
                Stroke::NONE,
            ));
        }
        Icon::Stop => {
            painter.rect_filled(
                Rect::from_center_size(rect.center(), vec2(8.0, 8.0)),
                1.0,
                color,
            );
        }
        Icon::Star | Icon::StarFull => {
            let corners = star(rect.center());
            if icon == Icon::StarFull {
                // The star is not convex: five tips and the pentagon between them.
                for tip in (0..10).step_by(2) {
                    let point = vec![corners[(tip + 9) % 10], corners[tip], corners[tip + 1]];
                    painter.add(Shape::convex_polygon(point, color, Stroke::NONE));
                }
                let inner = corners.iter().skip(1).step_by(2).copied().collect();
                painter.add(Shape::convex_polygon(inner, color, Stroke::new(0.5, color)));
            } else {
                painter.add(Shape::closed_line(
                    corners.to_vec(),
                    Stroke::new(1.0, color),
                ));
            }
        }
        Icon::More => {
            for x in [-5.0, 0.0, 5.0] {
                painter.circle_filled(at(x, 0.0), 1.5, color);
            }
        }
        Icon::Cross => {
            painter.line_segment([at(-3.5, -3.5), at(3.5, 3.5)], stroke);
            painter.line_segment([at(-3.5, 3.5), at(3.5, -3.5)], stroke);
        }
        Icon::Folder => {
            let outline = [
                (-6.0, 4.5),
                (-6.0, -4.0),
                (-2.0, -4.0),
                (-0.5, -2.0),
                (6.0, -2.0),
                (6.0, 4.5),
            ];
            painter.add(Shape::closed_line(
                outline.map(|(x, y)| at(x, y)).to_vec(),
                stroke,
            ));
        }
        Icon::Undo | Icon::Redo => {
            // An arrow that turns back, mirrored for redo.
            let side = if icon == Icon::Undo { 1.0 } else { -1.0 };
            let around = |turn: f32| at(side * (1.0 + 4.0 * turn.cos()), 1.0 + 4.0 * turn.sin());
            let arc = (0..=12).map(|n| around(-0.5 * PI + PI * n as f32 / 12.0));
            let points = std::iter::once(at(side * -5.5, -3.0))
                .chain(arc)
                .chain([at(side * -3.0, 5.0)]);
            painter.line(points.collect(), stroke);
            painter.line(
                vec![
                    at(side * -2.5, -6.0),
                    at(side * -5.5, -3.0),
                    at(side * -2.5, 0.0),
                ],
                stroke,
            );
        }
        Icon::Refresh => {
            let around = |turn: f32| at(5.0 * turn.cos(), 5.0 * turn.sin());
            let points: Vec<Pos2> = (0..=20)
                .map(|n| around(-0.5 + 5.2 * n as f32 / 20.0))
                .collect();
            painter.line(points, stroke);
            let tip = around(-0.5);
            painter.line(
                vec![tip + vec2(-4.5, 0.0), tip, tip + vec2(0.5, -4.5)],
                stroke,
            );
        }
    }
}

/// Returns tips and corners in turn, clockwise, from the upper tip.
fn star(center: Pos2) -> [Pos2; 10] {
    std::array::from_fn(|n| {
        let radius = if n % 2 == 0 { 6.0 } else { 2.6 };
        let turn = (n as f32 / 10.0 - 0.25) * std::f32::consts::TAU;
        pos2(
            center.x + radius * turn.cos(),
            center.y + 0.5 + radius * turn.sin(),
        )
    })
}

/// Draws an icon button; `label` is its tooltip and its name for assistive technology.
pub(crate) fn button(ui: &mut Ui, icon: Icon, label: &str, on: bool) -> Response {
    button_for(ui, icon, label, on).on_hover_text(label)
}

/// Draws an icon button whose tooltip the caller adds; `label` is its name for assistive
/// technology.
pub(crate) fn button_for(ui: &mut Ui, icon: Icon, label: &str, on: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(26.0, 26.0), Sense::click());
    response.widget_info(|| WidgetInfo::selected(egui::Role::Button, ui.is_enabled(), on, label));
    let palette = Palette::current(ui);
    let fill = match (on, response.hovered()) {
        (true, _) => palette.accent,
        (false, true) => palette.hovered,
        (false, false) => palette.raised,
    };
    ui.painter().rect_filled(rect, RADIUS, fill);
    let ink = match (on, ui.is_enabled()) {
        (true, _) => palette.on_accent,
        (false, true) => palette.text,
        (false, false) => palette.dim.gamma_multiply(0.5),
    };
    paint(ui.painter(), rect, icon, ink);
    theme::focus_ring(ui, &response, rect);
    response
}
