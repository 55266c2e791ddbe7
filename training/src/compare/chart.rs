//! Chart of quality against cost: a point for each model, and a line through the Pareto front.

use ondes_canvas::{Align, Canvas, Colour};

use super::ComparisonRow;
use ondes_canvas::axis::{Axis, label};

const WIDTH: usize = 1200;
const HEIGHT: usize = 800;
/// Edges of the plot, pixels.
const LEFT: f32 = 130.0;
const RIGHT: f32 = 1150.0;
const TOP: f32 = 90.0;
const BOTTOM: f32 = 690.0;
const BACKGROUND: Colour = [250, 249, 246];
const GRID: Colour = [222, 219, 212];
const INK: Colour = [44, 42, 50];
const FAINT: Colour = [120, 116, 126];
const FRONT: Colour = [196, 78, 40];
const DOMINATED: Colour = [96, 118, 148];

/// Draws the chart, with the time at the first block size and the first measure of quality.
#[must_use]
pub fn draw(rows: &[ComparisonRow]) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    let points: Vec<(f64, f64)> = rows.iter().map(ComparisonRow::point).collect();
    let x = Axis::logarithmic(points.iter().map(|point| point.0), (LEFT, RIGHT));
    let y = Axis::logarithmic(points.iter().map(|point| point.1), (BOTTOM, TOP));
    for tick in x.ticks() {
        let at = x.pixel(tick);
        canvas.line([[at, TOP], [at, BOTTOM]], 1.0, GRID);
        canvas.text(
            &label(tick),
            [at, BOTTOM + 26.0],
            18.0,
            Align::Centre,
            FAINT,
        );
    }
    for tick in y.ticks() {
        let at = y.pixel(tick);
        canvas.line([[LEFT, at], [RIGHT, at]], 1.0, GRID);
        canvas.text(
            &label(tick),
            [LEFT - 12.0, at + 6.0],
            18.0,
            Align::Right,
            FAINT,
        );
    }
    let block = rows
        .first()
        .and_then(|row| row.speeds.first())
        .map_or(0, |speed| speed.block);
    let measure = rows
        .first()
        .and_then(|row| row.quality.first())
        .map_or("", |measure| measure.name.as_str());
    canvas.text("Quality against cost", [LEFT, 44.0], 28.0, Align::Left, INK);
    canvas.text(
        &format!("{measure}, lower is better"),
        [LEFT, 72.0],
        18.0,
        Align::Left,
        FAINT,
    );
    let below = format!("nanoseconds per sample, blocks of {block}");
    canvas.text(
        &below,
        [f32::midpoint(LEFT, RIGHT), BOTTOM + 62.0],
        18.0,
        Align::Centre,
        FAINT,
    );
    let mut front: Vec<[f32; 2]> = rows
        .iter()
        .filter(|row| row.on_front)
        .map(|row| row.point())
        .map(|(cost, error)| [x.pixel(cost), y.pixel(error)])
        .collect();
    front.sort_by(|a, b| a[0].total_cmp(&b[0]));
    front
        .windows(2)
        .for_each(|pair| canvas.line([pair[0], pair[1]], 2.0, FRONT));
    for (row, (cost, error)) in rows.iter().zip(points) {
        let [at_x, at_y] = [x.pixel(cost), y.pixel(error)];
        let colour = if row.on_front { FRONT } else { DOMINATED };
        canvas.disc([at_x, at_y], 6.0, colour);
        // Labels near the right edge go to the left of their point.
        let (align, beside) = if at_x > RIGHT - 220.0 {
            (Align::Right, -12.0)
        } else {
            (Align::Left, 12.0)
        };
        canvas.text(&row.name, [at_x + beside, at_y - 8.0], 18.0, align, INK);
    }
    canvas
}
