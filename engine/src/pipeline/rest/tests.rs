use std::f32::consts::TAU;
use std::path::PathBuf;

use super::super::batch::Inspect;
use super::super::instrument::make;
use super::super::{Action, Cue, Followed, GLIDE, PipelineOptions, Playable, Source, TRANSPOSE, Turn};
use super::{Rest, Step};
use crate::model::{Model, file};

const RATE: usize = 48_000;
const HOP: usize = 192;
/// Frames of half a second.
const PATIENCE: usize = 125;

#[test]
fn it_takes_half_a_second_of_nothing() {
    let mut rest = Rest::new(RATE as f64, HOP);
    let mut hop = |still, level: Option<f32>| {
        let step = rest.step(still);
        rest.made(level.map(|level| [level; HOP]).as_ref().map(|hop| &hop[..]));
        step
    };
    let mut play = |count, still, level| (0..count).all(|_| hop(still, level) == Step::Plays);
    assert!(play(10, false, Some(0.0)));
    assert!(play(PATIENCE - 1, true, Some(9e-5)));
    // The room still rings, something is turned, or the network had no time: once more.
    assert!(play(1, true, Some(-2e-4)));
    assert!(play(PATIENCE - 1, true, Some(0.0)));
    assert!(play(1, true, None));
    assert!(play(PATIENCE - 1, true, Some(0.0)));
    assert!(play(1, false, Some(0.0)));
    assert!(play(PATIENCE, true, Some(0.0)));
    assert_eq!((hop(true, Some(0.0)), hop(true, Some(0.0))), (Step::Retires, Step::Rests));
    // It rests on though nobody tells how it would have sounded.
    assert_eq!((hop(true, None), hop(true, Some(0.0))), (Step::Rests, Step::Rests));
    assert_eq!((hop(false, Some(0.0)), hop(true, Some(0.0))), (Step::Plays, Step::Plays));
    rest.reset();
    assert_eq!(rest.step(true), Step::Plays);
}

#[test]
fn what_hums_never_rests() {
    let mut rest = Rest::new(RATE as f64, HOP);
    for _ in 0..10 * PATIENCE {
        assert_eq!(rest.step(true), Step::Plays);
        rest.made(Some(&[2e-4; HOP]));
    }
}

/// The bundled instrument of that name.
fn bundled(name: &str) -> Model {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package lies");
    file::read(&PathBuf::from(package).join(format!("../assets/models/{name}.ondes"))).expect("it is whole")
}

/// A second of two notes.
fn phrase() -> Vec<f32> {
    let mut phase = 0.0_f32;
    let sample = |n: usize| {
        let t = n as f32 / RATE as f32;
        phase = (phase + if t < 0.5 { 220.0 } else { 330.0 } / RATE as f32).fract();
        let envelope = (40.0 * t).min(1.0) * (20.0 * (1.0 - t)).min(1.0);
        0.25 * envelope * (1..9).map(|h| (TAU * h as f32 * phase).sin() / h as f32).sum::<f32>()
    };
    (0..RATE).map(sample).collect()
}

/// What is heard of an input, and at each hop whether the network plays and what it follows.
struct Heard {
    sound: Vec<f32>,
    playing: Vec<bool>,
    followed: Vec<Option<Followed>>,
    latency: usize,
}

fn play(model: &Model, input: &[f32], rests: bool, cues: &[Cue]) -> Heard {
    let options = PipelineOptions { source: Source::Sound, ..PipelineOptions::default() };
    let mut ensemble = make(model, &options).expect("it plays");
    if !rests {
        ensemble.seat_mut(0).forbid_rest();
    }
    for cue in cues {
        ensemble.handle(0, *cue).expect("there is room");
    }
    let latency = ensemble.latency_samples();
    let mut heard = Heard { sound: vec![0.0; input.len()], playing: Vec::new(), followed: Vec::new(), latency };
    for (input, output) in input.chunks(HOP).zip(heard.sound.chunks_mut(HOP)) {
        ensemble.process(&mut [Turn { seat: 0, input, output, mute: false }]);
        heard.playing.push(ensemble.sounding(0) > 0);
        heard.followed.push(ensemble.followed(0));
    }
    heard
}

