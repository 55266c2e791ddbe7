//! Effects and codecs play exactly what their methods compute, after the reported latency,
//! separately for each session.

use std::sync::Arc;

use ondes_engine::model::{Activation, Control, Kind, Method, Model, Op, Tensor};
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d, Linear};
use ondes_engine::pipeline::{
    Action, ControlId, InputChannels, Pipeline, PipelineOptions, ProcessRequest, SessionStart,
    TimedCommand, Transport, build_playable,
};
use ondes_engine::realtime::{ModelFactory, PlayableModel};
use ondes_tests::audio_models::{
    EFFECT_BLOCK, LATENTS, RATIO, codec_methods, control, effect_methods, method, model_with,
    sound, untrained_codec, untrained_effect, whole,
};
use ondes_tests::{SAMPLE_RATE, header, node, port, random_events, random_splits, random_weights};

fn conv(outputs: usize, kernel: usize) -> Op {
    Op::Conv1d(Conv1d::new(outputs, kernel))
}

fn play(model: &Model, sample_rate: u32, input: &[f32]) -> (Vec<f32>, Pipeline) {
    let options = PipelineOptions {
        sample_rate,
        ..PipelineOptions::default()
    };
    let mut pipeline = Pipeline::new(model, &options).expect("it plays");
    let mut heard = vec![f32::NAN; input.len()];
    pipeline.process(input, &mut heard);
    assert_eq!(pipeline.samples_missing(), 0);
    (heard, pipeline)
}

/// Returns the output at the model's rate, and the latency.
fn render(model: &Model, input: &[f32]) -> (Vec<f32>, usize) {
    let (heard, pipeline) = play(model, SAMPLE_RATE, input);
    (heard, pipeline.latency_samples())
}

#[test]
fn an_effect_is_its_method_shifted_by_the_latency() {
    let input = sound(100 * EFFECT_BLOCK, SAMPLE_RATE);
    let model = untrained_effect(1);
    let (heard, latency) = render(&model, &input);
    assert_eq!(latency, EFFECT_BLOCK - 1);
    assert!(heard[..latency].iter().all(|sample| *sample == 0.0));
    let expected = whole(&model, "forward", &[&input, &vec![1.0; input.len()]]);
    assert!(heard[latency..] == expected[..input.len() - latency]);
}

#[test]
fn a_codec_is_both_methods_shifted_by_the_latency() {
    let input = sound(200 * RATIO, SAMPLE_RATE);
    let model = untrained_codec(1);
    let (heard, latency) = render(&model, &input);
    // Two encoder blocks make one decoder block.
    assert_eq!(latency, 2 * RATIO - 1);
    assert!(heard[..latency].iter().all(|sample| *sample == 0.0));
    let expected = whole(&model, "decode", &[&whole(&model, "encode", &[&input])]);
    assert!(heard[latency..] == expected[..input.len() - latency]);
}

#[test]
fn a_spread_codec_is_the_same_one_hop_later() {
    const HOP: usize = 2 * RATIO;
    let model = untrained_codec(1);
    let input = sound(200 * RATIO, SAMPLE_RATE);
    for channels in [InputChannels::Mono, InputChannels::Stereo] {
        let play = |spread, seed| {
            let options = PipelineOptions {
                spread,
                channels,
                ..PipelineOptions::default()
            };
            let mut playable = build_playable(&model, &options).expect("it plays");
            for (at, value) in [(2_000, 0.3), (5_000, 2.0), (5_030, -1.0)] {
                let action = Action::Control {
                    id: ControlId::new("latent1.scale"),
                    value,
                };
                playable
                    .handle(0, TimedCommand { at, action })
                    .expect("there is room");
            }
            let mut sides = [(); 2].map(|()| vec![0.0; input.len()]);
            let mut at = 0;
            for length in random_splits(seed, input.len(), 3 * HOP) {
                let block = at..at + length;
                let output = sides.each_mut().map(|side| &mut side[block.clone()]);
                let input = [&input[block.clone()]; 2];
                playable.process(&mut [ProcessRequest {
                    slot: 0,
                    input,
                    output,
                    mute: false,
                }]);
                at += length;
            }
            (sides, playable.latency_samples())
        };
        let ((now, latency), (later, later_latency)) = (play(false, 1), play(true, 2));
        assert_eq!(later_latency, latency + HOP);
        assert!(now[0].iter().any(|sample| sample.abs() > 1e-3));
        for (now, later) in now.iter().zip(&later) {
            assert!(later[..HOP].iter().all(|sample| *sample == 0.0));
            assert!(later[HOP..] == now[..now.len() - HOP], "{channels:?}");
        }
    }
}

