//! Stereo sessions: a mono model processes each channel as a session of its own would, a stereo
//! model both.

use std::sync::Arc;

use ondes_engine::instrument::{Event, EventKind};
use ondes_engine::model::{Kind, Method, Model, Op, Tensor, Weights, file};
use ondes_engine::ops::{Affine, Conv1d, ConvTranspose1d, Convolve};
use ondes_engine::pipeline::{
    Action, ControlId, ControlSource, InputChannels, Pipeline, PipelineOptions,
};
use ondes_engine::realtime::{
    BlockCommand, Driver, LoadStatus, ModelFactory, PlayableModel, Session, SessionController,
    Setup,
};
use ondes_tests::audio_models::{
    codec_methods, effect_methods, method, model_with, sound, untrained_codec, untrained_effect,
};
use ondes_tests::{
    bundled_file, header, instrument_methods, node, port, random_splits, random_weights, seeded_rng,
};
use rand::RngExt as _;

use crate::exclusive;

const RATE: u32 = 48_000;
const MAX_BLOCK: usize = 512;
const DRIVERS: [Driver; 3] = [
    Driver::Offline,
    Driver::Inline,
    Driver::Worker { latency: None },
];

/// Opens a session that waits for its worker.
fn open(
    model: &Arc<Model>,
    driver: Driver,
    options: PipelineOptions,
) -> (SessionController, Session) {
    let controller = SessionController::new();
    controller.set_driver(driver);
    controller.set_non_realtime(true);
    load(&controller, model, options);
    let setup = Setup {
        sample_rate: options.sample_rate,
        max_block: MAX_BLOCK,
    };
    let session = controller.activate(setup).expect("a sound setup");
    assert_eq!(controller.status(), LoadStatus::Ready);
    (controller, session)
}

fn load(controller: &SessionController, model: &Arc<Model>, options: PipelineOptions) {
    let factory: Arc<dyn ModelFactory> =
        Arc::new(PlayableModel::new(model.clone(), options).expect("it plays"));
    controller.load(Box::new(move || Ok(factory)), &[]);
    while controller.status() == LoadStatus::Loading {
        std::thread::yield_now();
    }
}

/// Plays an input in random blocks while a control moves; returns the output, aligned with the
/// input.
fn play(
    model: &Arc<Model>,
    driver: Driver,
    options: PipelineOptions,
    input: [&[f32]; 2],
    control: &str,
) -> [Vec<f32>; 2] {
    let (controller, mut session) = open(model, driver, options);
    let length = input[0].len();
    let mut output = [(); 2].map(|()| vec![f32::NAN; length]);
    let mut start = 0;
    for (index, block) in random_splits(3, length, 2 * MAX_BLOCK)
        .into_iter()
        .enumerate()
    {
        let range = start..start + block;
        let action = Action::Control {
            id: ControlId::new(control),
            value: (index % 5) as f32 * 0.3,
        };
        let commands = [BlockCommand {
            offset: block / 2,
            action,
        }];
        // Moves with time rather than with blocks, so that it is the same for all latencies.
        let commands = if index % 7 == 0 { &commands[..] } else { &[] };
        let [left, right] = &mut output;
        session.process(
            commands,
            &input.map(|side| &side[range.clone()]),
            &mut [&mut left[range.clone()], &mut right[range.clone()]],
        );
        start = range.end;
    }
    let health = controller.health().expect("a model plays");
    assert_eq!(
        (health.dropouts, health.invalid_blocks, health.commands_lost),
        (0, 0, 0)
    );
    output.map(|side| side[session.latency_samples().min(length)..].to_vec())
}

/// Returns two different sounds of one length.
fn two_sounds(length: usize) -> [Vec<f32>; 2] {
    let sound = sound(length + 5_000, RATE);
    [
        sound[..length].to_vec(),
        sound[5_000..].iter().map(|sample| -0.7 * sample).collect(),
    ]
}

