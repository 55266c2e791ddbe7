//! Levels of the bundled instruments and of the drums.

use ebur128::{EbuR128, Mode};
use ondes_engine::instrument::NATURAL_VELOCITY;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_tests::{SAMPLE_RATE, bundled_file};

use super::playing::{play, play_stereo};

/// Instruments whose notes are held.
const HELD: [&str; 10] = [
    "bass-saxophone",
    "bowed",
    "cello",
    "clarinet",
    "flute",
    "saxophone",
    "trumpet",
    "violin",
    "voice",
    "wind",
];

fn read(name: &str) -> (Model, u8, u8) {
    let model = file::read(&bundled_file(name)).expect("it is whole");
    let performance = model.header().performance.expect("it is an instrument");
    let (low, high) = (performance.pitch_low as u8, performance.pitch_high as u8);
    (model, low, high)
}

#[test]
fn instruments_are_about_equally_loud() {
    let levels = HELD.map(|name| {
        let (model, low, high) = read(name);
        let mut meter = EbuR128::new(1, SAMPLE_RATE, Mode::I).expect("a rate of sound");
        for share in [0.15, 0.3, 0.45, 0.6, 0.75] {
            let key = low + (share * f32::from(high - low)) as u8;
            let sound = play(&model, &[key], NATURAL_VELOCITY, 0, &[]);
            meter.add_frames_f32(&sound).expect("it is mono");
        }
        meter.loudness_global().expect("it was asked for")
    });
    let loudest = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let softest = levels.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(loudest - softest < 3.5, "{HELD:?} {levels:?} LUFS");
}

#[test]
fn chords_of_eight_stay_below_full_scale() {
    for name in HELD.into_iter().chain(["plucked"]) {
        let (model, low, high) = read(name);
        for root in [low + 2, low + 9] {
            let keys = [0, 7, 12, 16, 19, 24, 28, 31].map(|above| (root + above).min(high));
            let sound = play_stereo(&model, &keys, 120.0 / 127.0, 0, &[]);
            let peak = sound
                .iter()
                .flatten()
                .fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
            assert!((0.1..1.0).contains(&peak), "{name}: {peak}");
        }
    }
}

#[test]
fn drums_are_as_loud_as_instruments() {
    let model = file::read(&bundled_file("drums")).expect("it is whole");
    let mut pipeline =
        Pipeline::new(&model, &PipelineOptions::default()).expect("it can be played");
    let mut sound = vec![0.0; 20 * SAMPLE_RATE as usize];
    pipeline.process(&[], &mut sound);
    let mut meter = EbuR128::new(1, SAMPLE_RATE, Mode::I).expect("a rate of sound");
    meter.add_frames_f32(&sound).expect("it is mono");
    let loudness = meter.loudness_global().expect("it was asked for");
    assert!((-29.0..-24.0).contains(&loudness), "{loudness} LUFS");
    assert!(sound.iter().all(|sample| sample.abs() < 1.0));
}
