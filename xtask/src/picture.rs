//! How a sound looks: its waveform over its mel spectrogram.

use std::path::Path;

use ondes_canvas::{Align, Canvas, Colour};

use crate::mel::{FFT_SIZE, FilterBank, mel, spectrogram};
use crate::mix::{Frame, Sound};

const WIDTH: usize = 1600;
const HEIGHT: usize = 900;

/// Edges of what is drawn, pixels.
const LEFT: isize = 96;
const RIGHT: isize = 1494;
/// The two channels' waveforms, one below the other.
const WAVE_TOP: isize = 88;
const LANE_HEIGHT: isize = 96;
const LANE_GAP: isize = 6;
const MEL_TOP: isize = 310;
const MEL_BOTTOM: isize = 826;
/// The key to the colours.
const KEY_LEFT: isize = 1514;
const KEY_WIDTH: isize = 18;

const BACKGROUND: Colour = [14, 13, 20];
const PANEL: Colour = [22, 20, 31];
const LINE: Colour = [46, 43, 60];
const TITLE: Colour = [246, 240, 232];
const LABEL: Colour = [172, 166, 182];
const PEAKS: Colour = [137, 62, 128];
const BODY: Colour = [252, 163, 110];

/// Lowest and highest frequency, Hz; below and above there is little to see.
const LOW_HZ: f32 = 40.0;
const HIGH_HZ: f32 = 16_000.0;
const BANDS: usize = 160;
/// From the loudest point to black, dB.
const RANGE_DB: f32 = 80.0;

const TICKS_HZ: [f32; 9] = [100.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 12_000.0, 16_000.0];

/// Matplotlib's "magma" at every eighth.
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

/// The colour of a value within 0 … 1.
fn magma(value: f32) -> Colour {
    let at = value.clamp(0.0, 1.0) * (MAGMA.len() - 1) as f32;
    let index = (at as usize).min(MAGMA.len() - 2);
    let way = at - index as f32;
    std::array::from_fn(|channel| {
        let [from, to] = [MAGMA[index][channel], MAGMA[index + 1][channel]].map(f32::from);
        (from + (to - from) * way).round() as u8
    })
}

/// Draws a sound into a PNG file.
pub fn draw(sound: &Sound, title: &str, subtitle: &str, path: &Path) -> anyhow::Result<()> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    canvas.text(title, [LEFT as f32, 46.0], 34.0, Align::Left, TITLE);
    canvas.text(subtitle, [LEFT as f32, 72.0], 18.0, Align::Left, LABEL);
    for (channel, name) in ["left", "right"].into_iter().enumerate() {
        waveform(&mut canvas, sound, channel, name);
    }
    spectrum(&mut canvas, sound);
    frequencies(&mut canvas);
    times(&mut canvas, sound.seconds());
    key(&mut canvas);
    canvas.write(path)
}

/// Lowest and highest sample and RMS of the samples below one column of pixels.
fn column(frames: &[Frame], channel: usize, index: usize, columns: usize) -> [f32; 3] {
    let edge = |index: usize| index * frames.len() / columns;
    let part = &frames[edge(index)..edge(index + 1).max(edge(index) + 1).min(frames.len())];
    let samples = || part.iter().map(|frame| frame[channel]);
    let power = samples().map(|sample| sample * sample).sum::<f32>() / part.len().max(1) as f32;
    [samples().fold(0.0, f32::min), samples().fold(0.0, f32::max), power.sqrt()]
}

fn waveform(canvas: &mut Canvas, sound: &Sound, channel: usize, name: &str) {
    let top = WAVE_TOP + channel as isize * (LANE_HEIGHT + LANE_GAP);
    let middle = top as f32 + LANE_HEIGHT as f32 / 2.0;
    canvas.fill([LEFT, top], [RIGHT - LEFT, LANE_HEIGHT], PANEL);
    canvas.fill([LEFT, middle as isize], [RIGHT - LEFT, 1], LINE);
    canvas.text(name, [LEFT as f32 - 12.0, middle + 5.0], 16.0, Align::Right, LABEL);
    let columns = (RIGHT - LEFT) as usize;
    let y = |sample: f32| middle - sample.clamp(-1.0, 1.0) * LANE_HEIGHT as f32 / 2.0;
    for index in 0..columns {
        let [low, high, rms] = column(&sound.frames, channel, index, columns);
        canvas.stroke(LEFT + index as isize, y(high), y(low), PEAKS);
        canvas.stroke(LEFT + index as isize, y(rms.min(high)), y((-rms).max(low)), BODY);
    }
}

