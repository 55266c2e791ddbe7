//! Whatever drives a model, it sounds the same, sample for sample, after the latency that is reported.

use std::sync::Arc;

use ondes_engine::model::{Kind, Model, file};
use ondes_engine::pipeline::{Action, ControlId, PipelineOptions, Source, Transport};
use ondes_engine::realtime::{BlockCue, Driven, Driver, Maker, Patch, Remote, Setup, Status, worker_trace, workforce};
use ondes_tests::through::{LATENTS, untrained_codec, untrained_effect};
use ondes_tests::{bundled_models, random, random_events, random_splits, untrained_instrument};
use rand::RngExt;

const MAX_BLOCK: usize = 1024;

/// Notes and turns of knobs at random samples, in the order of time.
fn cues(seed: u64, samples: u64) -> Vec<(u64, Action)> {
    let mut cues: Vec<(u64, Action)> =
        random_events(seed, samples).into_iter().map(|event| (event.at, Action::Play(event.kind))).collect();
    let mut random = random(seed);
    for (name, range) in [
        ("room", 0.0..2.0),
        ("brightness", -9.0..9.0),
        ("vibrato_depth", 0.0..80.0),
        ("play_mode", 0.0..3.4),
        ("glide", -50.0..200.0),
        ("voices", 0.0..7.0),
        ("transpose", -3.0..3.0),
        ("drive", 0.0..3.0),
        ("latent1.scale", -2.0..3.0),
        ("latent2.offset", -1.0..1.0),
        ("latent4.hold", 0.0..1.4),
    ] {
        for _ in 0..6 {
            let action = Action::Control { id: ControlId::of(name), value: random.random_range(range.clone()) };
            cues.push((random.random_range(0..samples), action));
        }
    }
    let transport = Transport { tempo: 120.0, position: -1.5, playing: true };
    cues.push((random.random_range(0..samples), Action::Transport(transport)));
    cues.sort_by_key(|(at, _)| *at);
    cues
}

/// Plays in blocks of those lengths; gives the sound of the first channel and what it says about itself.
fn play(
    model: &Arc<Model>,
    driver: Driver,
    options: PipelineOptions,
    cues: &[(u64, Action)],
    input: &[f32],
    blocks: &[usize],
) -> (Vec<f32>, usize, Driven) {
    let remote = Remote::new();
    let patch: Arc<dyn Maker> = Arc::new(Patch::new(model.clone(), options).expect("it plays"));
    remote.set_driver(driver);
    // The worker may be as late as it likes: this is about what it plays.
    remote.set_patient(true);
    remote.load(Box::new(move || Ok(patch)), &[]);
    while remote.status() == Status::Loading {
        std::thread::yield_now();
    }
    let setup = Setup { sample_rate: options.sample_rate, max_block: MAX_BLOCK };
    let mut session = remote.activate(setup).expect("a sound setup");
    assert_eq!(remote.status(), Status::Ready);
    let mut sound: Vec<f32> = Vec::new();
    let mut cues = cues.iter().peekable();
    for &length in blocks {
        let start = sound.len();
        sound.resize(start + length, f32::NAN);
        let mut here = Vec::new();
        while let Some(&(at, action)) = cues.next_if(|(at, _)| *at < sound.len() as u64) {
            here.push(BlockCue { offset: at as usize - start, action });
        }
        let mut right = vec![f32::NAN; length];
        // In stereo, the same on both sides.
        let stereo = [&input[start..start + length]; 2];
        session.process(&here, &stereo, &mut [&mut sound[start..], &mut right]);
        assert!(sound[start..] == right, "left and right differ");
    }
    let health = remote.health().expect("a model plays");
    assert_eq!((health.misses, health.faults, health.cues_lost), (0, 0, 0));
    assert_eq!(health.latency_samples, session.latency_samples());
    let kind = model.header().kind;
    assert_eq!(remote.followed().is_some(), kind == Kind::Instrument && options.source == Source::Sound);
    let mut latents = vec![9.0];
    remote.latents(&mut latents);
    assert_eq!(latents.len(), if kind == Kind::Codec { LATENTS } else { 0 });
    assert!(latents.iter().all(|latent| *latent != 0.0), "{latents:?}");
    if let Driver::Worker { .. } = driver {
        assert!(health.steps.count > 0 && health.steps.p50 <= health.steps.worst);
        let workforce = workforce();
        assert!(workforce.sessions + workforce.sessions_aside > 0, "{workforce:?}");
        let mut trace = Vec::new();
        worker_trace().write_chrome(&mut trace).expect("memory takes a trace");
        assert!(trace.starts_with(b"{\"traceEvents\":["));
    }
    (sound, session.latency_samples(), health.driven)
}

