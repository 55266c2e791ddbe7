//! Colour of notes by velocity, brightness and time.

use std::f64::consts::TAU;

use ondes_engine::dsp::analysis::analyse;
use ondes_engine::instrument::Performance;
use ondes_engine::model::{Model, file};
use ondes_tests::{HOP, SAMPLE_RATE, bundled_file};

use super::playing::play;

/// Key that is played, and its pitch.
const KEY: u8 = 57;
const PITCH_HZ: f64 = 220.0;

/// Returns a bundled instrument that knows one dynamic, with other settings.
fn instrument(change: impl FnOnce(&mut Performance)) -> Model {
    let model = file::read(&bundled_file("bowed")).expect("it is whole");
    let mut header = model.header().clone();
    let mut performance = Performance {
        life: 0.0,
        vibrato_cents: 0.0,
        ..header.performance.expect("it is an instrument")
    };
    change(&mut performance);
    header.performance = Some(performance);
    Model::new(header, model.weights().clone()).expect("the settings are valid")
}

/// Returns the centroid of 30 partials in a part of a note, Hz.
fn centroid_hz(sound: &[f32]) -> f64 {
    let power = |partial: usize| {
        let step = TAU * PITCH_HZ * partial as f64 / f64::from(SAMPLE_RATE);
        let (mut re, mut im) = (0.0, 0.0);
        for (n, sample) in sound.iter().enumerate() {
            let window = 0.5 - 0.5 * (TAU * n as f64 / sound.len() as f64).cos();
            let (sin, cos) = (step * n as f64).sin_cos();
            re += window * f64::from(*sample) * cos;
            im += window * f64::from(*sample) * sin;
        }
        re * re + im * im
    };
    let powers: Vec<f64> = (1..=30).map(power).collect();
    let weighted: f64 = (1..=30).map(|k| k as f64 * powers[k - 1]).sum();
    PITCH_HZ * weighted / powers.iter().sum::<f64>()
}

/// Returns the A-weighted level in the second half, dB.
fn level_db(sound: &[f32]) -> f32 {
    let frames = analyse(sound, f64::from(SAMPLE_RATE), HOP);
    let half = &frames[frames.len() / 2..];
    half.iter().map(|frame| frame.loudness).sum::<f32>() / half.len() as f32
}

fn sustained(sound: &[f32]) -> &[f32] {
    &sound[sound.len() / 2..]
}

#[test]
fn hard_notes_are_brighter_by_as_much_as_the_card_says() {
    let ratio = |tilt: f32| {
        let model = instrument(|performance| performance.dynamic_tilt = tilt);
        let [soft, hard] = [0.3, 0.95].map(|velocity| play(&model, &[KEY], velocity, 0, &[]));
        assert!(level_db(&hard) > level_db(&soft) + 6.0);
        centroid_hz(sustained(&hard)) / centroid_hz(sustained(&soft))
    };
    let (none, some, more) = (ratio(0.0), ratio(1.0), ratio(2.0));
    assert!(some > 1.15 * none, "{some} against {none}");
    assert!(more > 1.1 * some, "{more} against {some}");
}

#[test]
fn brightness_moves_the_colour_and_not_the_level() {
    let model = instrument(|performance| performance.dynamic_tilt = 1.2);
    let [dark, neutral, bright] =
        [-12.0, 0.0, 12.0].map(|db| play(&model, &[KEY], 0.7, 0, &[("brightness", db)]));
    let centroid = |sound: &[f32]| centroid_hz(sustained(sound));
    let [dark_hz, neutral_hz, bright_hz] = [&dark, &neutral, &bright].map(|sound| centroid(sound));
    assert!(
        bright_hz > 4.0 / 3.0 * neutral_hz,
        "{neutral_hz} {bright_hz}"
    );
    // Most of the sound is the lowest partial already.
    assert!(dark_hz < 0.97 * neutral_hz, "{dark_hz} {neutral_hz}");
    for sound in [&dark, &bright] {
        let change = level_db(sound) - level_db(&neutral);
        assert!(change.abs() < 3.0, "{change} dB");
    }
}

#[test]
fn the_colour_of_an_attack_fades_with_it() {
    let [dark, plain] = [-12.0, 0.0].map(|tilt| {
        play(
            &instrument(|performance| {
                performance.attack_tilt_db = tilt;
                performance.attack_ms = 200.0;
            }),
            &[KEY],
            0.7,
            0,
            &[],
        )
    });
    let early = |sound: &[f32]| centroid_hz(&sound[600..3_000]);
    let late = |sound: &[f32]| centroid_hz(sustained(sound));
    assert!(
        early(&dark) < 0.95 * early(&plain),
        "{} {}",
        early(&dark),
        early(&plain)
    );
    assert!((late(&dark) / late(&plain) - 1.0).abs() < 0.05);
}

#[test]
fn a_gain_changes_nothing_else() {
    let [plain, loud] = [0.0, 20.0].map(|gain| {
        play(
            &instrument(|performance| performance.gain_db = gain),
            &[KEY],
            0.7,
            0,
            &[],
        )
    });
    let same = plain.iter().zip(&loud);
    assert!(
        same.clone()
            .all(|(plain, loud)| (10.0 * plain - loud).abs() < 1e-4)
    );
    assert!(loud.iter().any(|sample| sample.abs() > 0.1));
}