fn spectrum(canvas: &mut Canvas, sound: &Sound) {
    let mono: Vec<f32> = sound.frames.iter().map(|frame| (frame[0] + frame[1]) / 2.0).collect();
    let bank = FilterBank::new(BANDS, LOW_HZ, HIGH_HZ, FFT_SIZE, sound.rate);
    let columns = spectrogram(&mono, (RIGHT - LEFT) as usize, &bank);
    let loudest = columns.iter().flatten().copied().fold(f32::NEG_INFINITY, f32::max);
    for (x, bands) in (LEFT..).zip(&columns) {
        for y in MEL_TOP..MEL_BOTTOM {
            // Between the middles of two bands, in dB.
            let up = (MEL_BOTTOM as f32 - 0.5 - y as f32) / (MEL_BOTTOM - MEL_TOP) as f32;
            let at = (up * (BANDS + 1) as f32 - 1.0).clamp(0.0, (BANDS - 1) as f32);
            let index = (at as usize).min(BANDS - 2);
            let db = bands[index] + (bands[index + 1] - bands[index]) * (at - index as f32);
            canvas.paint(x, y, magma(1.0 + (db - loudest) / RANGE_DB), 1.0);
        }
    }
}

/// Where a frequency is in the spectrogram.
fn height_of(hz: f32) -> f32 {
    let up = (mel(hz) - mel(LOW_HZ)) / (mel(HIGH_HZ) - mel(LOW_HZ));
    MEL_BOTTOM as f32 - up * (MEL_BOTTOM - MEL_TOP) as f32
}

fn frequencies(canvas: &mut Canvas) {
    for hz in TICKS_HZ {
        let y = height_of(hz);
        canvas.fill([LEFT - 6, y as isize], [6, 1], LABEL);
        let label = if hz < 1000.0 { format!("{hz} Hz") } else { format!("{} kHz", hz / 1000.0) };
        canvas.text(&label, [LEFT as f32 - 12.0, y + 6.0], 16.0, Align::Right, LABEL);
    }
}

/// Seconds between two marks: a round number that leaves room for the labels.
fn tick_seconds(seconds: f64) -> f64 {
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
    steps.into_iter().find(|step| seconds / step <= 16.0).unwrap_or(3600.0)
}

fn times(canvas: &mut Canvas, seconds: f64) {
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

fn key(canvas: &mut Canvas) {
    let height = (MEL_BOTTOM - MEL_TOP) as f32;
    for y in MEL_TOP..MEL_BOTTOM {
        let up = (MEL_BOTTOM as f32 - 0.5 - y as f32) / height;
        canvas.fill([KEY_LEFT, y], [KEY_WIDTH, 1], magma(up));
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
    fn colours_rise_from_black() {
        assert_eq!(magma(-1.0), MAGMA[0]);
        assert_eq!(magma(0.5), MAGMA[4]);
        assert_eq!(magma(9.0), MAGMA[8]);
        let light = |value: usize| magma(value as f32 / 100.0).into_iter().map(u32::from).sum::<u32>();
        assert!((0..100).all(|value| light(value + 1) >= light(value)));
    }

    #[test]
    fn marks_are_few_and_within() {
        for seconds in [0.4, 3.0, 41.5, 600.0, 7200.0] {
            let marks = seconds / tick_seconds(seconds);
            assert!((2.0..=16.0).contains(&marks), "{seconds} s: {marks}");
        }
        assert!(TICKS_HZ.iter().all(|&hz| (MEL_TOP as f32..MEL_BOTTOM as f32).contains(&height_of(hz))));
    }

    #[test]
    fn envelope_of_a_column() {
        let frames = [[0.0, 0.5], [0.0, -0.25], [1.0, 0.0], [-1.0, 0.0]];
        assert_eq!(column(&frames, 0, 1, 2), [-1.0, 1.0, 1.0]);
        assert_eq!(column(&frames, 1, 0, 2)[..2], [-0.25, 0.5]);
        // Fewer samples than pixels: each pixel still has one.
        assert!((0..64).all(|index| column(&frames, 0, index, 64)[2].is_finite()));
    }

    #[test]
    fn draws_any_length() {
        let folder = tempfile::tempdir().unwrap();
        for frames in [1, 700, 30_000] {
            let path = folder.path().join("a.png");
            let sound = Sound { rate: 48_000, frames: vec![[0.25, -0.5]; frames] };
            draw(&sound, "A title", "a subtitle", &path).unwrap();
            let reader =
                png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).read_info().unwrap();
            assert_eq!((reader.info().width, reader.info().height), (WIDTH as u32, HEIGHT as u32));
        }
    }
}