#[test]
fn all_channels_get_the_input_and_are_mixed() {
    let nodes = vec![node(
        "mixed",
        &["in"],
        Op::Conv1d(Conv1d::new(4, 3).grouped(2)),
    )];
    let model = model_with(
        Kind::Effect,
        vec![method("forward", 8, vec![port("in", 2, 1)], nodes)],
        &[],
        4,
    );
    let input = sound(8_000, SAMPLE_RATE);
    let (heard, latency) = render(&model, &input);
    let stereo: Vec<f32> = input.iter().flat_map(|&sample| [sample, sample]).collect();
    let expected = whole(&model, "forward", &[&stereo]);
    let mean = expected
        .chunks_exact(4)
        .map(|frame| 0.25 * frame.iter().sum::<f32>());
    assert!(
        heard[latency..]
            .iter()
            .zip(mean)
            .all(|(heard, mean)| *heard == mean)
    );
}

#[test]
fn delays_of_layers_are_part_of_the_latency() {
    let mut methods = codec_methods();
    let nodes = vec![
        node("bands", &["z"], Op::Linear(Linear { outputs: 9 })),
        node(
            "magnitudes",
            &["bands"],
            Op::Activation(Activation::Sigmoid),
        ),
        node("audio", &["magnitudes"], Op::FilteredNoise),
    ];
    methods[1] = method("decode", RATIO, vec![port("z", LATENTS, RATIO)], nodes);
    let model = model_with(Kind::Codec, methods, &[], 1);
    let pipeline = Pipeline::new(&model, &PipelineOptions::default()).expect("it plays");
    // The noise is delayed by one frame.
    assert_eq!(pipeline.latency_samples(), RATIO - 1 + RATIO);
}

#[test]
fn slots_of_a_batch_are_independent() {
    for (model, knob) in [
        (untrained_effect(1), "drive"),
        (untrained_codec(1), "latent3.hold"),
    ] {
        for sample_rate in [44_100, SAMPLE_RATE] {
            let options = PipelineOptions {
                sample_rate,
                sessions: 3,
                ..PipelineOptions::default()
            };
            let input = sound(12_000, sample_rate);
            let inputs = [0.2_f32, 1.0, -3.0]
                .map(|gain| input.iter().map(|x| gain * x).collect::<Vec<f32>>());
            let turn = |at: usize| TimedCommand {
                at: at as u64,
                action: Action::Control {
                    id: ControlId::new(knob),
                    value: 0.7,
                },
            };
            let alone: [Vec<f32>; 3] = std::array::from_fn(|slot| {
                let mut one = build_playable(
                    &model,
                    &PipelineOptions {
                        sessions: 1,
                        ..options
                    },
                )
                .expect("it plays");
                one.handle(0, turn(1_000 * slot)).expect("there is room");
                let mut heard = vec![0.0; input.len()];
                one.process(&mut [ProcessRequest::mono(0, &inputs[slot], &mut heard)]);
                heard
            });
            let mut all = build_playable(&model, &options).expect("it plays");
            assert_eq!(all.capacity(), 3);
            let mut heard = [(); 3].map(|()| vec![0.0; input.len()]);
            (0..3).for_each(|slot| all.handle(slot, turn(1_000 * slot)).expect("there is room"));
            let mut splits =
                [1, 2, 3].map(|seed| random_splits(seed, input.len(), 700).into_iter());
            let mut at = [0; 3];
            // Each slot advances by another number of samples, and sometimes one is left out.
            for round in 0.. {
                let mut turns = Vec::new();
                for (slot, heard) in heard
                    .iter_mut()
                    .enumerate()
                    .filter(|(slot, _)| round % 5 != *slot)
                {
                    let length = splits[slot].next().unwrap_or(0);
                    let span = at[slot]..at[slot] + length;
                    at[slot] += length;
                    turns.push(ProcessRequest::mono(
                        slot,
                        &inputs[slot][span.clone()],
                        &mut heard[span],
                    ));
                }
                all.process(&mut turns);
                if at.iter().all(|at| *at == input.len()) {
                    break;
                }
            }
            assert!(heard == alone, "{knob} at {sample_rate} Hz");
        }
    }
}

