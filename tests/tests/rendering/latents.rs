//! A codec's latents can be read and transformed while it plays.

use std::sync::Arc;

use ondes_engine::model::{Control, Kind, Model, Op};
use ondes_engine::ops::{Gru, Linear};
use ondes_engine::pipeline::{
    Action, ControlId, Pipeline, PipelineError, PipelineOptions, Playable, ProcessRequest,
    SessionStart, TimedCommand, build_playable, controls, latent_count,
};
use ondes_engine::realtime::{BlockCommand, Driver, PlayableModel, SessionController, Setup};
use ondes_tests::audio_models::{
    LATENTS, RATIO, codec_methods, method, model_with, sound, untrained_codec, untrained_effect,
    whole,
};
use ondes_tests::fake_model::{Host, Wave};
use ondes_tests::{SAMPLE_RATE, node, port, random_splits, untrained_instrument};

/// Samples after which a control has settled, and a codec's memory has been replaced.
const SETTLED: usize = 12_000;
const HOP: usize = 2 * RATIO;

fn latent_command(at: usize, latent: usize, what: &str, value: f32) -> TimedCommand {
    let id = ControlId::new(&format!("latent{latent}.{what}"));
    TimedCommand {
        at: at as u64,
        action: Action::Control { id, value },
    }
}

/// Returns the output after the latency, and the latents after each hop.
fn play(model: &Model, input: &[f32], commands: &[TimedCommand]) -> (Vec<f32>, Vec<Vec<f32>>) {
    let mut playable = build_playable(model, &PipelineOptions::default()).expect("it plays");
    let (mut heard, mut seen) = (vec![0.0; input.len()], Vec::new());
    assert_eq!(playable.latents(0), [0.0; LATENTS]);
    for command in commands {
        playable.handle(0, *command).expect("there is room");
    }
    for (input, output) in input.chunks(HOP).zip(heard.chunks_mut(HOP)) {
        playable.process(&mut [ProcessRequest::mono(0, input, output)]);
        seen.push(playable.latents(0).to_vec());
    }
    heard.drain(..playable.latency_samples());
    (heard, seen)
}

#[test]
fn a_codec_has_three_controls_for_each_latent() {
    let model = untrained_codec(1);
    assert_eq!(latent_count(model.header()), LATENTS);
    let all = controls(model.header());
    let own = model.header().controls.len();
    assert_eq!(all[..own], model.header().controls);
    let names: Vec<&str> = all[own..]
        .iter()
        .map(|control| control.name.as_str())
        .collect();
    let parts = |n: usize| ["scale", "offset", "hold"].map(|part| format!("latent{n}.{part}"));
    assert_eq!(names, (1..=LATENTS).flat_map(parts).collect::<Vec<_>>());
    assert!(all.iter().all(Control::is_valid));
    let ranges: Vec<_> = all[own..own + 3]
        .iter()
        .map(|it| (it.min, it.max, it.default))
        .collect();
    assert_eq!(
        ranges,
        [(-4.0, 4.0, 1.0), (-4.0, 4.0, 0.0), (0.0, 1.0, 0.0)]
    );
    // A control that the model lists itself takes precedence.
    let model = model_with(Kind::Codec, codec_methods(), &["latent2.scale"], 1);
    let all = controls(model.header());
    assert_eq!(all.len(), own + 3 * LATENTS);
    let named: Vec<_> = all
        .iter()
        .filter(|control| control.name == "latent2.scale")
        .collect();
    assert_eq!((named.len(), named[0].min), (1, 0.0));
    for other in [untrained_effect(1), untrained_instrument(1)] {
        assert_eq!(latent_count(other.header()), 0);
        assert_eq!(controls(other.header()), other.header().controls);
    }
    let mut pipeline =
        Pipeline::new(&untrained_codec(1), &PipelineOptions::default()).expect("it plays");
    assert!(pipeline.set_control("latent4.offset", -4.0).is_ok());
    assert!(matches!(
        pipeline.set_control("latent4.offset", 5.0),
        Err(PipelineError::ControlRange { .. })
    ));
    assert!(matches!(
        pipeline.set_control("latent5.offset", 0.0),
        Err(PipelineError::UnknownControl { .. })
    ));
}

