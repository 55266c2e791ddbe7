//! Plot of a mel spectrogram, with its axes.

use crate::mel::{FFT_SIZE, FilterBank, mel, spectrogram};
use crate::{Align, Canvas, Colour};

/// Frequency range, Hz.
const LOW_HZ: f32 = 40.0;
const HIGH_HZ: f32 = 16_000.0;
const BANDS: usize = 160;
/// Level range from the loudest point down to black, dB.
const RANGE_DB: f32 = 80.0;
/// Width of the colour scale and its distance from the plot, pixels.
const SCALE_WIDTH: isize = 18;
const SCALE_GAP: isize = 20;

const TICKS_HZ: [f32; 9] = [
    100.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 12_000.0, 16_000.0,
];

/// Matplotlib's "magma" colour map at every eighth.
const MAGMA: [Colour; 9] = [
    [0, 0, 4],
    [28, 16, 68],
    [79, 18, 123],
    [129, 37, 129],
    [181, 54, 122],
    [229, 80, 100],
    [251, 135, 97],
    [254, 194, 135],
    [252, 253, 191],
];

/// Interpolates the colour map at `value`, clamped to 0 … 1.
fn magma(value: f32) -> Colour {
    let at = value.clamp(0.0, 1.0) * (MAGMA.len() - 1) as f32;
    let index = (at as usize).min(MAGMA.len() - 2);
    let way = at - index as f32;
    std::array::from_fn(|channel| {
        let [from, to] = [MAGMA[index][channel], MAGMA[index + 1][channel]].map(f32::from);
        (from + (to - from) * way).round() as u8
    })
}

/// Levels of a sound in bands of frequency.
pub struct Spectrogram {
    /// `[column][band]`, dB.
    columns: Vec<Vec<f32>>,
}

impl Spectrogram {
    /// Analyses a sound at `columns` points of time.
    #[must_use]
    pub fn new(samples: &[f32], sample_rate: u32, columns: usize) -> Self {
        let bank = FilterBank::new(BANDS, LOW_HZ, HIGH_HZ, FFT_SIZE, sample_rate);
        Self {
            columns: spectrogram(samples, columns, &bank),
        }
    }

    /// Returns the highest level, dB.
    #[must_use]
    pub fn loudest(&self) -> f32 {
        self.columns
            .iter()
            .flatten()
            .copied()
            .fold(f32::NEG_INFINITY, f32::max)
    }
}

/// Area of a plot in pixels; all labels are around it.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Left edge.
    pub left: isize,
    /// Right edge.
    pub right: isize,
    /// Upper edge.
    pub top: isize,
    /// Lower edge.
    pub bottom: isize,
    /// Colour of labels.
    pub label: Colour,
}

impl Plot {
    /// Draws a spectrogram; `loudest` has the lightest colour.
    pub fn draw(&self, canvas: &mut Canvas, spectrogram: &Spectrogram, loudest: f32) {
        for (x, bands) in (self.left..self.right).zip(&spectrogram.columns) {
            for y in self.top..self.bottom {
                // Interpolates in dB between the centres of two bands.
                let up = (self.bottom as f32 - 0.5 - y as f32) / (self.bottom - self.top) as f32;
                let at = (up * (BANDS + 1) as f32 - 1.0).clamp(0.0, (BANDS - 1) as f32);
                let index = (at as usize).min(BANDS - 2);
                let db = bands[index] + (bands[index + 1] - bands[index]) * (at - index as f32);
                canvas.blend(x, y, magma(1.0 + (db - loudest) / RANGE_DB), 1.0);
            }
        }
    }

    /// Returns the y coordinate of a frequency.
    fn frequency_y(&self, hz: f32) -> f32 {
        let up = (mel(hz) - mel(LOW_HZ)) / (mel(HIGH_HZ) - mel(LOW_HZ));
        self.bottom as f32 - up * (self.bottom - self.top) as f32
    }

    /// Draws the frequencies at the left.
    pub fn draw_frequencies(&self, canvas: &mut Canvas) {
        for hz in TICKS_HZ {
            let y = self.frequency_y(hz);
            canvas.fill([self.left - 6, y as isize], [6, 1], self.label);
            let label = if hz < 1000.0 {
                format!("{hz} Hz")
            } else {
                format!("{} kHz", hz / 1000.0)
            };
            canvas.text(
                &label,
                [self.left as f32 - 12.0, y + 6.0],
                16.0,
                Align::Right,
                self.label,
            );
        }
    }