fn check(model: &Arc<Model>, rates: &[u32], length: usize) {
    for &sample_rate in rates {
        // What is no instrument does not care.
        for source in [Source::Notes, Source::Sound] {
            let options = PipelineOptions { sample_rate, source, seed: 5, voices: Some(6), ..Default::default() };
            let cues = cues(u64::from(sample_rate), length as u64);
            let step = std::f32::consts::TAU * 290.0 / sample_rate as f32;
            let input: Vec<f32> =
                (0..length).map(|n| 0.3 * (step * n as f32).sin() * (n as f32 * 4e-4).sin()).collect();
            let play =
                |driver, seed| play(model, driver, options, &cues, &input, &random_splits(seed, length, 3 * MAX_BLOCK));
            let (offline, latency, driven) = play(Driver::Offline, 1);
            assert_eq!(driven, Driven::Offline);
            assert!(offline.iter().any(|sample| sample.abs() > 1e-3), "{source:?} at {sample_rate} Hz: nothing sounds");
            let drivers = [
                Driver::Inline,
                Driver::Worker { latency: None },
                Driver::Worker { latency: Some(3000) },
                Driver::Auto,
            ];
            for (seed, driver) in (2..).zip(drivers) {
                let (sound, its_latency, driven) = play(driver, seed);
                let shift = its_latency - latency;
                if let Driver::Worker { .. } = driver {
                    assert!(driven != Driven::Inline && shift >= MAX_BLOCK, "{driven:?} with {shift} samples");
                }
                assert!(sound[..shift].iter().all(|sample| *sample == 0.0));
                assert!(
                    sound[shift..] == offline[..length - shift],
                    "{source:?} at {sample_rate} Hz: {driver:?} differs from offline"
                );
            }
        }
    }
}

#[test]
fn what_is_followed_can_be_seen() {
    let model = Arc::new(untrained_instrument(1));
    for driver in [Driver::Inline, Driver::Worker { latency: None }, Driver::Offline] {
        let options = PipelineOptions { source: Source::Sound, transpose: 5.0, ..Default::default() };
        let patch: Arc<dyn Maker> = Arc::new(Patch::new(model.clone(), options).expect("an instrument"));
        let remote = Remote::new();
        assert_eq!(remote.followed(), None);
        remote.set_driver(driver);
        remote.set_patient(true);
        remote.load(Box::new(move || Ok(patch)), &[]);
        while remote.status() == Status::Loading {
            std::thread::yield_now();
        }
        let mut session = remote.activate(Setup { sample_rate: 48_000, max_block: 480 }).expect("a sound setup");
        assert_eq!(remote.followed(), None, "nothing was heard yet");
        let mut out = [0.0; 480];
        let mut hear = |blocks: usize, hz: f32, peak: f32| {
            for block in 0..blocks {
                let step = std::f32::consts::TAU * hz / 48_000.0;
                let input: Vec<f32> = (0..480).map(|n| peak * (step * (480 * block + n) as f32).sin()).collect();
                session.process(&[], &[&input], &mut [&mut out]);
            }
            remote.followed().expect("a sound")
        };
        // Sines of 1 kHz weigh what they are: −3 dB below their peak.
        let tone = hear(100, 1_000.0, 0.1);
        assert!((tone.pitch.expect("a tone") - 83.21).abs() < 0.05, "{driver:?}: {tone:?}");
        assert!((tone.loudness_db + 23.0).abs() < 0.2, "{driver:?}: {tone:?}");
        let silence = hear(100, 0.0, 0.0);
        assert_eq!((silence.pitch, silence.loudness_db), (None, -100.0), "{driver:?}");
        let tone = hear(100, 440.0, 0.1);
        assert!((tone.pitch.expect("a tone") - 69.0).abs() < 0.05, "{driver:?}: {tone:?}");
    }
}

#[test]
fn who_rests_in_silence_sounds_the_same() {
    const PHRASE: usize = 30_000;
    const SILENCE: usize = 120_000;
    let bowed = bundled_models().swap_remove(0);
    let model = Arc::new(file::read(&bowed).expect("bundled models are whole"));
    for sample_rate in [44_100, 48_000] {
        let options = PipelineOptions { sample_rate, source: Source::Sound, seed: 5, ..Default::default() };
        let step = std::f32::consts::TAU * 290.0 / sample_rate as f32;
        let length = 2 * PHRASE + SILENCE;
        let within = |n: usize| if n.abs_diff(length / 2) > SILENCE / 2 { 0.3 } else { 0.0 };
        let input: Vec<f32> = (0..length).map(|n| within(n) * (step * n as f32).sin()).collect();
        let play = |driver, seed| play(&model, driver, options, &[], &input, &random_splits(seed, length, MAX_BLOCK));
        let (offline, latency, _) = play(Driver::Offline, 1);
        assert!(offline[PHRASE + latency..].windows(1_000).any(|sound| sound.iter().all(|sample| *sample == 0.0)));
        assert!(offline[length - PHRASE + latency + 2_000..].iter().any(|sample| sample.abs() > 0.01));
        for (seed, driver) in [(2, Driver::Inline), (3, Driver::Worker { latency: None })] {
            let (sound, its_latency, _) = play(driver, seed);
            let shift = its_latency - latency;
            assert!(sound[shift..] == offline[..length - shift], "{sample_rate} Hz: {driver:?} differs from offline");
        }
    }
}

#[test]
fn a_small_instrument_at_many_rates() {
    let rates = [8_000, 22_050, 44_100, 48_000, 88_200, 96_000, 192_000, 384_000];
    check(&Arc::new(untrained_instrument(1)), &rates, 20_000);
}

#[test]
fn a_small_effect_at_many_rates() {
    let rates = [8_000, 22_050, 44_100, 48_000, 96_000, 384_000];
    check(&Arc::new(untrained_effect(1)), &rates, 20_000);
}

#[test]
fn a_small_codec_at_many_rates() {
    let rates = [8_000, 22_050, 44_100, 48_000, 96_000, 384_000];
    check(&Arc::new(untrained_codec(1)), &rates, 20_000);
}

#[test]
fn bundled_instruments() {
    for path in bundled_models() {
        let model = Arc::new(file::read(&path).expect("bundled models are whole"));
        check(&model, &[44_100, 48_000, 88_200, 96_000], 24_000);
    }
}