#[test]
fn latents_are_reported_as_decoded() {
    let model = untrained_codec(1);
    let input = sound(100 * HOP, SAMPLE_RATE);
    let (_, seen) = play(&model, &input, &[]);
    let encoded = whole(&model, "encode", &[&input]);
    for (hop, seen) in seen.iter().enumerate() {
        // The second of the hop's two frames.
        assert_eq!(
            seen[..],
            encoded[(2 * hop + 1) * LATENTS..][..LATENTS],
            "hop {hop}"
        );
    }
}

#[test]
fn latents_are_scaled_then_offset() {
    let model = untrained_codec(1);
    let input = sound(200 * HOP, SAMPLE_RATE);
    // Changes before the first sample apply at once.
    let bends = [(1.5, 0.0), (1.0, -0.7), (-2.0, 0.25), (0.0, 0.4)];
    let commands = (1..).zip(bends).flat_map(|(n, (scale, offset))| {
        [
            latent_command(0, n, "scale", scale),
            latent_command(0, n, "offset", offset),
        ]
    });
    let (heard, seen) = play(&model, &input, &commands.collect::<Vec<_>>());
    let mut bent = whole(&model, "encode", &[&input]);
    for frame in bent.chunks_exact_mut(LATENTS) {
        for (latent, (scale, offset)) in frame.iter_mut().zip(bends) {
            *latent = scale * *latent + offset;
        }
    }
    let expected = whole(&model, "decode", &[&bent]);
    assert!(heard == expected[..heard.len()]);
    assert_eq!(
        seen.last().expect("it played")[..],
        bent[bent.len() - LATENTS..]
    );
    assert!(heard != play(&model, &input, &[]).0);
}

#[test]
fn a_held_latent_stays_until_it_is_released() {
    const HELD: usize = 20_000;
    const FREE: usize = 60_000;
    let model = untrained_codec(1);
    let input = sound(800 * HOP, SAMPLE_RATE);
    let hold = |value| {
        (1..=LATENTS).map(move |latent| {
            latent_command(if value > 0.0 { HELD } else { FREE }, latent, "hold", value)
        })
    };
    let (free, _) = play(&model, &input, &[]);
    let (heard, seen) = play(
        &model,
        &input,
        &hold(1.0).chain(hold(0.0)).collect::<Vec<_>>(),
    );
    assert!(heard[..HELD] == free[..HELD]);
    // The last frame before the hold.
    let begins = HELD.next_multiple_of(HOP);
    let encoded = whole(&model, "encode", &[&input]);
    let held = &encoded[(begins / RATIO - 1) * LATENTS..][..LATENTS];
    for seen in &seen[(HELD + SETTLED) / HOP..FREE / HOP] {
        assert_eq!(seen[..], *held);
    }
    let constant = whole(&model, "decode", &[&held.repeat(200)]);
    let period = &constant[constant.len() - RATIO..];
    let held_sound = &heard[(HELD + SETTLED).next_multiple_of(HOP)..FREE];
    assert!(
        held_sound.chunks_exact(RATIO).all(|frame| frame == period),
        "what is held is not what was there"
    );
    // Afterwards the output is unchanged.
    assert!(heard[FREE + SETTLED..] == free[FREE + SETTLED..]);
    // Held from the start, it is the first frame.
    let from_the_start: Vec<TimedCommand> = hold(1.0)
        .map(|command| TimedCommand { at: 0, ..command })
        .collect();
    let (_, seen) = play(&model, &input, &from_the_start);
    assert!(seen.iter().all(|seen| seen[..] == encoded[..LATENTS]));
}

