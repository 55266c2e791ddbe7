use std::f32::consts::TAU;
use std::path::PathBuf;

use super::super::instrument::build;
use super::super::{
    Action, ControlSource, GLIDE, InputAnalysis, PipelineOptions, Playable, ProcessRequest,
    TRANSPOSE, TimedCommand,
};
use super::{NetworkActivity, SilenceDetector};
use crate::dsp::level::max_step;
use crate::model::{Model, file};

const RATE: usize = 48_000;
const HOP: usize = 192;
/// Frames of half a second.
const PATIENCE: usize = 125;

#[test]
fn half_a_second_of_silence_puts_the_network_to_sleep() {
    let mut detector = SilenceDetector::new(RATE as f64, HOP);
    let mut hop = |still, level: Option<f32>| {
        let step = detector.step(still);
        detector.record(level.map(|level| [level; HOP]).as_ref().map(|hop| &hop[..]));
        step
    };
    let mut play =
        |count, still, level| (0..count).all(|_| hop(still, level) == NetworkActivity::Active);
    assert!(play(10, false, Some(0.0)));
    assert!(play(PATIENCE - 1, true, Some(9e-5)));
    // The room still rings, a control changes, or the network was skipped: the count starts again.
    assert!(play(1, true, Some(-2e-4)));
    assert!(play(PATIENCE - 1, true, Some(0.0)));
    assert!(play(1, true, None));
    assert!(play(PATIENCE - 1, true, Some(0.0)));
    assert!(play(1, false, Some(0.0)));
    assert!(play(PATIENCE, true, Some(0.0)));
    assert_eq!(
        (hop(true, Some(0.0)), hop(true, Some(0.0))),
        (NetworkActivity::FadingOut, NetworkActivity::Asleep)
    );
    // Skipped hops do not wake it.
    assert_eq!(
        (hop(true, None), hop(true, Some(0.0))),
        (NetworkActivity::Asleep, NetworkActivity::Asleep)
    );
    assert_eq!(
        (hop(false, Some(0.0)), hop(true, Some(0.0))),
        (NetworkActivity::Active, NetworkActivity::Active)
    );
    detector.reset();
    assert_eq!(detector.step(true), NetworkActivity::Active);
}

#[test]
fn a_network_that_makes_sound_without_input_never_sleeps() {
    let mut detector = SilenceDetector::new(RATE as f64, HOP);
    for _ in 0..10 * PATIENCE {
        assert_eq!(detector.step(true), NetworkActivity::Active);
        detector.record(Some(&[2e-4; HOP]));
    }
}

/// Reads a bundled instrument.
fn bundled(name: &str) -> Model {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    file::read(&PathBuf::from(package).join(format!("../assets/models/{name}.ondes")))
        .expect("it is whole")
}

/// One second with two notes.
fn phrase() -> Vec<f32> {
    let mut phase = 0.0_f32;
    let sample = |n: usize| {
        let t = n as f32 / RATE as f32;
        phase = (phase + if t < 0.5 { 220.0 } else { 330.0 } / RATE as f32).fract();
        let envelope = (40.0 * t).min(1.0) * (20.0 * (1.0 - t)).min(1.0);
        0.25 * envelope
            * (1..9)
                .map(|h| (TAU * h as f32 * phase).sin() / h as f32)
                .sum::<f32>()
    };
    (0..RATE).map(sample).collect()
}

/// Output, and per hop whether the network ran and the analysis of the input.
struct Played {
    sound: Vec<f32>,
    playing: Vec<bool>,
    analyses: Vec<Option<InputAnalysis>>,
    latency: usize,
}

fn play(model: &Model, input: &[f32], may_sleep: bool, commands: &[TimedCommand]) -> Played {
    let options = PipelineOptions {
        source: ControlSource::AudioInput,
        ..PipelineOptions::default()
    };
    let mut batch = build(model, &options).expect("it plays");
    if !may_sleep {
        batch.stream_mut(0).forbid_sleep();
    }
    for command in commands {
        batch.handle(0, *command).expect("there is room");
    }
    let latency = batch.latency_samples();
    let mut played = Played {
        sound: vec![0.0; input.len()],
        playing: Vec::new(),
        analyses: Vec::new(),
        latency,
    };
    for (input, output) in input.chunks(HOP).zip(played.sound.chunks_mut(HOP)) {
        process(&mut batch, input, output);
        played.playing.push(batch.stats(0).voices > 0);
        played.analyses.push(batch.input_analysis(0));
    }
    played
}

