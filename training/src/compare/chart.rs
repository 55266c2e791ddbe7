//! Chart of quality against cost: a point for each model, and a line through the Pareto front.

use ondes_canvas::{Align, Canvas, Colour};

use super::ComparisonRow;

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
/// Margin around the outermost points, as a factor, since both axes are logarithmic.
const MARGIN: f64 = 1.25;
/// Least value on an axis.
const LEAST: f64 = 1e-9;

/// Logarithmic axis.
struct Axis {
    /// Natural logarithms of its ends.
    low: f64,
    high: f64,
    /// Positions of its ends, pixels.
    pixels: (f32, f32),
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, pixels: (f32, f32)) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .map(|value| value.max(LEAST))
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        Self { low: (low / MARGIN).ln(), high: (high * MARGIN).ln(), pixels }
    }

    fn pixel(&self, value: f64) -> f32 {
        let fraction = (value.max(LEAST).ln() - self.low) / (self.high - self.low);
        self.pixels.0 + fraction as f32 * (self.pixels.1 - self.pixels.0)
    }

    /// Returns ticks at 1, 2 and 5 times powers of ten; at more digits if these are fewer than three.
    fn ticks(&self) -> Vec<f64> {
        let multiples = |digits: &[f64]| -> Vec<f64> {
            let powers =
                (self.low / std::f64::consts::LN_10).floor() as i32..=(self.high / std::f64::consts::LN_10) as i32;
            let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            all.filter(|tick| (self.low..=self.high).contains(&tick.ln())).collect()
        };
        let few = multiples(&[1.0, 2.0, 5.0]);
        if few.len() >= 3 { few } else { multiples(&[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]) }
    }
}

/// Formats a number with as many digits as it needs.
fn label(value: f64) -> String {
    let digits = (1 - value.log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Draws the chart, with the time at the first block size and the first measure of quality.
#[must_use]
pub fn draw(rows: &[ComparisonRow]) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    let points: Vec<(f64, f64)> = rows.iter().map(ComparisonRow::point).collect();
    let x = Axis::new(points.iter().map(|point| point.0), (LEFT, RIGHT));
    let y = Axis::new(points.iter().map(|point| point.1), (BOTTOM, TOP));
    for tick in x.ticks() {
        let at = x.pixel(tick);
        canvas.line([[at, TOP], [at, BOTTOM]], 1.0, GRID);
        canvas.text(&label(tick), [at, BOTTOM + 26.0], 18.0, Align::Centre, FAINT);
    }
    for tick in y.ticks() {
        let at = y.pixel(tick);
        canvas.line([[LEFT, at], [RIGHT, at]], 1.0, GRID);
        canvas.text(&label(tick), [LEFT - 12.0, at + 6.0], 18.0, Align::Right, FAINT);
    }
    let block = rows.first().and_then(|row| row.speeds.first()).map_or(0, |speed| speed.block);
    let measure = rows.first().and_then(|row| row.quality.first()).map_or("", |measure| measure.name.as_str());
    canvas.text("Quality against cost", [LEFT, 44.0], 28.0, Align::Left, INK);
    canvas.text(&format!("{measure}, lower is better"), [LEFT, 72.0], 18.0, Align::Left, FAINT);
    let below = format!("nanoseconds per sample, blocks of {block}");
    canvas.text(&below, [f32::midpoint(LEFT, RIGHT), BOTTOM + 62.0], 18.0, Align::Centre, FAINT);
    let mut front: Vec<[f32; 2]> = rows
        .iter()
        .filter(|row| row.on_front)
        .map(|row| row.point())
        .map(|(cost, error)| [x.pixel(cost), y.pixel(error)])
        .collect();
    front.sort_by(|a, b| a[0].total_cmp(&b[0]));
    front.windows(2).for_each(|pair| canvas.line([pair[0], pair[1]], 2.0, FRONT));
    for (row, (cost, error)) in rows.iter().zip(points) {
        let [at_x, at_y] = [x.pixel(cost), y.pixel(error)];
        let colour = if row.on_front { FRONT } else { DOMINATED };
        canvas.disc([at_x, at_y], 6.0, colour);
        // Labels near the right edge go to the left of their point.
        let (align, beside) = if at_x > RIGHT - 220.0 { (Align::Right, -12.0) } else { (Align::Left, 12.0) };
        canvas.text(&row.name, [at_x + beside, at_y - 8.0], 18.0, align, INK);
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_contains_all_values_and_has_ticks() {
        for values in [vec![53.0, 341.0], vec![0.0006, 0.0045], vec![7.0], vec![0.0], vec![]] {
            let axis = Axis::new(values.iter().copied(), (100.0, 200.0));
            assert!(values.iter().all(|&value| (100.0..=200.0).contains(&axis.pixel(value))), "{values:?}");
            assert!(!axis.ticks().is_empty(), "{values:?}");
        }
        assert_eq!([0.0005, 0.02, 1.5, 100.0, 25.0].map(label), ["0.0005", "0.02", "1.5", "100", "25"]);
    }
}