/// Returns whether both sounds agree to the bit as far as both reach, and reach far; the drivers'
/// latencies differ.
fn is_same(found: &[f32], expected: &[f32]) -> bool {
    let length = found.len().min(expected.len());
    let bits = |sound: &[f32]| {
        sound[..length]
            .iter()
            .map(|sample| sample.to_bits())
            .collect::<Vec<_>>()
    };
    length > 5_000
        && expected.iter().any(|sample| sample.abs() > 1e-3)
        && bits(found) == bits(expected)
}

#[test]
fn a_mono_model_on_two_channels_is_two_mono_models() {
    let _alone = exclusive();
    let bundled = |name| file::read(&bundled_file(name)).expect("bundled models are whole");
    let [left, right] = two_sounds(24_000);
    for (name, model, control, oversampling) in [
        ("effect", untrained_effect(1), "drive", 1),
        ("oversampled effect", untrained_effect(1), "drive", 2),
        ("codec", untrained_codec(2), "latent2.offset", 1),
        ("capture", bundled("triode"), "", 1),
        ("overdrive", bundled("overdrive"), "", 1),
    ] {
        let model = Arc::new(model);
        for sample_rate in [RATE, 44_100] {
            let options = PipelineOptions {
                sample_rate,
                oversampling: Some(oversampling),
                seed: 4,
                ..PipelineOptions::default()
            };
            let stereo = PipelineOptions {
                channels: InputChannels::Stereo,
                ..options
            };
            let alone = [&left, &right]
                .map(|side| play(&model, Driver::Offline, options, [side, side], control));
            for driver in DRIVERS {
                let both = play(&model, driver, stereo, [&left, &right], control);
                for (side, found) in both.iter().enumerate() {
                    assert!(
                        is_same(found, &alone[side][0]),
                        "{name}, side {side}, {driver:?} at {sample_rate} Hz"
                    );
                }
            }
        }
    }
}

#[test]
fn the_choice_of_channels_decides_what_is_processed() {
    let _alone = exclusive();
    let model = Arc::new(untrained_effect(1));
    let [left, right] = two_sounds(12_000);
    let mean: Vec<f32> = left
        .iter()
        .zip(&right)
        .map(|(left, right)| 0.5 * left + 0.5 * right)
        .collect();
    let options = |channels| PipelineOptions {
        channels,
        ..PipelineOptions::default()
    };
    for driver in DRIVERS {
        for (channels, processed) in [(InputChannels::Mono, &mean), (InputChannels::Left, &left)] {
            let expected = play(
                &model,
                Driver::Offline,
                options(InputChannels::Mono),
                [processed, processed],
                "drive",
            );
            let found = play(&model, driver, options(channels), [&left, &right], "drive");
            assert!(
                found.iter().all(|side| is_same(side, &expected[0])),
                "{channels:?}, {driver:?}"
            );
        }
    }
}

