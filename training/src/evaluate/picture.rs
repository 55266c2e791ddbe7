//! Spectrograms of recordings and of a model's resynthesis.

use ondes_canvas::spectrogram::{Plot, Spectrogram};
use ondes_canvas::{Align, Canvas, Colour};
use ondes_engine::model::{Kind, Model};

use super::{feature_rate, resynthesis};
use crate::data::Recordings;
use crate::tasks::generator::player;

/// Longest sound, seconds.
const SECONDS: f64 = 10.0;

const WIDTH: usize = 1000;
const HEIGHT: usize = 720;
const LEFT: isize = 90;
const RIGHT: isize = 886;
/// Upper edges and height of the two plots.
const TOPS: [isize; 2] = [56, 370];
const PLOT_HEIGHT: isize = 280;

const BACKGROUND: Colour = [14, 13, 20];
const TITLE: Colour = [246, 240, 232];
const LABEL: Colour = [172, 166, 182];

/// Draws the first ten seconds of the recordings above the model's resynthesis, or above what a
/// generator plays with the same knobs. Both have the same colour scale.
///
/// # Errors
/// Returns an error if the model is none of these kinds, or a recording cannot be read.
pub fn draw(model: &Model, files: &Recordings) -> anyhow::Result<Canvas> {
    let rate = feature_rate(model)?.sample_rate;
    let most = (SECONDS * f64::from(rate)) as usize;
    let (mut recorded, mut made) = (Vec::new(), Vec::new());
    for (file, recording) in files.features().zip(files.iter()) {
        let file = file?;
        recorded.extend_from_slice(file.audio());
        made.extend(match model.header().kind {
            Kind::Generator => player::play_like(model, &file, &recording.source.name)?,
            _ => resynthesis(model, &file)?,
        });
        if recorded.len() >= most {
            break;
        }
    }
    let sounds = [recorded, made].map(|mut sound| {
        sound.truncate(most);
        sound
    });
    let spectrograms = sounds
        .each_ref()
        .map(|sound| Spectrogram::new(sound, rate, (RIGHT - LEFT) as usize));
    let loudest = spectrograms.each_ref().map(Spectrogram::loudest);
    let name = &model.header().card.name;
    let titles = [format!("{name}: recording"), format!("{name}: model")];
    let mut canvas = Canvas::new(WIDTH, HEIGHT, BACKGROUND);
    for ((spectrogram, title), top) in spectrograms.iter().zip(titles).zip(TOPS) {
        let plot = Plot {
            left: LEFT,
            right: RIGHT,
            top,
            bottom: top + PLOT_HEIGHT,
            label: LABEL,
        };
        plot.draw(&mut canvas, spectrogram, loudest[0].max(loudest[1]));
        plot.draw_frequencies(&mut canvas);
        plot.draw_scale(&mut canvas);
        if top == TOPS[1] {
            plot.draw_times(&mut canvas, sounds[0].len() as f64 / f64::from(rate));
        }
        canvas.text(
            &title,
            [LEFT as f32, top as f32 - 14.0],
            22.0,
            Align::Left,
            TITLE,
        );
    }
    Ok(canvas)
}
