//! Charts and a table of training runs, from their logs.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use ondes_canvas::{Align, Canvas, Colour};

use crate::trainer::log_line::{self, LogLine};
use ondes_canvas::axis::{Axis, label};

const WIDTH: usize = 1_600;
const HEIGHT: usize = 1_100;
const BACKGROUND: Colour = [250, 249, 246];
const GRID: Colour = [222, 219, 212];
const INK: Colour = [44, 42, 50];
const FAINT: Colour = [120, 116, 126];
const RUNS: [Colour; 6] = [
    [196, 78, 40],
    [52, 108, 164],
    [74, 140, 84],
    [150, 84, 160],
    [170, 130, 30],
    [60, 150, 150],
];
/// Left and top edge of each chart, pixels, and their size.
const CHARTS: [[f32; 2]; 4] = [[110.0, 90.0], [910.0, 90.0], [110.0, 620.0], [910.0, 620.0]];
const CHART: [f32; 2] = [640.0, 400.0];

/// Log of a run.
pub struct Run {
    /// Name: that of its folder or file.
    pub name: String,
    lines: Vec<LogLine>,
}

/// Points of a chart: step and value.
type Points = Vec<(f64, f64)>;

impl Run {
    /// Reads the log of a run: a `metrics.jsonl` file, or a folder that contains one.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or is empty.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let file = if path.is_dir() {
            path.join("metrics.jsonl")
        } else {
            path.to_owned()
        };
        let lines = log_line::read(&file)?;
        ensure!(!lines.is_empty(), "{}: the log is empty", file.display());
        let named: PathBuf = if file.ends_with("metrics.jsonl") {
            file.parent().map_or_else(PathBuf::new, Path::to_owned)
        } else {
            file.with_extension("").with_extension("")
        };
        let name = named
            .file_name()
            .map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, lines })
    }

    fn points(&self, pick: impl Fn(&LogLine) -> Option<f64>) -> Points {
        let points = self
            .lines
            .iter()
            .filter_map(|line| Some((line.step as f64, pick(line)?)));
        points.filter(|(_, value)| value.is_finite()).collect()
    }

    /// Returns the points of each chart.
    fn charts(&self) -> [(&'static str, Points); 4] {
        [
            ("training loss", self.points(|line| line.loss)),
            ("validation loss", self.points(|line| line.validation)),
            (
                "learning rate",
                self.points(|line| line.rate.filter(|_| line.loss.is_some())),
            ),
            (
                "steps per second",
                self.points(|line| line.seconds.map(|seconds| 1.0 / seconds.max(1e-9))),
            ),
        ]
    }

    /// Returns the row of the table.
    fn row(&self) -> String {
        let last = |pick: fn(&LogLine) -> Option<f64>| self.lines.iter().rev().find_map(pick);
        let validations = self
            .lines
            .iter()
            .filter_map(|line| Some((line.step, line.validation?)));
        let best = validations.min_by(|a, b| a.1.total_cmp(&b.1));
        let paces: Vec<f64> = self.lines.iter().filter_map(|line| line.seconds).collect();
        let number =
            |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.5}"));
        format!(
            "{:24} {:>8} {:>12} {:>12} {:>8} {:>10}",
            self.name,
            self.lines.last().map_or(0, |line| line.step),
            number(last(|line| line.loss)),
            number(best.map(|(_, loss)| loss)),
            best.map_or_else(|| "-".into(), |(step, _)| step.to_string()),
            number((!paces.is_empty()).then(|| paces.iter().sum::<f64>() / paces.len() as f64)),
        )
    }
}

/// Returns the table: steps, last loss, best validation with its step, duration of a step.
#[must_use]
pub fn table(runs: &[Run]) -> String {
    let mut text = format!(
        "{:24} {:>8} {:>12} {:>12} {:>8} {:>10}",
        "run", "steps", "loss", "validation", "at step", "s/step"
    );
    runs.iter()
        .for_each(|run| text = format!("{text}\n{}", run.row()));
    text
}

/// Draws training loss, validation loss, learning rate and speed of all runs against the step.
#[must_use]
pub fn draw(runs: &[Run]) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    let all: Vec<_> = runs.iter().map(Run::charts).collect();
    for (index, [left, top]) in CHARTS.into_iter().enumerate() {
        let [right, bottom] = [left + CHART[0], top + CHART[1]];
        let points = || all.iter().flat_map(|charts| &charts[index].1);
        let x = Axis::linear(points().map(|point| point.0), (left, right));
        // All four are above 0 and change by orders of magnitude.
        let y = Axis::logarithmic(points().map(|point| point.1), (bottom, top));
        for tick in x.ticks() {
            let at = x.pixel(tick);
            canvas.line([[at, top], [at, bottom]], 1.0, GRID);
            canvas.text(
                &label(tick),
                [at, bottom + 24.0],
                16.0,
                Align::Centre,
                FAINT,
            );
        }
        for tick in y.ticks() {
            let at = y.pixel(tick);
            canvas.line([[left, at], [right, at]], 1.0, GRID);
            canvas.text(
                &label(tick),
                [left - 10.0, at + 5.0],
                16.0,
                Align::Right,
                FAINT,
            );
        }
        let title = all.first().map_or("", |charts| charts[index].0);
        canvas.text(title, [left, top - 16.0], 20.0, Align::Left, INK);
        for (run, charts) in all.iter().enumerate() {
            let colour = RUNS[run % RUNS.len()];
            let pixels: Vec<[f32; 2]> = charts[index]
                .1
                .iter()
                .map(|&(step, value)| [x.pixel(step), y.pixel(value)])
                .collect();
            pixels
                .windows(2)
                .for_each(|pair| canvas.line([pair[0], pair[1]], 2.0, colour));
            if let [only] = pixels.as_slice() {
                canvas.disc(*only, 4.0, colour);
            }
        }
    }
    for (index, run) in runs.iter().enumerate() {
        let left = CHARTS[0][0] + index as f32 * 240.0;
        canvas.disc([left, 34.0], 6.0, RUNS[index % RUNS.len()]);
        canvas.text(&run.name, [left + 14.0, 40.0], 18.0, Align::Left, INK);
    }
    canvas
}