/// Returns a method's weights without biases, so that its layers are odd functions.
fn without_biases(methods: &[Method], seed: u64) -> Weights {
    let mut weights = random_weights(methods, seed);
    let shapes: Vec<(String, Vec<usize>)> = methods
        .iter()
        .flat_map(|method| {
            let shapes = method.infer().expect("it fits");
            let inputs: Vec<_> = shapes.node_inputs().collect();
            method
                .nodes
                .iter()
                .zip(inputs)
                .flat_map(|(node, inputs)| {
                    let specs = node
                        .op
                        .weights(&inputs)
                        .into_iter()
                        .filter(|spec| spec.name == "bias");
                    specs
                        .map(|spec| (format!("{}.{}", node.name, spec.name), spec.shape))
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        })
        .collect();
    for (name, shape) in shapes {
        let count = shape.iter().product();
        weights.insert(name, Tensor::new(&shape, vec![0.0; count]));
    }
    weights
}

#[test]
fn sides_that_cancel_do_so_after_an_odd_model() {
    let _alone = exclusive();
    let [left, _] = two_sounds(12_000);
    let right: Vec<f32> = left.iter().map(|sample| -sample).collect();
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..PipelineOptions::default()
    };
    for (kind, methods) in [
        (Kind::Effect, effect_methods()),
        (Kind::Codec, codec_methods()),
    ] {
        let weights = without_biases(&methods, 3);
        let header = model_with(kind, methods, &["drive"], 3).header().clone();
        let model = Arc::new(Model::new(header, weights).expect("a sound model"));
        for driver in DRIVERS {
            // A control that the model does not have, so that the latents are not shifted.
            let [left, right] = play(&model, driver, stereo, [&left, &right], "none");
            assert!(left.len() > 5_000 && left.iter().any(|sample| sample.abs() > 1e-3));
            // Also equal as numbers where the silence of one side is negative zero.
            assert!(
                left.iter().zip(&right).all(|(left, right)| *left == -right),
                "{kind:?}, {driver:?}"
            );
        }
    }
}

#[test]
fn equal_sides_stay_equal_and_one_channel_is_both() {
    let _alone = exclusive();
    let [left, _] = two_sounds(12_000);
    let options = PipelineOptions {
        seed: 9,
        ..PipelineOptions::default()
    };
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..options
    };
    for model in [untrained_effect(1), untrained_codec(2)].map(Arc::new) {
        let mono = play(&model, Driver::Inline, options, [&left, &left], "drive");
        let both = play(&model, Driver::Inline, stereo, [&left, &left], "drive");
        assert!(both.iter().all(|side| is_same(side, &mono[0])));
        let (_controller, mut session) = open(&model, Driver::Inline, stereo);
        let mut output = [(); 2].map(|()| vec![0.0; left.len()]);
        let [first, second] = &mut output;
        session.process(&[], &[&left], &mut [first, second]);
        assert!(session.is_stereo() && output[0] == output[1]);
    }
}

/// Returns an effect of one convolution whose weight from an input to an output channel is given.
fn mixing_effect(
    inputs: usize,
    outputs: usize,
    weight: impl Fn(usize, usize) -> f32,
) -> Arc<Model> {
    let mix = Op::Conv1d(Conv1d::new(outputs, 1));
    let methods = vec![method(
        "forward",
        64,
        vec![port("in", inputs, 1)],
        vec![node("audio", &["in"], mix)],
    )];
    let mut weights = without_biases(&methods, 1);
    let values = (0..outputs).flat_map(|output| (0..inputs).map(move |input| (output, input)));
    let values: Vec<f32> = values
        .map(|(output, input)| weight(output, input))
        .collect();
    weights.insert(
        "audio.weight".to_owned(),
        Tensor::new(&[outputs, inputs, 1], values),
    );
    let header = model_with(Kind::Effect, methods, &[], 1).header().clone();
    Arc::new(Model::new(header, weights).expect("a sound model"))
}

#[test]
fn a_stereo_model_hears_and_makes_both_channels() {
    let _alone = exclusive();
    let sides = two_sounds(12_000);
    let input = sides.each_ref().map(Vec::as_slice);
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..PipelineOptions::default()
    };
    let mixed = |left: f32, right: f32| -> Vec<f32> {
        sides[0]
            .iter()
            .zip(&sides[1])
            .map(|(l, r)| left * l + right * r)
            .collect()
    };
    let is_near = |found: &[f32], expected: &[f32]| {
        found.len() > 5_000
            && found
                .iter()
                .zip(expected)
                .all(|(found, expected)| (found - expected).abs() < 1e-6)
    };
    for driver in DRIVERS {
        // Crosses the channels over, at different gains.
        let crossed = mixing_effect(2, 2, |output, input| {
            if output == input {
                0.0
            } else {
                0.5 + input as f32
            }
        });
        let [left, right] = play(&crossed, driver, stereo, input, "");
        assert!(
            is_near(&left, &mixed(0.0, 1.5)) && is_near(&right, &mixed(0.5, 0.0)),
            "{driver:?}"
        );
        // One channel in: the mean of both. One channel out: on both sides.
        let widening = mixing_effect(1, 2, |output, _| 1.0 + output as f32);
        let [left, right] = play(&widening, driver, stereo, input, "");
        assert!(
            is_near(&left, &mixed(0.5, 0.5)) && is_near(&right, &mixed(1.0, 1.0)),
            "{driver:?}"
        );
        let folding = mixing_effect(2, 1, |_, input| 1.0 - 2.0 * input as f32);
        let output = play(&folding, driver, stereo, input, "");
        assert!(
            output.iter().all(|side| is_near(side, &mixed(1.0, -1.0))),
            "{driver:?}"
        );
        // A mono session hears the mean of the output's channels.
        let mono = PipelineOptions::default();
        let output = play(&crossed, driver, mono, input, "");
        assert!(
            output.iter().all(|side| is_near(side, &mixed(0.5, 0.5))),
            "{driver:?}"
        );
    }
}