#[test]
fn latent_controls_move_without_a_step() {
    const AT: usize = 9_700;
    let model = untrained_codec(1);
    // In silence only the control moves the latents.
    let input = vec![0.0; 400 * HOP];
    let (_, seen) = play(
        &model,
        &input,
        &[
            latent_command(AT, 2, "offset", 3.0),
            latent_command(AT, 3, "scale", 4.0),
        ],
    );
    let path = |latent: usize| seen.iter().map(|seen| seen[latent]).collect::<Vec<_>>();
    let (rest, first, second) = (path(0), path(1), path(2));
    let begins = AT.div_ceil(HOP);
    // After the encoder's start.
    let still = 10;
    assert!(rest[still..].iter().all(|latent| *latent == rest[still]));
    for (path, end) in [(&first, first[still] + 3.0), (&second, 4.0 * second[still])] {
        assert!(
            path[still..begins]
                .iter()
                .all(|latent| *latent == path[still])
        );
        let way = end - path[still];
        let gone: Vec<f32> = path[begins..]
            .iter()
            .map(|latent| (latent - path[still]) / way)
            .collect();
        assert!(gone.is_sorted(), "{gone:?}");
        // A hop is two thirds of the 4 ms in which a control goes a quarter of the way.
        assert!((gone[0] - 0.175).abs() < 1e-3, "{}", gone[0]);
        let settled = path[begins + SETTLED / HOP..].iter();
        assert!(
            settled.clone().all(|latent| (latent - end).abs() < 1e-5),
            "{:?}",
            path.last()
        );
    }
}

/// Returns commands that keep most controls of the latents moving.
fn moving_latents(length: usize) -> Vec<TimedCommand> {
    let at = |index: usize| 37 + 401 * index;
    let command = |index: usize| {
        let (latent, value) = (1 + index % LATENTS, (index as f32).sin());
        let what = ["scale", "offset", "hold"][index % 3];
        latent_command(
            at(index),
            latent,
            what,
            if what == "hold" { value.abs() } else { value },
        )
    };
    (0..)
        .take_while(|index| at(*index) < length)
        .map(command)
        .collect()
}

#[test]
fn several_hops_in_a_step_equal_single_hops() {
    let model = untrained_codec(1);
    let length = 300 * HOP;
    let (input, commands) = (sound(length, SAMPLE_RATE), moving_latents(length));
    let (single, _) = play(&model, &input, &commands);
    for longest in [length, 8192, 1000, 3 * HOP] {
        let mut playable = build_playable(&model, &PipelineOptions::default()).expect("it plays");
        commands
            .iter()
            .for_each(|command| playable.handle(0, *command).expect("there is room"));
        let mut heard = vec![0.0; length];
        let (mut input, mut output) = (&input[..], &mut heard[..]);
        for part in random_splits(4, length, longest) {
            let (piece, made);
            (piece, input) = input.split_at(part);
            (made, output) = output.split_at_mut(part);
            playable.process(&mut [ProcessRequest::mono(0, piece, made)]);
        }
        assert!(
            heard[playable.latency_samples()..] == single,
            "blocks of up to {longest}"
        );
    }
}

#[test]
fn sessions_of_a_batch_may_have_several_hops_each() {
    let model = untrained_codec(1);
    let lengths = [40 * HOP, 13 * HOP];
    let input = sound(lengths[0], SAMPLE_RATE);
    let alone = lengths.map(|length| play(&model, &input[..length], &moving_latents(length)).0);
    let options = PipelineOptions {
        sessions: 2,
        ..PipelineOptions::default()
    };
    let mut playable = build_playable(&model, &options).expect("it plays");
    let mut heard = lengths.map(|length| vec![0.0; length]);
    for (slot, length) in lengths.into_iter().enumerate() {
        moving_latents(length)
            .into_iter()
            .for_each(|command| playable.handle(slot, command).expect("there is room"));
    }
    let mut requests: Vec<_> = heard
        .iter_mut()
        .zip(lengths)
        .enumerate()
        .map(|(slot, (output, length))| ProcessRequest::mono(slot, &input[..length], output))
        .collect();
    playable.process(&mut requests);
    for (heard, alone) in heard.iter().zip(alone) {
        assert!(heard[playable.latency_samples()..] == alone);
    }
}