    /// Draws the time below.
    pub fn draw_times(&self, canvas: &mut Canvas, seconds: f64) {
        let step = tick_seconds(seconds);
        for tick in 0..=(seconds / step) as usize {
            let at = tick as f64 * step;
            let x = self.left as f64 + at / seconds * (self.right - self.left) as f64;
            canvas.fill([x as isize, self.bottom], [1, 7], self.label);
            let [x, y] = [x as f32, self.bottom as f32 + 26.0];
            let decimals = usize::from(step < 1.0);
            canvas.text(
                &format!("{at:.decimals$}"),
                [x, y],
                16.0,
                Align::Centre,
                self.label,
            );
        }
        let middle = (self.left + self.right) as f32 / 2.0;
        canvas.text(
            "seconds",
            [middle, self.bottom as f32 + 52.0],
            17.0,
            Align::Centre,
            self.label,
        );
    }

    /// Draws the scale of colours at the right.
    pub fn draw_scale(&self, canvas: &mut Canvas) {
        let height = (self.bottom - self.top) as f32;
        let left = self.right + SCALE_GAP;
        for y in self.top..self.bottom {
            let up = (self.bottom as f32 - 0.5 - y as f32) / height;
            canvas.fill([left, y], [SCALE_WIDTH, 1], magma(up));
        }
        for db in [0.0, -20.0, -40.0, -60.0, -80.0] {
            let y = self.top as f32 - db / RANGE_DB * height;
            let x = (left + SCALE_WIDTH) as f32 + 8.0;
            canvas.text(
                &format!("{db} dB").replace('-', "−"),
                [x, y + 6.0],
                16.0,
                Align::Left,
                self.label,
            );
        }
    }
}

/// Returns the seconds between two time marks: a round number that gives at most 16 of them.
fn tick_seconds(seconds: f64) -> f64 {
    let steps = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    ];
    steps
        .into_iter()
        .find(|step| seconds / step <= 16.0)
        .unwrap_or(3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_get_lighter_from_black() {
        assert_eq!(magma(-1.0), MAGMA[0]);
        assert_eq!(magma(0.5), MAGMA[4]);
        assert_eq!(magma(9.0), MAGMA[8]);
        let light = |value: usize| {
            magma(value as f32 / 100.0)
                .into_iter()
                .map(u32::from)
                .sum::<u32>()
        };
        assert!((0..100).all(|value| light(value + 1) >= light(value)));
    }

    #[test]
    fn marks_are_few_and_inside_the_plot() {
        for seconds in [0.4, 3.0, 41.5, 600.0, 7200.0] {
            let marks = seconds / tick_seconds(seconds);
            assert!((2.0..=16.0).contains(&marks), "{seconds} s: {marks}");
        }
        let plot = Plot {
            left: 0,
            right: 100,
            top: 20,
            bottom: 300,
            label: [255; 3],
        };
        assert!(
            TICKS_HZ
                .iter()
                .all(|&hz| (20.0..300.0).contains(&plot.frequency_y(hz)))
        );
    }

    #[test]
    fn a_tone_is_light_at_its_frequency() {
        let tone: Vec<f32> = (0..48_000)
            .map(|n| (std::f32::consts::TAU * 2_000.0 * n as f32 / 48_000.0).sin())
            .collect();
        let plot = Plot {
            left: 0,
            right: 20,
            top: 0,
            bottom: 200,
            label: [255; 3],
        };
        let spectrogram = Spectrogram::new(&tone, 48_000, 20);
        let mut canvas = Canvas::new(20, 200, [0; 3]);
        plot.draw(&mut canvas, &spectrogram, spectrogram.loudest());
        let light = |y: usize| {
            canvas.pixels[y * 20 + 10]
                .into_iter()
                .map(u32::from)
                .sum::<u32>()
        };
        let lightest = (0..200).max_by_key(|&y| light(y)).unwrap();
        assert!(
            (lightest as f32 - plot.frequency_y(2_000.0)).abs() < 3.0,
            "{lightest}"
        );
    }
}