/// Returns an instrument with these responses of its room, one per channel.
fn instrument_with_room(responses: &[&[f32]]) -> Arc<Model> {
    let mut methods = instrument_methods();
    let mut weights = random_weights(&methods[..1], 6);
    let names: Vec<String> = (0..responses.len())
        .map(|channel| format!("room{channel}"))
        .collect();
    let response = |name: &String| {
        node(
            name,
            &["dry"],
            Op::Convolve(Convolve {
                taps: responses[0].len(),
            }),
        )
    };
    let names_read: Vec<&str> = names.iter().map(String::as_str).collect();
    methods[1].nodes = names.iter().map(response).collect();
    methods[1].nodes.push(node("both", &names_read, Op::Concat));
    methods[1].outputs = vec![port("both", responses.len(), 1)];
    for (name, taps) in names.iter().zip(responses) {
        weights.insert(
            format!("{name}.impulse"),
            Tensor::new(&[taps.len()], taps.to_vec()),
        );
    }
    Arc::new(Model::new(header(Kind::Instrument, methods), weights).expect("a sound model"))
}

#[test]
fn a_room_of_two_channels_is_a_room_for_each() {
    let _alone = exclusive();
    let taps = |seed: u64| -> Vec<f32> {
        let mut random = seeded_rng(seed);
        (0..3_000)
            .map(|n| random.random_range(-0.05..0.05) * (-(n as f32) / 800.0).exp())
            .collect()
    };
    let (left, right) = (taps(1), taps(2));
    let stereo = instrument_with_room(&[&left, &right]);
    let alone = [
        instrument_with_room(&[&left]),
        instrument_with_room(&[&right]),
    ];
    let input = two_sounds(24_000);
    let input = input.each_ref().map(Vec::as_slice);
    for sample_rate in [RATE, 44_100] {
        let options = PipelineOptions {
            sample_rate,
            seed: 4,
            source: ControlSource::AudioInput,
            ..PipelineOptions::default()
        };
        // It follows the mean of both channels.
        let expected = alone
            .each_ref()
            .map(|model| play(model, Driver::Offline, options, input, "room"));
        assert!(expected[0][0] != expected[1][0]);
        for driver in DRIVERS {
            let found = play(&stereo, driver, options, input, "room");
            for (side, found) in found.iter().enumerate() {
                assert!(
                    is_same(found, &expected[side][0]),
                    "side {side}, {driver:?} at {sample_rate} Hz"
                );
            }
        }
        // Played by notes, and mixed to mono where one channel is asked for.
        let options = PipelineOptions {
            source: ControlSource::Notes,
            ..options
        };
        let render = |model: &Arc<Model>| {
            let mut pipeline = Pipeline::new(model, &options).expect("it plays");
            let kind = EventKind::NoteOn {
                channel: 0,
                key: 57,
                velocity: 0.8,
            };
            pipeline
                .handle(Event { at: 100, kind })
                .expect("there is room");
            pipeline
        };
        let mono = alone.each_ref().map(|model| {
            let mut sound = vec![0.0; 12_000];
            render(model).process(&[], &mut sound);
            sound
        });
        let mut sides = [(); 2].map(|()| vec![0.0; 12_000]);
        let [one, other] = &mut sides;
        render(&stereo).process_stereo([&[]; 2], [one, other]);
        assert!(
            is_same(&sides[0], &mono[0]) && is_same(&sides[1], &mono[1]),
            "at {sample_rate} Hz"
        );
        let mut mixed = vec![0.0; 12_000];
        render(&stereo).process(&[], &mut mixed);
        let mean: Vec<f32> = mono[0]
            .iter()
            .zip(&mono[1])
            .map(|(left, right)| 0.5 * (left + right))
            .collect();
        assert!(is_same(&mixed, &mean), "at {sample_rate} Hz");
    }
}