fn level_db(sound: &[f32]) -> f32 {
    10.0 * (sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32).log10()
}

fn steepest(sound: &[f32]) -> f32 {
    sound.windows(2).fold(0.0, |most, pair| most.max((pair[1] - pair[0]).abs()))
}

#[test]
fn nobody_hears_that_it_rested() {
    let silence = vec![0.0; 3 * RATE];
    let input = [&phrase()[..], &silence, &phrase()].concat();
    for name in ["bowed", "wind", "plucked"] {
        let model = bundled(name);
        let (rested, played) = (play(&model, &input, true, &[]), play(&model, &input, false, &[]));
        assert!(played.playing[10..].iter().all(|playing| *playing));
        let resting = rested.playing[10..].iter().filter(|playing| !**playing).count();
        // Of three seconds one is the room's tail, which is waited for, and the time that it takes to be sure.
        assert!(resting * HOP > RATE, "{name} rests for {resting} hops");
        let again = 4 * RATE;
        let differs = rested.sound.iter().zip(&played.sound).position(|(a, b)| a != b).expect("it rested");
        // Up to there they are the same; from there to the next phrase what differs is too quiet for anybody.
        assert!(differs > RATE + RATE / 2);
        // Analysis looks ahead: the onset shows a little before its time.
        let pairs = || rested.sound[..again].iter().zip(&played.sound);
        assert!(pairs().all(|(a, b)| (a - b).abs() < 1e-4), "{name}: a click");
        // Oscillators and noise have stood still meanwhile: phases differ, so levels are compared, over some periods of what
        // both notes share. Whoever begins anew is 3 dB beside it in the bowed instrument's first tenth of a second.
        let phrase = again + rested.latency + RATE / 50..again + RATE - RATE / 20;
        for start in phrase.step_by(RATE / 20) {
            let (a, b) = (&rested.sound[start..][..RATE / 20], &played.sound[start..][..RATE / 20]);
            let (a, b) = (level_db(a), level_db(b));
            assert!((a - b).abs() < 1.0, "{name} at sample {start}: {a} and {b} dB");
        }
        let onset = again..again + RATE / 20;
        assert!(steepest(&rested.sound[onset.clone()]) < 1.5 * steepest(&played.sound[onset]), "{name}: a click");
    }
}

#[test]
fn it_wakes_when_something_is_turned() {
    let model = bundled("bowed");
    let input = vec![0.0; 3 * RATE];
    let turn = |id, value| Cue { at: 2 * RATE as u64, action: Action::Control { id, value } };
    let playing = |cues: &[Cue]| play(&model, &input, true, cues).playing[2 * RATE / HOP - 5..].to_vec();
    assert!(playing(&[]).iter().all(|playing| !playing));
    // Nothing that it is fed.
    assert!(playing(&[turn(GLIDE, 5.0)]).iter().all(|playing| !playing));
    assert!(playing(&[turn(TRANSPOSE, 5.0)]).iter().any(|playing| *playing));
}

#[test]
fn what_is_followed_is_what_is_heard() {
    let silence = vec![0.0; RATE];
    let input = [&phrase()[..], &silence].concat();
    let turn = Cue { at: 0, action: Action::Control { id: TRANSPOSE, value: 12.0 } };
    let Heard { followed, .. } = play(&bundled("wind"), &input, true, &[turn]);
    assert_eq!(followed[0], None, "nothing is analysed yet");
    for (second, semitones) in [(0.3, 57.0), (0.8, 64.02)] {
        let frame = followed[(second * RATE as f64) as usize / HOP].expect("a sound");
        assert!((frame.pitch.expect("a tone") - semitones).abs() < 0.05, "{frame:?}");
        assert!((-20.0..-10.0).contains(&frame.loudness_db), "{frame:?}");
    }
    assert_eq!(followed.last(), Some(&Some(Followed { pitch: None, loudness_db: -100.0 })));
    let mut ensemble = make(&bundled("wind"), &PipelineOptions::default()).expect("it plays");
    ensemble.process(&mut [Turn { seat: 0, input: &[], output: &mut [0.0; 1_000], mute: false }]);
    assert_eq!(ensemble.followed(0), None, "notes play it");
}