#[test]
fn every_driver_reports_and_transforms_latents() {
    let wave = Wave {
        frequency: 0.01,
        peak: 0.4,
    };
    for driver in [
        Driver::Inline,
        Driver::Worker { latency: None },
        Driver::Offline,
    ] {
        let playable_model =
            PlayableModel::new(Arc::new(untrained_codec(1)), PipelineOptions::default())
                .expect("it plays");
        let mut host = Host::new(playable_model, driver, 480);
        host.input = Some(wave);
        let mut values = vec![1.0; 9];
        host.controller.latents(&mut values);
        assert_eq!(values, [0.0; LATENTS], "{driver:?}: nothing was played yet");
        host.play(50);
        host.controller.latents(&mut values);
        let before = values.clone();
        assert!(before.len() == LATENTS && before.iter().all(|latent| *latent != 0.0));
        let id = |what: &str| ControlId::new(&format!("latent2.{what}"));
        let turn = |id, value| BlockCommand {
            offset: 3,
            action: Action::Control { id, value },
        };
        host.process(&[turn(id("scale"), 0.0), turn(id("offset"), 2.5)]);
        host.play(50);
        host.controller.latents(&mut values);
        assert_eq!(values[1], 2.5, "{driver:?}");
        // Controls stay when the driver changes.
        let other = if driver == Driver::Inline {
            Driver::Worker { latency: None }
        } else {
            Driver::Inline
        };
        host.controller.set_driver(other);
        host.play_until_swapped();
        host.controller.latents(&mut values);
        assert_eq!(values[1], 2.5, "{driver:?}");
        let instrument = PlayableModel::new(
            Arc::new(untrained_instrument(1)),
            PipelineOptions::default(),
        )
        .expect("it plays");
        host.swap(instrument);
        host.controller.latents(&mut values);
        assert!(values.is_empty(), "{driver:?}: an instrument has none");
    }
}

#[test]
fn without_a_model_there_are_no_latents() {
    let controller = SessionController::new();
    let mut values = vec![1.0];
    controller.latents(&mut values);
    assert!(values.is_empty());
    let session = controller
        .activate(Setup {
            sample_rate: 48_000,
            max_block: 64,
        })
        .expect("a sound setup");
    values.push(1.0);
    controller.latents(&mut values);
    assert!(values.is_empty());
    drop(session);
}

/// Returns a codec with a recurrent prior, fed by the control `drive`, in blocks of three frames.
fn codec_with_prior(kind: Kind) -> Model {
    let nodes = vec![
        node(
            "walk",
            &["drive"],
            Op::Gru(Gru {
                hidden: 9,
                initial_state: true,
            }),
        ),
        node("dreamt", &["walk"], Op::Linear(Linear { outputs: LATENTS })),
    ];
    let mut methods = codec_methods();
    methods.push(method(
        "prior",
        3 * RATIO,
        vec![port("drive", 1, RATIO)],
        nodes,
    ));
    if kind == Kind::Generator {
        methods.remove(0);
    }
    model_with(kind, methods, &["drive"], 3)
}

fn turn(at: usize, name: &str, value: f32) -> TimedCommand {
    TimedCommand {
        at: at as u64,
        action: Action::Control {
            id: ControlId::new(name),
            value,
        },
    }
}