#[test]
fn a_stereo_codec_has_one_set_of_latents() {
    let _alone = exclusive();
    // The same encoder and decoder for two channels, whose halves are crossed over by a
    // convolution.
    let mut methods = codec_methods();
    methods[0].inputs[0].channels = 2;
    let last = methods[1].nodes.len() - 1;
    methods[1].nodes[last].op = Op::ConvTranspose1d(ConvTranspose1d {
        outputs: 2,
        kernel: 8,
        stride: 4,
    });
    methods[1].outputs[0].channels = 2;
    let model = Arc::new(model_with(Kind::Codec, methods, &[], 5));
    let sides = two_sounds(12_000);
    let input = sides.each_ref().map(Vec::as_slice);
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..PipelineOptions::default()
    };
    let expected = play(&model, Driver::Offline, stereo, input, "latent1.scale");
    assert!(
        expected[0] != expected[1] && expected.iter().flatten().any(|sample| sample.abs() > 1e-3)
    );
    for driver in DRIVERS {
        let found = play(&model, driver, stereo, input, "latent1.scale");
        assert!(
            found
                .iter()
                .zip(&expected)
                .all(|(found, expected)| is_same(found, expected)),
            "{driver:?}"
        );
    }
    // Its mono output is the mean, for the mean of the input on both channels.
    let mean: Vec<f32> = sides[0]
        .iter()
        .zip(&sides[1])
        .map(|(left, right)| 0.5 * left + 0.5 * right)
        .collect();
    let both = play(
        &model,
        Driver::Offline,
        stereo,
        [&mean, &mean],
        "latent1.scale",
    );
    let mono = play(
        &model,
        Driver::Offline,
        PipelineOptions::default(),
        input,
        "latent1.scale",
    );
    let middle = both[0]
        .iter()
        .zip(&both[1])
        .map(|(left, right)| 0.5 * left + 0.5 * right);
    assert!(
        mono[0]
            .iter()
            .zip(middle)
            .all(|(mono, middle)| (mono - middle).abs() < 1e-6)
    );
}

#[test]
fn several_stereo_sessions_share_the_worker() {
    let _alone = exclusive();
    let model = Arc::new(untrained_effect(6));
    let stereo = PipelineOptions {
        channels: InputChannels::Stereo,
        ..PipelineOptions::default()
    };
    let driver = Driver::Worker {
        latency: Some(2_048),
    };
    let [left, right] = two_sounds(9_600);
    // More than one batch of stereo sessions, and mono ones of the same model between them.
    let options = |number: usize| {
        if number % 3 == 2 {
            PipelineOptions::default()
        } else {
            stereo
        }
    };
    let mut sessions: Vec<_> = (0..9)
        .map(|number| open(&model, driver, options(number)))
        .collect();
    let input = |number: usize| {
        let gain = 1.0 / (number + 1) as f32;
        [&left, &right].map(|side| {
            side.iter()
                .map(|sample| gain * sample)
                .collect::<Vec<f32>>()
        })
    };
    let mut outputs: Vec<[Vec<f32>; 2]> = (0..9).map(|_| [vec![], vec![]]).collect();
    for start in (0..left.len()).step_by(480) {
        for (number, ((_, session), output)) in sessions.iter_mut().zip(&mut outputs).enumerate() {
            let sides = input(number);
            let mut block = [[0.0; 480]; 2];
            let [first, second] = &mut block;
            session.process(
                &[],
                &[&sides[0][start..start + 480], &sides[1][start..start + 480]],
                &mut [first, second],
            );
            output
                .iter_mut()
                .zip(&block)
                .for_each(|(output, block)| output.extend(block));
        }
    }
    for (number, ((_, session), output)) in sessions.iter().zip(&outputs).enumerate() {
        let sides = input(number);
        let expected = play(
            &model,
            Driver::Offline,
            options(number),
            [&sides[0], &sides[1]],
            "none",
        );
        for (found, expected) in output.iter().zip(&expected) {
            assert!(
                is_same(&found[session.latency_samples()..], expected),
                "session {number}"
            );
        }
    }
}

