//! Draws audio: its waveform above its mel spectrogram.

use std::path::Path;

use ondes_canvas::{Align, Canvas, Colour};

use crate::mel::{FFT_SIZE, FilterBank, mel, spectrogram};
use crate::sound::{Frame, StereoSound};

const WIDTH: usize = 1600;
const HEIGHT: usize = 900;

/// Edges of the plots, pixels.
const LEFT: isize = 96;
const RIGHT: isize = 1494;
/// Waveforms of the two channels, one below the other.
const WAVE_TOP: isize = 88;
const WAVE_HEIGHT: isize = 96;
const WAVE_GAP: isize = 6;
const MEL_TOP: isize = 310;
const MEL_BOTTOM: isize = 826;
/// Colour scale beside the spectrogram.
const SCALE_LEFT: isize = 1514;
const SCALE_WIDTH: isize = 18;

const BACKGROUND: Colour = [14, 13, 20];
const PANEL: Colour = [22, 20, 31];
const LINE: Colour = [46, 43, 60];
const TITLE: Colour = [246, 240, 232];
const LABEL: Colour = [172, 166, 182];
const PEAKS: Colour = [137, 62, 128];
const BODY: Colour = [252, 163, 110];

/// Frequency range of the spectrogram, Hz.
const LOW_HZ: f32 = 40.0;
const HIGH_HZ: f32 = 16_000.0;
const BANDS: usize = 160;
/// Level range from the loudest point down to black, dB.
const RANGE_DB: f32 = 80.0;

const TICKS_HZ: [f32; 9] = [100.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 12_000.0, 16_000.0];

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

/// Draws `sound` into a PNG file at `path`.
pub fn draw(sound: &StereoSound, title: &str, subtitle: &str, path: &Path) -> anyhow::Result<()> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    canvas.text(title, [LEFT as f32, 46.0], 34.0, Align::Left, TITLE);
    canvas.text(subtitle, [LEFT as f32, 72.0], 18.0, Align::Left, LABEL);
    for (channel, name) in ["left", "right"].into_iter().enumerate() {
        draw_waveform(&mut canvas, sound, channel, name);
    }
    draw_spectrogram(&mut canvas, sound);
    draw_frequencies(&mut canvas);
    draw_times(&mut canvas, sound.seconds());
    draw_scale(&mut canvas);
    canvas.write_png(path)
}

/// Returns minimum, maximum and RMS of the samples that fall into column `index` of `columns`.
fn column_range(frames: &[Frame], channel: usize, index: usize, columns: usize) -> [f32; 3] {
    let edge = |index: usize| index * frames.len() / columns;
    let part = &frames[edge(index)..edge(index + 1).max(edge(index) + 1).min(frames.len())];
    let samples = || part.iter().map(|frame| frame[channel]);
    let power = samples().map(|sample| sample * sample).sum::<f32>() / part.len().max(1) as f32;
    [samples().fold(0.0, f32::min), samples().fold(0.0, f32::max), power.sqrt()]
}

fn draw_waveform(canvas: &mut Canvas, sound: &StereoSound, channel: usize, name: &str) {
    let top = WAVE_TOP + channel as isize * (WAVE_HEIGHT + WAVE_GAP);
    let middle = top as f32 + WAVE_HEIGHT as f32 / 2.0;
    canvas.fill([LEFT, top], [RIGHT - LEFT, WAVE_HEIGHT], PANEL);
    canvas.fill([LEFT, middle as isize], [RIGHT - LEFT, 1], LINE);
    canvas.text(name, [LEFT as f32 - 12.0, middle + 5.0], 16.0, Align::Right, LABEL);
    let columns = (RIGHT - LEFT) as usize;
    let y = |sample: f32| middle - sample.clamp(-1.0, 1.0) * WAVE_HEIGHT as f32 / 2.0;
    for index in 0..columns {
        let [low, high, rms] = column_range(&sound.frames, channel, index, columns);
        canvas.vertical_line(LEFT + index as isize, y(high), y(low), PEAKS);
        canvas.vertical_line(LEFT + index as isize, y(rms.min(high)), y((-rms).max(low)), BODY);
    }
}

fn draw_spectrogram(canvas: &mut Canvas, sound: &StereoSound) {
    let mono: Vec<f32> = sound.frames.iter().map(|frame| (frame[0] + frame[1]) / 2.0).collect();
    let bank = FilterBank::new(BANDS, LOW_HZ, HIGH_HZ, FFT_SIZE, sound.sample_rate);
    let columns = spectrogram(&mono, (RIGHT - LEFT) as usize, &bank);
    let loudest = columns.iter().flatten().copied().fold(f32::NEG_INFINITY, f32::max);
    for (x, bands) in (LEFT..).zip(&columns) {
        for y in MEL_TOP..MEL_BOTTOM {
            // Interpolates in dB between the centres of two bands.
            let up = (MEL_BOTTOM as f32 - 0.5 - y as f32) / (MEL_BOTTOM - MEL_TOP) as f32;
            let at = (up * (BANDS + 1) as f32 - 1.0).clamp(0.0, (BANDS - 1) as f32);
            let index = (at as usize).min(BANDS - 2);
            let db = bands[index] + (bands[index + 1] - bands[index]) * (at - index as f32);
            canvas.blend(x, y, magma(1.0 + (db - loudest) / RANGE_DB), 1.0);
        }
    }
}

