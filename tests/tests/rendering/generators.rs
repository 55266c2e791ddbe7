//! Generators that notes start and stop, and that listen to the input.

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::pipeline::{
    Action, ControlId, InputChannels, Pipeline, PipelineOptions, ProcessRequest, TimedCommand,
    build_playable,
};
use ondes_tests::audio_models::{
    LATENTS, RATIO, autoregressive_generator, listening_generator, sound, whole,
};

const SAMPLE_RATE: u32 = 48_000;
/// Samples of a hop: the block of the decoder.
const HOP: usize = 2 * RATIO;

fn pipeline(model: &ondes_engine::model::Model, channels: InputChannels) -> Pipeline {
    let options = PipelineOptions {
        sample_rate: SAMPLE_RATE,
        channels,
        ..Default::default()
    };
    Pipeline::new(model, &options).expect("it plays")
}

/// Plays keys struck and released at hops, in host blocks of `block`.
fn play(keys: &[(usize, u8, bool)], gate: f32, hops: usize, block: usize) -> Vec<f32> {
    let mut pipeline = pipeline(&autoregressive_generator(3), InputChannels::Mono);
    pipeline.set_control("prior.gate", gate).expect("a control");
    for &(hop, key, is_down) in keys {
        let kind = if is_down {
            EventKind::NoteOn {
                channel: 0,
                key,
                velocity: 0.8,
            }
        } else {
            EventKind::NoteOff {
                channel: 0,
                key,
                velocity: 0.0,
            }
        };
        pipeline
            .handle(Event {
                at: (hop * HOP) as u64,
                kind,
            })
            .expect("there is room");
    }
    let mut played = vec![0.0; pipeline.latency_samples() + hops * HOP];
    played
        .chunks_mut(block)
        .for_each(|block| pipeline.process(&[], block));
    played.split_off(pipeline.latency_samples())
}

#[test]
fn each_key_begins_a_piece_of_its_own() {
    let far = |one: &[f32], other: &[f32]| {
        one.iter()
            .zip(other)
            .any(|(one, other)| (one - other).abs() > 1e-3)
    };
    let hops = |from: usize, to: usize| from * HOP..to * HOP;
    let free = play(&[], 0.0, 60, 100);
    let played = play(&[(20, 60, true), (40, 60, true)], 0.0, 60, 100);
    assert_eq!(
        played[hops(0, 20)],
        free[hops(0, 20)],
        "before the first key"
    );
    assert!(
        far(&played[hops(20, 40)], &free[hops(20, 40)]),
        "a key changes nothing"
    );
    // The decoder still sounds of what was before.
    let other_start = play(&[(30, 60, true)], 0.0, 60, 100);
    assert_eq!(
        played[hops(24, 40)],
        other_start[hops(34, 50)],
        "the same key at another time"
    );
    assert_eq!(
        played[hops(24, 40)],
        played[hops(44, 60)],
        "the same key again"
    );
    let other_key = play(&[(20, 61, true)], 0.0, 60, 100);
    assert!(
        far(&played[hops(24, 40)], &other_key[hops(24, 40)]),
        "another key is no other piece"
    );
    assert_eq!(
        played,
        play(&[(20, 60, true), (40, 60, true)], 0.0, 60, 7),
        "in other blocks"
    );
}

#[test]
fn a_gated_generator_sounds_while_a_key_is_held() {
    let keys = [(10, 60, true), (30, 60, false), (40, 62, true)];
    let played = play(&keys, 1.0, 60, 100);
    let is_silent = |from: usize, to: usize| {
        played[from * HOP..to * HOP]
            .iter()
            .all(|sample| *sample == 0.0)
    };
    // It opens and closes within 240 samples, two hops.
    assert!(is_silent(0, 10) && is_silent(32, 40));
    assert!(!is_silent(10, 12) && !is_silent(29, 30) && !is_silent(40, 42));
    // Once open, it plays as one without a gate.
    let free = play(&keys[..1], 0.0, 60, 100);
    assert_eq!(played[14 * HOP..30 * HOP], free[14 * HOP..30 * HOP]);
    let largest_step = |sound: &[f32]| {
        sound
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).abs())
            .fold(0.0, f32::max)
    };
    assert!(
        largest_step(&played) <= 1.01 * largest_step(&free),
        "the gate clicks"
    );
    assert_eq!(played, play(&keys, 1.0, 60, 7), "in other blocks");
}

