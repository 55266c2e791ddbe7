//! Every driver gives the same samples, shifted by the reported latency.

use std::sync::Arc;

use ondes_engine::model::{Kind, Model, Op, file};
use ondes_engine::ops::{Conv1d, ConvTranspose1d, Linear};
use ondes_engine::pipeline::{Action, ControlId, ControlSource, PipelineOptions, Transport};
use ondes_engine::realtime::{
    BlockCommand, Driven, Driver, LoadStatus, ModelFactory, PlayableModel, SessionController,
    Setup, worker_stats, worker_trace,
};
use ondes_tests::audio_models::{
    LATENTS, method, model_with, sound, untrained_codec, untrained_effect,
};
use ondes_tests::{
    bundled_models, node, port, random_events, random_splits, seeded_rng, untrained_instrument,
};
use rand::RngExt;

use crate::exclusive;

const MAX_BLOCK: usize = 1024;

/// Returns random notes and control changes, ordered by time.
fn commands(seed: u64, samples: u64) -> Vec<(u64, Action)> {
    let mut commands: Vec<(u64, Action)> = random_events(seed, samples)
        .into_iter()
        .map(|event| (event.at, Action::Play(event.kind)))
        .collect();
    let mut random = seeded_rng(seed);
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
            let action = Action::Control {
                id: ControlId::new(name),
                value: random.random_range(range.clone()),
            };
            commands.push((random.random_range(0..samples), action));
        }
    }
    let transport = Transport {
        tempo: 120.0,
        position: -1.5,
        playing: true,
    };
    commands.push((
        random.random_range(0..samples),
        Action::Transport(transport),
    ));
    commands.sort_by_key(|(at, _)| *at);
    commands
}

/// Plays in blocks of the given lengths; returns the first channel, the latency and the driver that
/// was used.
fn play(
    model: &Arc<Model>,
    driver: Driver,
    options: PipelineOptions,
    commands: &[(u64, Action)],
    input: &[f32],
    blocks: &[usize],
) -> (Vec<f32>, usize, Driven) {
    let controller = SessionController::new();
    let playable_model: Arc<dyn ModelFactory> =
        Arc::new(PlayableModel::new(model.clone(), options).expect("it plays"));
    controller.set_driver(driver);
    // Wait for the worker: this test is about samples, not timing.
    controller.set_non_realtime(true);
    controller.load(Box::new(move || Ok(playable_model)), &[]);
    while controller.status() == LoadStatus::Loading {
        std::thread::yield_now();
    }
    let setup = Setup {
        sample_rate: options.sample_rate,
        max_block: MAX_BLOCK,
    };
    let mut session = controller.activate(setup).expect("a sound setup");
    assert_eq!(controller.status(), LoadStatus::Ready);
    let mut sound: Vec<f32> = Vec::new();
    let mut commands = commands.iter().peekable();
    for &length in blocks {
        let start = sound.len();
        sound.resize(start + length, f32::NAN);
        let mut here = Vec::new();
        while let Some(&(at, action)) = commands.next_if(|(at, _)| *at < sound.len() as u64) {
            here.push(BlockCommand {
                offset: at as usize - start,
                action,
            });
        }
        let mut right = vec![f32::NAN; length];
        // Stereo input, equal on both channels.
        let stereo = [&input[start..start + length]; 2];
        session.process(&here, &stereo, &mut [&mut sound[start..], &mut right]);
        let is_wide = model
            .header()
            .controls
            .iter()
            .any(|control| control.name == "width");
        assert!(
            is_wide || sound[start..] == right,
            "left and right of a mono model differ"
        );
    }
    let health = controller.health().expect("a model plays");
    assert_eq!(
        (health.dropouts, health.invalid_blocks, health.commands_lost),
        (0, 0, 0)
    );
    assert_eq!(health.latency_samples, session.latency_samples());
    let kind = model.header().kind;
    assert_eq!(
        controller.input_analysis().is_some(),
        kind == Kind::Instrument && options.source == ControlSource::AudioInput
    );
    let mut latents = vec![9.0];
    controller.latents(&mut latents);
    assert_eq!(latents.len(), if kind == Kind::Codec { LATENTS } else { 0 });
    assert!(latents.iter().all(|latent| *latent != 0.0), "{latents:?}");
    if let Driver::Worker { .. } = driver {
        assert!(
            health.inference_time.count > 0
                && health.inference_time.p50 <= health.inference_time.worst
        );
        let worker_stats = worker_stats();
        assert!(
            worker_stats.sessions + worker_stats.slow_sessions > 0,
            "{worker_stats:?}"
        );
        let mut trace = Vec::new();
        worker_trace()
            .write_chrome(&mut trace)
            .expect("writing to memory");
        assert!(trace.starts_with(b"{\"traceEvents\":["));
    }
    (sound, session.latency_samples(), health.driven)
}