/// Plays one slot with the given commands, in pieces of the given lengths.
fn play_slot(
    playable: &mut dyn Playable,
    slot: usize,
    commands: &[TimedCommand],
    pieces: &[usize],
) -> Vec<f32> {
    commands
        .iter()
        .for_each(|command| playable.handle(slot, *command).expect("there is room"));
    let mut heard = vec![0.0; pieces.iter().sum()];
    let mut rest = &mut heard[..];
    for &piece in pieces {
        let (output, later) = rest.split_at_mut(piece);
        playable.process(&mut [ProcessRequest::mono(slot, &[], output)]);
        rest = later;
    }
    heard
}

#[test]
fn a_prior_plays_at_a_tempo() {
    let model = codec_with_prior(Kind::Generator);
    let hop = 6 * RATIO;
    let frames = whole(&model, "prior", &[&[1.0; 600]]);
    let frame = |number: usize| &frames[number * LATENTS..][..LATENTS];
    let last = |tempo: f32, hops: usize| {
        let mut playable = build_playable(&model, &PipelineOptions::default()).expect("it plays");
        play_slot(
            &mut *playable,
            0,
            &[turn(0, "prior.tempo", tempo)],
            &vec![hop; hops],
        );
        playable.latents(0).to_vec()
    };
    for hops in [1, 2, 9] {
        let decoded = 6 * hops - 1;
        assert_eq!(last(1.0, hops), frame(decoded), "as fast as ever");
        assert_eq!(last(4.0, hops), frame(4 * decoded), "frames are passed by");
        let (before, after) = (frame(decoded / 2), frame(decoded / 2 + 1));
        for ((value, before), after) in last(0.5, hops).iter().zip(before).zip(after) {
            assert!(
                (value - 0.5 * (before + after)).abs() < 1e-6,
                "between two frames"
            );
        }
    }
    // The range is clamped.
    assert_eq!(last(0.0, 9), last(0.25, 9));
}

#[test]
fn a_prior_does_not_depend_on_pieces_and_other_slots() {
    let length = 40 * 6 * RATIO;
    for kind in [Kind::Generator, Kind::Codec] {
        let model = codec_with_prior(kind);
        let build = |sessions| {
            build_playable(
                &model,
                &PipelineOptions {
                    sessions,
                    ..PipelineOptions::default()
                },
            )
            .expect("it plays")
        };
        let commands_of = |slot: usize| {
            let tempo = [1.0, 0.3, 3.7][slot];
            let mut commands = vec![turn(0, "prior", 0.8), turn(0, "prior.tempo", tempo)];
            commands.extend([
                turn(5_000, "drive", 3.0),
                turn(7_001, "prior.tempo", 1.9),
                turn(9_000, "prior", 0.0),
            ]);
            commands.push(turn(12_000, "prior", 1.0));
            commands
        };
        let alone: Vec<Vec<f32>> = (0..3)
            .map(|slot| play_slot(&mut *build(1), 0, &commands_of(slot), &[length]))
            .collect();
        assert!(alone[0] != alone[1] && alone[1] != alone[2]);
        assert!(
            alone
                .iter()
                .all(|heard| heard.iter().all(|sample| sample.is_finite()))
        );
        for seed in 0..3 {
            let mut together = build(3);
            for slot in [2, 0, 1] {
                commands_of(slot)
                    .iter()
                    .for_each(|command| together.handle(slot, *command).expect("there is room"));
            }
            let mut heard = vec![vec![0.0; length]; 3];
            let mut at = 0;
            for piece in random_splits(seed, length, 1_000) {
                let turns = heard.iter_mut().enumerate().map(|(slot, heard)| {
                    ProcessRequest::mono(slot, &[], &mut heard[at..at + piece])
                });
                together.process(&mut turns.collect::<Vec<_>>());
                at += piece;
            }
            assert!(heard == alone, "{kind:?}, {seed}");
            // A reopened slot starts from empty state.
            together.open(1, &SessionStart::default());
            assert!(
                play_slot(&mut *together, 1, &commands_of(1), &[length]) == alone[1],
                "{kind:?}, {seed}, anew"
            );
        }
    }
}
