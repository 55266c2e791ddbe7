//! Draws audio: its waveform above its mel spectrogram.

use std::path::Path;

use ondes_canvas::spectrogram::{Plot, Spectrogram};
use ondes_canvas::{Align, Canvas, Colour};

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
const PLOT: Plot = Plot {
    left: LEFT,
    right: RIGHT,
    top: 310,
    bottom: 826,
    label: LABEL,
};

const BACKGROUND: Colour = [14, 13, 20];
const PANEL: Colour = [22, 20, 31];
const LINE: Colour = [46, 43, 60];
const TITLE: Colour = [246, 240, 232];
const LABEL: Colour = [172, 166, 182];
const PEAKS: Colour = [137, 62, 128];
const BODY: Colour = [252, 163, 110];

/// Draws `sound` into a PNG file at `path`.
pub fn draw(sound: &StereoSound, title: &str, subtitle: &str, path: &Path) -> anyhow::Result<()> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    canvas.text(title, [LEFT as f32, 46.0], 34.0, Align::Left, TITLE);
    canvas.text(subtitle, [LEFT as f32, 72.0], 18.0, Align::Left, LABEL);
    for (channel, name) in ["left", "right"].into_iter().enumerate() {
        draw_waveform(&mut canvas, sound, channel, name);
    }
    draw_spectrogram(&mut canvas, sound);
    canvas.write_png(path)
}

/// Returns minimum, maximum and RMS of the samples that fall into column `index` of `columns`.
fn column_range(frames: &[Frame], channel: usize, index: usize, columns: usize) -> [f32; 3] {
    let edge = |index: usize| index * frames.len() / columns;
    let part = &frames[edge(index)..edge(index + 1).max(edge(index) + 1).min(frames.len())];
    let samples = || part.iter().map(|frame| frame[channel]);
    let power = samples().map(|sample| sample * sample).sum::<f32>() / part.len().max(1) as f32;
    [
        samples().fold(0.0, f32::min),
        samples().fold(0.0, f32::max),
        power.sqrt(),
    ]
}

fn draw_waveform(canvas: &mut Canvas, sound: &StereoSound, channel: usize, name: &str) {
    let top = WAVE_TOP + channel as isize * (WAVE_HEIGHT + WAVE_GAP);
    let middle = top as f32 + WAVE_HEIGHT as f32 / 2.0;
    canvas.fill([LEFT, top], [RIGHT - LEFT, WAVE_HEIGHT], PANEL);
    canvas.fill([LEFT, middle as isize], [RIGHT - LEFT, 1], LINE);
    canvas.text(
        name,
        [LEFT as f32 - 12.0, middle + 5.0],
        16.0,
        Align::Right,
        LABEL,
    );
    let columns = (RIGHT - LEFT) as usize;
    let y = |sample: f32| middle - sample.clamp(-1.0, 1.0) * WAVE_HEIGHT as f32 / 2.0;
    for index in 0..columns {
        let [low, high, rms] = column_range(&sound.frames, channel, index, columns);
        canvas.vertical_line(LEFT + index as isize, y(high), y(low), PEAKS);
        canvas.vertical_line(
            LEFT + index as isize,
            y(rms.min(high)),
            y((-rms).max(low)),
            BODY,
        );
    }
}

fn draw_spectrogram(canvas: &mut Canvas, sound: &StereoSound) {
    let mono: Vec<f32> = sound
        .frames
        .iter()
        .map(|frame| (frame[0] + frame[1]) / 2.0)
        .collect();
    let spectrogram = Spectrogram::new(&mono, sound.sample_rate, (RIGHT - LEFT) as usize);
    PLOT.draw(canvas, &spectrogram, spectrogram.loudest());
    PLOT.draw_frequencies(canvas);
    PLOT.draw_times(canvas, sound.seconds());
    PLOT.draw_scale(canvas);
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let sound = StereoSound {
                sample_rate: 48_000,
                frames: vec![[0.25, -0.5]; frames],
            };
            draw(&sound, "A title", "a subtitle", &path).unwrap();
            let reader =
                png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()))
                    .read_info()
                    .unwrap();
            assert_eq!(
                (reader.info().width, reader.info().height),
                (WIDTH as u32, HEIGHT as u32)
            );
        }
    }
}