#[test]
fn a_reopened_slot_starts_from_empty_state() {
    for (model, knob) in [
        (untrained_effect(1), "drive"),
        (untrained_codec(1), "latent3.scale"),
    ] {
        for sample_rate in [44_100, SAMPLE_RATE] {
            let options = PipelineOptions {
                sample_rate,
                ..PipelineOptions::default()
            };
            let mut playable = build_playable(&model, &options).expect("it plays");
            let input = sound(9_000, sample_rate);
            let mut takes = Vec::new();
            for start in [0, 0, 12_345, 1 << 40] {
                playable.open(
                    0,
                    &SessionStart {
                        at: start,
                        ..SessionStart::default()
                    },
                );
                assert!(playable.latents(0).iter().all(|latent| *latent == 0.0));
                // A latent held from the start keeps its first value.
                for (at, knob, value) in [(0, "latent1.hold", 1.0), (1_000, knob, 0.3)] {
                    let action = Action::Control {
                        id: ControlId::new(knob),
                        value,
                    };
                    playable
                        .handle(
                            0,
                            TimedCommand {
                                at: start + at,
                                action,
                            },
                        )
                        .expect("there is room");
                }
                let mut heard = vec![0.0; input.len()];
                playable.process(&mut [ProcessRequest::mono(0, &input, &mut heard)]);
                takes.push(heard);
            }
            assert!(
                takes.iter().all(|take| *take == takes[0]),
                "{knob} at {sample_rate} Hz"
            );
        }
    }
}

#[test]
fn the_reported_tail_is_exact() {
    const SOUNDING: usize = 10_007;
    for model in [untrained_effect(1), untrained_codec(1)] {
        for sample_rate in [32_000, SAMPLE_RATE, 96_000] {
            let mut input = sound(30_000, sample_rate);
            input[SOUNDING..].fill(0.0);
            let (heard, pipeline) = play(&model, sample_rate, &input);
            // Biases sound in silence, too.
            let (silence, _) = play(&model, sample_rate, &vec![0.0; input.len()]);
            let end = SOUNDING + pipeline.latency_samples() + pipeline.tail_samples();
            let last = heard
                .iter()
                .zip(&silence)
                .rposition(|(a, b)| (a - b).abs() > 1e-6)
                .expect("it is heard");
            let kind = model.header().kind;
            assert!(
                last < end,
                "{kind:?} at {sample_rate} Hz: {last} is after {end}"
            );
            if sample_rate == SAMPLE_RATE {
                // Nor much longer: only the position of the input's end within the layers' frames
                // is unknown.
                assert!(
                    last + 4 * RATIO >= end,
                    "{kind:?}: {last} is long before {end}"
                );
            }
        }
    }
}

/// Multiplies a constant by a control, so that the output is the path of the control.
#[test]
fn a_control_moves_from_its_sample_on_without_a_step() {
    const AT: usize = 10_001;
    let nodes = vec![node("out", &["in", "gain"], Op::Multiply)];
    let ports = vec![port("in", 1, 1), port("gain", 1, 1)];
    for block in [16, 64, 2048] {
        let methods = vec![method("forward", block, ports.clone(), nodes.clone())];
        let model = model_with(Kind::Effect, methods, &["gain"], 1);
        let mut playable = build_playable(&model, &PipelineOptions::default()).expect("it plays");
        let id = ControlId::new("gain");
        // Beyond the range.
        playable
            .handle(
                0,
                TimedCommand {
                    at: AT as u64,
                    action: Action::Control { id, value: 9.0 },
                },
            )
            .expect("there is room");
        let mut heard = vec![0.0; 40_000];
        playable.process(&mut [ProcessRequest::mono(0, &[1.0; 40_000], &mut heard)]);
        let path = &heard[playable.latency_samples()..];
        // Controls are read every 64 samples, or once per longer block.
        let begins = AT.next_multiple_of(block.max(64));
        assert!(
            path[..begins].iter().all(|gain| *gain == 1.0),
            "in blocks of {block}"
        );
        assert!(
            path[begins..].is_sorted() && path[begins] > 1.0,
            "in blocks of {block}"
        );
        let arrives = begins + (0.3 * f64::from(SAMPLE_RATE)) as usize;
        assert!(
            path[arrives..].iter().all(|gain| *gain == 4.0),
            "in blocks of {block}"
        );
        // A quarter of the way in the first 4 ms (192 samples), slightly more with shorter blocks.
        let steepest = path
            .windows(2)
            .fold(0.0_f32, |most, pair| most.max(pair[1] - pair[0]));
        assert!(
            (5e-4..3.0 * 0.29 / 192.0).contains(&steepest),
            "{steepest} in blocks of {block}"
        );
    }
}