fn check(model: &Arc<Model>, rates: &[u32], length: usize) {
    for &sample_rate in rates {
        // Only instruments differ by control source.
        for source in [ControlSource::Notes, ControlSource::AudioInput] {
            let options = PipelineOptions {
                sample_rate,
                source,
                seed: 5,
                voices: Some(6),
                ..Default::default()
            };
            let commands = commands(u64::from(sample_rate), length as u64);
            let step = std::f32::consts::TAU * 290.0 / sample_rate as f32;
            let input: Vec<f32> = (0..length)
                .map(|n| 0.3 * (step * n as f32).sin() * (n as f32 * 4e-4).sin())
                .collect();
            let play = |driver, seed| {
                play(
                    model,
                    driver,
                    options,
                    &commands,
                    &input,
                    &random_splits(seed, length, 3 * MAX_BLOCK),
                )
            };
            let (offline, latency, driven) = play(Driver::Offline, 1);
            assert_eq!(driven, Driven::Offline);
            assert!(
                offline.iter().any(|sample| sample.abs() > 1e-3),
                "{source:?} at {sample_rate} Hz: the output is silent"
            );
            let drivers = [
                Driver::Inline,
                Driver::Worker { latency: None },
                Driver::Worker {
                    latency: Some(3000),
                },
                Driver::Auto,
            ];
            for (seed, driver) in (2..).zip(drivers) {
                let (sound, its_latency, driven) = play(driver, seed);
                let shift = its_latency - latency;
                if let Driver::Worker { .. } = driver {
                    assert!(
                        driven != Driven::Inline && shift >= MAX_BLOCK,
                        "{driven:?} with {shift} samples"
                    );
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
fn pitch_and_loudness_of_the_input_are_reported() {
    let _exclusive = exclusive();
    let model = Arc::new(untrained_instrument(1));
    for driver in [
        Driver::Inline,
        Driver::Worker { latency: None },
        Driver::Offline,
    ] {
        let options = PipelineOptions {
            source: ControlSource::AudioInput,
            transpose: 5.0,
            ..Default::default()
        };
        let playable_model: Arc<dyn ModelFactory> =
            Arc::new(PlayableModel::new(model.clone(), options).expect("an instrument"));
        let controller = SessionController::new();
        assert_eq!(controller.input_analysis(), None);
        controller.set_driver(driver);
        controller.set_non_realtime(true);
        controller.load(Box::new(move || Ok(playable_model)), &[]);
        while controller.status() == LoadStatus::Loading {
            std::thread::yield_now();
        }
        let mut session = controller
            .activate(Setup {
                sample_rate: 48_000,
                max_block: 480,
            })
            .expect("a sound setup");
        assert_eq!(controller.input_analysis(), None, "no input yet");
        let mut out = [0.0; 480];
        let mut hear = |blocks: usize, hz: f32, peak: f32| {
            for block in 0..blocks {
                let step = std::f32::consts::TAU * hz / 48_000.0;
                let input: Vec<f32> = (0..480)
                    .map(|n| peak * (step * (480 * block + n) as f32).sin())
                    .collect();
                session.process(&[], &[&input], &mut [&mut out]);
            }
            controller.input_analysis().expect("a sound")
        };
        // A-weighting is 0 dB at 1 kHz, so the level is 3 dB below the peak.
        let tone = hear(100, 1_000.0, 0.1);
        assert!(
            (tone.pitch.expect("a tone") - 83.21).abs() < 0.05,
            "{driver:?}: {tone:?}"
        );
        assert!(
            (tone.loudness_db + 23.0).abs() < 0.2,
            "{driver:?}: {tone:?}"
        );
        let silence = hear(100, 0.0, 0.0);
        assert_eq!(
            (silence.pitch, silence.loudness_db),
            (None, -100.0),
            "{driver:?}"
        );
        let tone = hear(100, 440.0, 0.1);
        assert!(
            (tone.pitch.expect("a tone") - 69.0).abs() < 0.05,
            "{driver:?}: {tone:?}"
        );
    }
}

#[test]
fn models_that_sleep_in_silence_play_the_same_samples() {
    let _exclusive = exclusive();
    const PHRASE: usize = 30_000;
    const SILENCE: usize = 120_000;
    let bowed = bundled_models().swap_remove(0);
    let model = Arc::new(file::read(&bowed).expect("bundled models are valid"));
    for sample_rate in [44_100, 48_000] {
        let options = PipelineOptions {
            sample_rate,
            source: ControlSource::AudioInput,
            seed: 5,
            ..Default::default()
        };
        let step = std::f32::consts::TAU * 290.0 / sample_rate as f32;
        let length = 2 * PHRASE + SILENCE;
        let within = |n: usize| {
            if n.abs_diff(length / 2) > SILENCE / 2 {
                0.3
            } else {
                0.0
            }
        };
        let input: Vec<f32> = (0..length)
            .map(|n| within(n) * (step * n as f32).sin())
            .collect();
        let play = |driver, seed| {
            play(
                &model,
                driver,
                options,
                &[],
                &input,
                &random_splits(seed, length, MAX_BLOCK),
            )
        };
        let (offline, latency, _) = play(Driver::Offline, 1);
        assert!(
            offline[PHRASE + latency..]
                .windows(1_000)
                .any(|sound| sound.iter().all(|sample| *sample == 0.0))
        );
        assert!(
            offline[length - PHRASE + latency + 2_000..]
                .iter()
                .any(|sample| sample.abs() > 0.01)
        );
        for (seed, driver) in [(2, Driver::Inline), (3, Driver::Worker { latency: None })] {
            let (sound, its_latency, _) = play(driver, seed);
            let shift = its_latency - latency;
            assert!(
                sound[shift..] == offline[..length - shift],
                "{sample_rate} Hz: {driver:?} differs from offline"
            );
        }
    }
}

#[test]
fn drivers_agree_on_a_small_instrument_at_many_rates() {
    let _exclusive = exclusive();
    let rates = [
        8_000, 22_050, 44_100, 48_000, 88_200, 96_000, 192_000, 384_000,
    ];
    check(&Arc::new(untrained_instrument(1)), &rates, 20_000);
}

#[test]
fn drivers_agree_on_a_small_effect_at_many_rates() {
    let _exclusive = exclusive();
    let rates = [8_000, 22_050, 44_100, 48_000, 96_000, 384_000];
    check(&Arc::new(untrained_effect(1)), &rates, 20_000);
}

#[test]
fn drivers_agree_on_a_small_codec_at_many_rates() {
    let _exclusive = exclusive();
    let rates = [8_000, 22_050, 44_100, 48_000, 96_000, 384_000];
    check(&Arc::new(untrained_codec(1)), &rates, 20_000);
}

#[test]
fn a_large_codec_is_spread_over_short_blocks() {
    const HOP: usize = 4_096;
    let _exclusive = exclusive();
    let down = Op::Conv1d(Conv1d::new(LATENTS, HOP).strided(HOP));
    let up = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 1,
        kernel: HOP,
        stride: HOP,
    });
    let decode = vec![
        node("wide", &["z"], Op::Linear(Linear { outputs: 2_048 })),
        node("audio", &["wide"], up),
    ];
    let methods = vec![
        method(
            "encode",
            HOP,
            vec![port("in", 1, 1)],
            vec![node("latents", &["in"], down)],
        ),
        method("decode", HOP, vec![port("z", LATENTS, HOP)], decode),
    ];
    let model = Arc::new(model_with(Kind::Codec, methods, &[], 3));
    let input = sound(10 * HOP, 48_000);
    let play = |driver, max_block| {
        let controller = SessionController::new();
        controller.set_driver(driver);
        let playable: Arc<dyn ModelFactory> = Arc::new(
            PlayableModel::new(model.clone(), PipelineOptions::default()).expect("it plays"),
        );
        controller.load(Box::new(move || Ok(playable)), &[]);
        while controller.status() == LoadStatus::Loading {
            std::thread::yield_now();
        }
        let mut session = controller
            .activate(Setup {
                sample_rate: 48_000,
                max_block,
            })
            .expect("a sound setup");
        let mut sound = vec![0.0; input.len()];
        for (input, output) in input.chunks(max_block).zip(sound.chunks_mut(max_block)) {
            session.process(&[], &[input], &mut [output]);
        }
        (sound, session.latency_samples())
    };
    let (offline, latency) = play(Driver::Offline, 32);
    assert!(offline[latency..].iter().any(|sample| sample.abs() > 1e-3));
    assert_eq!(
        play(Driver::Inline, 8_192),
        (offline.clone(), latency),
        "a block holds the hop"
    );
    let (spread, later) = play(Driver::Inline, 32);
    assert_eq!(later, latency + HOP);
    assert!(spread[HOP..] == offline[..offline.len() - HOP]);
}

#[test]
fn drivers_agree_on_the_bundled_instruments() {
    let _exclusive = exclusive();
    for path in bundled_models() {
        let model = Arc::new(file::read(&path).expect("bundled models are valid"));
        check(&model, &[44_100, 48_000, 88_200, 96_000], 24_000);
    }
}