#[test]
fn a_generator_that_is_spread_is_a_hop_ahead_and_plays_the_same() {
    let mut input = sound(60 * HOP, SAMPLE_RATE);
    input[..HOP].fill(0.0);
    // What acts on it must come a hop earlier.
    let early: Vec<f32> = input[HOP..].iter().copied().chain([0.0; HOP]).collect();
    let models = [
        ("plain", autoregressive_generator(3)),
        ("listening", listening_generator(5)),
    ];
    // Faster than the decoder, slower, held, and as learnt again; with a key between them and the
    // gate closed at last.
    let controls = [
        (5, "prior.tempo", 3.5),
        (15, "prior.tempo", 0.25),
        (25, "prior.freeze", 1.0),
    ]
    .into_iter()
    .chain([
        (30, "prior.freeze", 0.0),
        (30, "prior.tempo", 1.0),
        (35, "listen", 0.5),
        (45, "listen", 0.0),
    ])
    .chain([(50, "prior.gate", 1.0), (0, "temperature", 0.5)]);
    let play = |model, spread: bool, block: usize| {
        let options = PipelineOptions {
            sample_rate: SAMPLE_RATE,
            spread,
            ..Default::default()
        };
        let mut playable = build_playable(model, &options).expect("it plays");
        let key = EventKind::NoteOn {
            channel: 0,
            key: 60,
            velocity: 0.8,
        };
        let controls = controls.clone().map(|(hop, name, value)| {
            // A model without the control ignores it.
            (
                hop,
                Action::Control {
                    id: ControlId::new(name),
                    value,
                },
            )
        });
        let up = EventKind::NoteOff {
            channel: 0,
            key: 60,
            velocity: 0.0,
        };
        let mut actions: Vec<_> = controls
            .chain([(40, Action::Play(key)), (55, Action::Play(up))])
            .collect();
        actions.sort_by_key(|(hop, _)| *hop);
        for (hop, action) in actions {
            let at = if hop == 0 || !spread { hop } else { hop - 1 };
            playable
                .handle(
                    0,
                    TimedCommand {
                        at: (at * HOP) as u64,
                        action,
                    },
                )
                .expect("there is room");
        }
        let mut played = vec![0.0; input.len()];
        let heard = if spread { &early } else { &input };
        for (heard, out) in heard.chunks(block).zip(played.chunks_mut(block)) {
            playable.process(&mut [ProcessRequest::mono(0, heard, out)]);
        }
        (played, playable.latency_samples())
    };
    for (name, model) in &models {
        let (whole, latency) = play(model, false, 100);
        assert!(whole.iter().any(|sample| sample.abs() > 1e-3), "{name}");
        for block in [1, 7, 100, 1_000] {
            assert_eq!(
                play(model, true, block),
                (whole.clone(), latency),
                "{name}, blocks of {block}"
            );
        }
    }
}

#[test]
fn a_generator_listens_to_the_input() {
    let model = listening_generator(5);
    let input = sound(20 * HOP, SAMPLE_RATE);
    // It does not wait for the input of a hop, and hears it one hop late.
    let late: Vec<f32> = std::iter::repeat_n(0.0, HOP - 1)
        .chain(input.iter().copied())
        .take(input.len())
        .collect();
    let encoded = whole(&model, "encode", &[&late]);
    for channels in [InputChannels::Mono, InputChannels::Stereo] {
        let mut pipeline = pipeline(&model, channels);
        assert_eq!(
            (
                pipeline.latency_samples(),
                pipeline.input_channels(),
                pipeline.channels()
            ),
            (0, 1, 1)
        );
        let mut sound_of_hop = [0.0; HOP];
        for (hop, input) in input.chunks_exact(HOP).enumerate() {
            pipeline.process(input, &mut sound_of_hop);
            // The last frame of the hop.
            let expected = &encoded[(2 * hop + 1) * LATENTS..][..LATENTS];
            assert_eq!(pipeline.latents(), expected, "{channels:?}, hop {hop}");
        }
        pipeline.set_control("listen", 0.0).expect("a control");
        pipeline.process(&sound(200 * HOP, SAMPLE_RATE), &mut vec![0.0; 200 * HOP]);
        assert_eq!(pipeline.latents(), [0.0; LATENTS], "{channels:?}");
    }
}

#[test]
fn sessions_listen_by_themselves() {
    let model = listening_generator(5);
    let input = sound(20 * HOP, SAMPLE_RATE);
    // The first session begins to listen in the middle; the last one, if there are two, listens
    // from the beginning.
    let play = |sessions: usize| {
        let options = PipelineOptions {
            sample_rate: SAMPLE_RATE,
            sessions,
            ..Default::default()
        };
        let mut playable = build_playable(&model, &options).expect("it plays");
        for (at, value) in [(0, 0.0), (10 * HOP as u64, 1.0)] {
            let action = Action::Control {
                id: ControlId::new("listen"),
                value,
            };
            playable
                .handle(0, TimedCommand { at, action })
                .expect("there is room");
        }
        let mut outputs = vec![vec![0.0; input.len()]; sessions];
        let requests = outputs
            .iter_mut()
            .enumerate()
            .map(|(slot, out)| ProcessRequest::mono(slot, &input, out));
        playable.process(&mut requests.collect::<Vec<_>>());
        (outputs.swap_remove(0), playable.latents(0).to_vec())
    };
    let alone = play(1);
    assert!(
        alone.1.iter().any(|latent| *latent != 0.0),
        "it listens at the end"
    );
    assert_eq!(alone, play(2));
}