#[test]
fn tempo_and_position_reach_effects() {
    const BLOCK: usize = 64;
    let ports = vec![
        port("in", 1, 1),
        port("tempo", 1, BLOCK),
        port("position", 1, BLOCK),
    ];
    let nodes = vec![
        node(
            "beat",
            &["tempo"],
            Op::Affine(Affine {
                scale: 1e-3,
                offset: 0.0,
            }),
        ),
        node("both", &["beat", "position"], Op::Add),
        node(
            "out",
            &["both"],
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 1,
                kernel: BLOCK,
                stride: BLOCK,
            }),
        ),
    ];
    let methods = vec![method("forward", BLOCK, ports, nodes)];
    let mut weights = random_weights(&methods, 1);
    weights.insert("out.weight", Tensor::new(&[1, 1, BLOCK], vec![1.0; BLOCK]));
    weights.insert("out.bias", Tensor::new(&[1], vec![0.0]));
    let mut header = header(Kind::Effect, methods);
    header.controls.extend(["tempo", "position"].map(|name| {
        let control = control(name);
        Control {
            max: 1_000.0,
            ..control
        }
    }));
    let model = Model::new(header, weights).expect("it fits");
    let mut playable = build_playable(&model, &PipelineOptions::default()).expect("it plays");
    let song = Transport {
        tempo: 120.0,
        position: 8.0,
        playing: true,
    };
    playable
        .handle(
            0,
            TimedCommand {
                at: 6_400,
                action: Action::Transport(song),
            },
        )
        .expect("there is room");
    let mut heard = vec![0.0; 20_000];
    playable.process(&mut [ProcessRequest::mono(0, &[], &mut heard)]);
    let heard = &heard[playable.latency_samples()..];
    // An unchanged control is at 1.
    assert!(heard[..6_400].iter().all(|value| *value == 1.001));
    for (n, value) in heard.iter().enumerate().skip(6_464) {
        let beats = 8.0 + 2.0 * ((n - n % BLOCK - 6_400) as f32 / SAMPLE_RATE as f32);
        assert!((value - 0.12 - beats).abs() < 1e-4, "sample {n}: {value}");
    }
}

#[test]
fn effects_ignore_notes() {
    let model = Arc::new(untrained_effect(1));
    let playable_model =
        PlayableModel::new(model.clone(), PipelineOptions::default()).expect("it plays");
    assert!(playable_model.uses_audio_input() && playable_model.worst_case_load().is_empty());
    let input = sound(3_000, SAMPLE_RATE);
    let mut pipeline = Pipeline::new(&model, &PipelineOptions::default()).expect("it plays");
    for event in random_events(1, 3_000) {
        pipeline.handle(event).expect("nothing waits");
    }
    let mut heard = vec![0.0; 3_000];
    pipeline.process(&input, &mut heard);
    assert!(heard == render(&model, &input).0);
    assert_eq!((pipeline.sounding(), pipeline.notes_dropped()), (0, 0));
}

fn refused(kind: Kind, methods: Vec<Method>, controls: &[&str]) -> String {
    let model = model_with(kind, methods, controls, 1);
    match build_playable(&model, &PipelineOptions::default()) {
        Ok(_) => panic!("it plays"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn invalid_effects_and_codecs_are_refused_with_a_reason() {
    assert_eq!(
        refused(Kind::Effect, codec_methods(), &[]),
        "the model has no method \"forward\""
    );
    assert_eq!(
        refused(Kind::Codec, effect_methods(), &["drive"]),
        "the model has no method \"decode\""
    );
    // No control feeds the input `drive`.
    let two = refused(Kind::Effect, effect_methods(), &[]);
    assert_eq!(
        two,
        "method \"forward\" has 2 inputs that no control feeds; exactly one is needed"
    );
    let none = refused(Kind::Effect, effect_methods(), &["drive", "in"]);
    assert_eq!(
        none,
        "method \"forward\" has 0 inputs that no control feeds; exactly one is needed"
    );
    let slow = vec![method(
        "forward",
        64,
        vec![port("in", 1, 64)],
        vec![node("out", &["in"], conv(1, 1))],
    )];
    assert_eq!(
        refused(Kind::Effect, slow, &[]),
        "method \"forward\" has ratio 64 at audio port \"in\"; it must be 1"
    );
    let [encode, decode]: [Method; 2] = codec_methods().try_into().expect("two");
    let up = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 1,
        kernel: 64,
        stride: 64,
    });
    let other = method(
        "decode",
        64,
        vec![port("z", 3, 64)],
        vec![node("up", &["z"], up)],
    );
    let odd = refused(Kind::Codec, vec![encode.clone(), other], &[]);
    assert_eq!(
        odd,
        "encode makes 4 latents at ratio 64, decode takes 3 at 64"
    );
    // The common multiple of both blocks exceeds the limit.
    let blocks = vec![
        Method {
            block: 64 * 1021,
            ..encode
        },
        Method {
            block: 64 * 1019,
            ..decode
        },
    ];
    assert!(refused(Kind::Codec, blocks, &[]).contains("more than the limit"));
    let generator = refused(Kind::Generator, effect_methods(), &[]);
    assert_eq!(generator, "the model has no method \"decode\"");
}