#[test]
fn a_side_that_fails_silences_both() {
    let _alone = exclusive();
    // Squares eight times: a loud input overflows.
    let nodes = (0..8).map(|index| {
        let input = if index == 0 {
            "in".to_owned()
        } else {
            format!("square{}", index - 1)
        };
        node(&format!("square{index}"), &[&input, &input], Op::Multiply)
    });
    let nodes = nodes
        .chain([node(
            "audio",
            &["square7"],
            Op::Affine(Affine {
                scale: 1.0,
                offset: 0.25,
            }),
        )])
        .collect();
    let methods = vec![method("forward", 1, vec![port("in", 1, 1)], nodes)];
    let model = Arc::new(model_with(Kind::Effect, methods, &[], 1));
    for driver in [Driver::Inline, Driver::Worker { latency: None }] {
        let options = PipelineOptions {
            channels: InputChannels::Stereo,
            ..PipelineOptions::default()
        };
        let (controller, mut session) = open(&model, driver, options);
        let mut heard = [0.0_f32; 2];
        for block in 0..80 {
            let left = [if block == 10 { 16.0 } else { 0.1 }; 480];
            let mut output = [[0.0; 480]; 2];
            let [first, second] = &mut output;
            session.process(&[], &[&left, &[0.1; 480]], &mut [first, second]);
            assert!(output.iter().flatten().all(|sample| sample.is_finite()));
            // Where the left side is faded out, so is the right one.
            assert!(output[0] == output[1], "block {block}, {driver:?}");
            heard = [heard[0].max(output[0][479]), output[0][479]];
        }
        assert!(
            controller
                .health()
                .is_some_and(|health| health.invalid_blocks > 0),
            "{driver:?}"
        );
        assert!(
            heard.iter().all(|level| (level - 0.25).abs() < 1e-3),
            "it comes back: {heard:?}, {driver:?}"
        );
    }
}

#[test]
fn a_change_between_mono_and_stereo_is_smooth() {
    let _alone = exclusive();
    // Passes its input.
    let model = mixing_effect(1, 1, |_, _| 1.0);
    let options = |channels| PipelineOptions {
        channels,
        ..PipelineOptions::default()
    };
    let (controller, mut session) = open(&model, Driver::Inline, options(InputChannels::Mono));
    let tone =
        |n: usize, hz: f32| 0.3 * (std::f32::consts::TAU * hz * n as f32 / RATE as f32).sin();
    let (mut now, mut last, mut is_stereo) = (0, [0.0_f32; 2], Vec::new());
    let mut play = |session: &mut Session, blocks: usize| {
        for _ in 0..blocks {
            let input = [100.0, 150.0]
                .map(|hz| (now..now + 240).map(|n| tone(n, hz)).collect::<Vec<f32>>());
            now += 240;
            let mut output = [[0.0; 240]; 2];
            let [left, right] = &mut output;
            session.process(&[], &[&input[0], &input[1]], &mut [left, right]);
            for (side, last) in output.iter().zip(&mut last) {
                for sample in side {
                    assert!(
                        (sample - *last).abs() < 0.02,
                        "a step from {last} to {sample}"
                    );
                    *last = *sample;
                }
            }
            is_stereo.push(session.is_stereo());
            if !session.is_stereo() {
                assert_eq!(output[0], output[1]);
            }
        }
        session.is_stereo()
    };
    assert!(!play(&mut session, 20));
    for channels in [
        InputChannels::Stereo,
        InputChannels::Left,
        InputChannels::Stereo,
    ] {
        let loading = std::thread::spawn({
            let (controller, model) = (controller.clone(), model.clone());
            move || load(&controller, &model, options(channels))
        });
        while !loading.is_finished() {
            play(&mut session, 1);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let stereo = play(&mut session, 40);
        assert_eq!(stereo, channels == InputChannels::Stereo, "{channels:?}");
    }
}