/// Fills the left channel of an instrument.
fn process(instrument: &mut impl Playable, input: &[f32], output: &mut [f32]) {
    let mut right = vec![0.0; output.len()];
    instrument.process(&mut [ProcessRequest {
        slot: 0,
        input: [input, &[]],
        output: [output, &mut right],
        mute: false,
    }]);
}

fn level_db(sound: &[f32]) -> f32 {
    10.0 * (sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32).log10()
}

#[test]
fn sleeping_is_inaudible() {
    let silence = vec![0.0; 3 * RATE];
    let input = [&phrase()[..], &silence, &phrase()].concat();
    for name in [
        "bowed",
        "wind",
        "plucked",
        "saxophone",
        "bass-saxophone",
        "violin",
        "cello",
        "clarinet",
        "trumpet",
        "flute",
        "voice",
    ] {
        let model = bundled(name);
        let (slept, awake) = (
            play(&model, &input, true, &[]),
            play(&model, &input, false, &[]),
        );
        assert!(awake.playing[10..].iter().all(|playing| *playing));
        let asleep = slept.playing[10..]
            .iter()
            .filter(|playing| !**playing)
            .count();
        // Of three seconds of silence, one is the room's tail and the time to fall asleep.
        assert!(asleep * HOP > RATE, "{name} sleeps for {asleep} hops");
        let again = 4 * RATE;
        let differs = slept
            .sound
            .iter()
            .zip(&awake.sound)
            .position(|(a, b)| a != b)
            .expect("it slept");
        // Equal up to there; then the difference is inaudible until the next phrase.
        assert!(differs > RATE + RATE / 2);
        // The analysis looks ahead, so the onset begins a little early.
        let pairs = || slept.sound[..again].iter().zip(&awake.sound);
        assert!(
            pairs().all(|(a, b)| (a - b).abs() < 1e-4),
            "{name}: a click"
        );
        // Phases of oscillators and noise differ, so levels are compared, over periods that both
        // notes have in common. A reset network would be 3 dB off in the first tenth of a second of
        // the bowed instrument.
        let phrase = again + slept.latency + RATE / 50..again + RATE - RATE / 20;
        for start in phrase.step_by(RATE / 20) {
            let (a, b) = (
                &slept.sound[start..][..RATE / 20],
                &awake.sound[start..][..RATE / 20],
            );
            let (a, b) = (level_db(a), level_db(b));
            assert!(
                (a - b).abs() < 1.0,
                "{name} at sample {start}: {a} and {b} dB"
            );
        }
        let onset = again..again + RATE / 20;
        assert!(
            max_step(&slept.sound[onset.clone()]) < 1.5 * max_step(&awake.sound[onset]),
            "{name}: a click"
        );
    }
}

#[test]
fn a_control_change_wakes_the_network() {
    let model = bundled("bowed");
    let input = vec![0.0; 3 * RATE];
    let set = |id, value| TimedCommand {
        at: 2 * RATE as u64,
        action: Action::Control { id, value },
    };
    let playing = |commands: &[TimedCommand]| {
        play(&model, &input, true, commands).playing[2 * RATE / HOP - 5..].to_vec()
    };
    assert!(playing(&[]).iter().all(|playing| !playing));
    // Glide is no input of the network.
    assert!(playing(&[set(GLIDE, 5.0)]).iter().all(|playing| !playing));
    assert!(
        playing(&[set(TRANSPOSE, 5.0)])
            .iter()
            .any(|playing| *playing)
    );
}

#[test]
fn the_analysis_follows_the_input() {
    let silence = vec![0.0; RATE];
    let input = [&phrase()[..], &silence].concat();
    let transpose = TimedCommand {
        at: 0,
        action: Action::Control {
            id: TRANSPOSE,
            value: 12.0,
        },
    };
    let Played { analyses, .. } = play(&bundled("wind"), &input, true, &[transpose]);
    assert_eq!(analyses[0], None, "nothing is analysed yet");
    for (second, semitones) in [(0.3, 57.0), (0.8, 64.02)] {
        let frame = analyses[(second * RATE as f64) as usize / HOP].expect("a sound");
        assert!(
            (frame.pitch.expect("a tone") - semitones).abs() < 0.05,
            "{frame:?}"
        );
        assert!((-20.0..-10.0).contains(&frame.loudness_db), "{frame:?}");
    }
    assert_eq!(
        analyses.last(),
        Some(&Some(InputAnalysis {
            pitch: None,
            loudness_db: -100.0
        }))
    );
    let mut batch = build(&bundled("wind"), &PipelineOptions::default()).expect("it plays");
    process(&mut batch, &[], &mut [0.0; 1_000]);
    assert_eq!(batch.input_analysis(0), None, "notes play it");
}