/// Returns the y coordinate of a frequency in the spectrogram.
fn frequency_y(hz: f32) -> f32 {
    let up = (mel(hz) - mel(LOW_HZ)) / (mel(HIGH_HZ) - mel(LOW_HZ));
    MEL_BOTTOM as f32 - up * (MEL_BOTTOM - MEL_TOP) as f32
}

fn draw_frequencies(canvas: &mut Canvas) {
    for hz in TICKS_HZ {
        let y = frequency_y(hz);
        canvas.fill([LEFT - 6, y as isize], [6, 1], LABEL);
        let label = if hz < 1000.0 { format!("{hz} Hz") } else { format!("{} kHz", hz / 1000.0) };
        canvas.text(&label, [LEFT as f32 - 12.0, y + 6.0], 16.0, Align::Right, LABEL);
    }
}

/// Returns the seconds between two time marks: a round number that gives at most 16 of them.
fn tick_seconds(seconds: f64) -> f64 {
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
    steps.into_iter().find(|step| seconds / step <= 16.0).unwrap_or(3600.0)
}

fn draw_times(canvas: &mut Canvas, seconds: f64) {
    let step = tick_seconds(seconds);
    for tick in 0..=(seconds / step) as usize {
        let at = tick as f64 * step;
        let x = LEFT as f64 + at / seconds * (RIGHT - LEFT) as f64;
        canvas.fill([x as isize, MEL_BOTTOM], [1, 7], LABEL);
        let decimals = usize::from(step < 1.0);
        canvas.text(&format!("{at:.decimals$}"), [x as f32, MEL_BOTTOM as f32 + 26.0], 16.0, Align::Centre, LABEL);
    }
    let middle = (LEFT + RIGHT) as f32 / 2.0;
    canvas.text("seconds", [middle, MEL_BOTTOM as f32 + 52.0], 17.0, Align::Centre, LABEL);
}

fn draw_scale(canvas: &mut Canvas) {
    let height = (MEL_BOTTOM - MEL_TOP) as f32;
    for y in MEL_TOP..MEL_BOTTOM {
        let up = (MEL_BOTTOM as f32 - 0.5 - y as f32) / height;
        canvas.fill([SCALE_LEFT, y], [SCALE_WIDTH, 1], magma(up));
    }
    for db in [0.0, -20.0, -40.0, -60.0, -80.0] {
        let y = MEL_TOP as f32 - db / RANGE_DB * height;
        canvas.text(&format!("{db} dB").replace('-', "−"), [1540.0, y + 6.0], 16.0, Align::Left, LABEL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_get_lighter_from_black() {
        assert_eq!(magma(-1.0), MAGMA[0]);
        assert_eq!(magma(0.5), MAGMA[4]);
        assert_eq!(magma(9.0), MAGMA[8]);
        let light = |value: usize| magma(value as f32 / 100.0).into_iter().map(u32::from).sum::<u32>();
        assert!((0..100).all(|value| light(value + 1) >= light(value)));
    }

    #[test]
    fn marks_are_few_and_inside_the_plot() {
        for seconds in [0.4, 3.0, 41.5, 600.0, 7200.0] {
            let marks = seconds / tick_seconds(seconds);
            assert!((2.0..=16.0).contains(&marks), "{seconds} s: {marks}");
        }
        assert!(TICKS_HZ.iter().all(|&hz| (MEL_TOP as f32..MEL_BOTTOM as f32).contains(&frequency_y(hz))));
    }

    #[test]
    fn a_column_has_minimum_maximum_and_rms() {
        let frames = [[0.0, 0.5], [0.0, -0.25], [1.0, 0.0], [-1.0, 0.0]];
        assert_eq!(column_range(&frames, 0, 1, 2), [-1.0, 1.0, 1.0]);
        assert_eq!(column_range(&frames, 1, 0, 2)[..2], [-0.25, 0.5]);
        // With fewer samples than pixels, each pixel still covers one sample.
        assert!((0..64).all(|index| column_range(&frames, 0, index, 64)[2].is_finite()));
    }

    #[test]
    fn draws_audio_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        for frames in [1, 700, 30_000] {
            let path = folder.path().join("a.png");
            let sound = StereoSound { sample_rate: 48_000, frames: vec![[0.25, -0.5]; frames] };
            draw(&sound, "A title", "a subtitle", &path).unwrap();
            let reader =
                png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).read_info().unwrap();
            assert_eq!((reader.info().width, reader.info().height), (WIDTH as u32, HEIGHT as u32));
        }
    }
}
