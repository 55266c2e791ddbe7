//! Width of instruments.

use ondes_engine::model::{Model, file};
use ondes_tests::bundled_file;

use super::playing::{play, play_stereo};

const CHORD: &[u8] = &[57, 64, 69, 73, 78];

fn violin() -> Model {
    file::read(&bundled_file("violin")).expect("it is whole")
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns how alike both channels are, 1 for mono, and the level of the left above the right, dB.
fn compare([left, right]: &[Vec<f32>; 2]) -> (f32, f32) {
    let powers = [left, right].map(|channel| product(channel, channel));
    let alike = product(left, right) / (powers[0] * powers[1]).sqrt();
    (alike, 10.0 * (powers[0] / powers[1]).log10())
}

#[test]
fn channels_differ_and_their_sum_does_not() {
    let model = violin();
    let wide = |width| play_stereo(&model, CHORD, 0.8, 500, &[("width", width)]);
    let alike = [0.0, 0.5, 1.0].map(|width| compare(&wide(width)).0);
    assert!(alike[0] > 1.0 - 1e-6, "{alike:?}");
    assert!((0.5..0.9).contains(&alike[1]), "{alike:?}");
    assert!((-0.4..0.4).contains(&alike[2]), "{alike:?}");
    let [mono, sum] = [0.0, 1.0].map(|width| play(&model, CHORD, 0.8, 500, &[("width", width)]));
    let apart = mono
        .iter()
        .zip(&sum)
        .map(|(mono, sum)| (mono - sum).abs())
        .fold(0.0, f32::max);
    assert!(apart < 1e-5, "{apart}");
    // A card says how wide a model is, if nobody turns the knob.
    assert_eq!(
        wide(0.5),
        play_stereo(&model, CHORD, 0.8, 500, &[]),
        "the default"
    );
}

#[test]
fn low_notes_are_on_the_left() {
    let model = violin();
    let levels = [56, 76, 98].map(|key| {
        let sound = play_stereo(&model, &[key], 0.8, 0, &[("width", 1.0)]);
        compare(&sound).1
    });
    assert!(levels[0] > levels[1] + 1.0, "{levels:?}");
    assert!(levels[1] > levels[2] + 1.0, "{levels:?}");
}

#[test]
fn a_model_without_width_is_mono() {
    let model = violin();
    let mut header = model.header().clone();
    header.controls.retain(|control| control.name != "width");
    if let Some(performance) = &mut header.performance {
        performance.width = 0.0;
    }
    let plain = model.with_header(header).expect("it is valid");
    let [left, right] = play_stereo(&plain, CHORD, 0.8, 500, &[]);
    assert_eq!(left, right);
    // Those that have it play the same if it is 0.
    assert_eq!(left, play(&model, CHORD, 0.8, 500, &[("width", 0.0)]));
}
