//! Every layer, pipeline and instrument gives the same samples, to the bit, however time is cut
//! into blocks.

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::instrument::Event;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{
    Activation, Distribution, FORMAT, Header, Kind, Method, Model, Op, Port, Tensor, Weights, file,
};
use ondes_engine::native::Executor;
use ondes_engine::ops::{
    Affine, Attention, CodeSum, Conv1d, ConvTranspose1d, Convolve, Delay, DrawCategories,
    DrawMixture, Gru, Interleave, Latency, Linear, Lstm, NearestCodes, Noise, Pitch, Prelu,
    ShapedNoise, Split,
};
use ondes_engine::pipeline::{ControlSource, Pipeline, PipelineOptions};
use ondes_tests::audio_models::{sound, untrained_codec, untrained_effect};
use ondes_tests::{
    SAMPLE_RATE, bundled_models, int8_model, model, port, random_events, random_splits, seeded_rng,
    single_node_method, untrained_instrument,
};
use rand::RngExt;

/// Steps a layer in random numbers of blocks, with streams that start and stop, and compares to a
/// single step.
fn check_layer(op: Op, inputs: &[Port], block: usize) {
    let label = format!("{op:?}");
    for warm_up in [0, 3 * block - 1] {
        let starts_cold = matches!(
            op,
            Op::Harmonic | Op::Convolve(_) | Op::Attention(_) | Op::Pitch(_)
        );
        if warm_up == 0 || !starts_cold {
            check_method(
                &label,
                Method {
                    warm_up,
                    ..single_node_method(op.clone(), inputs, block)
                },
            );
        }
    }
}

fn check_method(label: &str, method: Method) {
    check_model(label, &model(Kind::Effect, vec![method], 5));
}

fn check_model(label: &str, model: &Model) {
    let method = model.method("forward").expect("it is there");
    let (inputs, block) = (&method.inputs, method.block);
    let blocks = 8192 / block;
    let mut random = seeded_rng(6);
    let mut values = |port: &Port| -> Vec<f32> {
        (0..blocks * block / port.ratio * port.channels)
            .map(|_| random.random_range(0.0..1.0))
            .collect()
    };
    let values: Vec<Vec<f32>> = inputs.iter().map(&mut values).collect();
    for kernels in Kernels::available() {
        let mut whole = Executor::new(model, "forward", kernels, 1, blocks).expect("it is there");
        whole.begin(&[0], blocks);
        for (index, values) in values.iter().enumerate() {
            whole.input(index).copy_from_slice(values);
        }
        whole.run();
        let expected = whole.output(0).to_vec();
        // The reference starts from empty state.
        whole.reset(0);
        whole.begin(&[0], blocks);
        for (index, values) in values.iter().enumerate() {
            whole.input(index).copy_from_slice(values);
        }
        whole.run();
        assert_eq!(
            whole.output(0),
            expected,
            "{label} after a reset with {}",
            kernels.name()
        );
        // The other streams get other inputs; stream 1 must not depend on them.
        let mut split = Executor::new(model, "forward", kernels, 3, blocks).expect("it is there");
        let mut position = 0;
        for (turn, count) in random_splits(7, blocks, blocks.min(40))
            .into_iter()
            .enumerate()
        {
            let streams: &[usize] = [&[1][..], &[0, 1], &[1, 2], &[2, 1, 0]][turn % 4];
            split.begin(streams, count);
            for (index, (values, port)) in values.iter().zip(inputs).enumerate() {
                let per_block = block / port.ratio * port.channels;
                let part = &values[position * per_block..][..count * per_block];
                let rows = split.input(index).chunks_exact_mut(part.len());
                for (row, &stream) in rows.zip(streams) {
                    row.fill(0.3);
                    if stream == 1 {
                        row.copy_from_slice(part);
                    }
                }
            }
            split.run();
            let row = streams
                .iter()
                .position(|&stream| stream == 1)
                .expect("stream 1 is always there");
            let length = split.output(0).len() / streams.len();
            let per_block = expected.len() / blocks;
            assert_eq!(length, count * per_block);
            let ours = &split.output(0)[row * length..][..length];
            // Noise differs by stream by design; both executors below use the seed of stream 0.
            assert_eq!(
                ours,
                &expected[position * per_block..][..length],
                "{label} with {}",
                kernels.name()
            );
            position += count;
        }
    }
}

fn x(channels: usize, ratio: usize) -> Vec<Port> {
    vec![port("x", channels, ratio)]
}

/// Query, key and value.
fn attended(ratio: usize) -> Vec<Port> {
    ["query", "key", "value"]
        .map(|name| port(name, 12, ratio))
        .into()
}

#[test]
fn every_layer_streams() {
    let two = |a, b| vec![port("a", a, 1), port("b", b, 1)];
    for (op, inputs) in [
        (Op::Linear(Linear { outputs: 19 }), x(7, 1)),
        (Op::Conv1d(Conv1d::new(6, 3)), x(5, 1)),
        (
            Op::Conv1d(Conv1d::new(6, 3).dilated(129).grouped(2)),
            x(4, 1),
        ),
        (Op::Conv1d(Conv1d::new(6, 9).strided(4)), x(3, 1)),
        (
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 3,
                kernel: 8,
                stride: 4,
            }),
            x(5, 4),
        ),
        (
            Op::Gru(Gru {
                hidden: 17,
                initial_state: false,
            }),
            x(6, 1),
        ),
        (
            Op::Lstm(Lstm {
                hidden: 17,
                initial_state: false,
            }),
            x(6, 1),
        ),
        (Op::LayerNorm, x(21, 1)),
        (Op::Softmax, x(21, 1)),
        (Op::Activation(Activation::Tanh), x(3, 1)),
        (Op::Activation(Activation::Sigmoid), x(3, 1)),
        (Op::Activation(Activation::Relu), x(3, 1)),
        (
            Op::Activation(Activation::LeakyRelu { slope: 0.2 }),
            x(3, 1),
        ),
        (
            Op::Gru(Gru {
                hidden: 5,
                initial_state: true,
            }),
            x(6, 1),
        ),
        (
            Op::Lstm(Lstm {
                hidden: 5,
                initial_state: true,
            }),
            x(6, 1),
        ),
        (Op::Activation(Activation::HardTanh), x(3, 1)),
        (
            Op::Activation(Activation::LeakyHardTanh {
                min: 0.2,
                max: 0.7,
                min_slope: 0.1,
                max_slope: 0.3,
            }),
            x(3, 1),
        ),
        (Op::Activation(Activation::HardSwish), x(3, 1)),
        (Op::Activation(Activation::Softsign), x(3, 1)),
        (Op::Activation(Activation::Silu), x(3, 1)),
        (Op::Activation(Activation::FastTanh), x(3, 1)),
        (Op::Prelu(Prelu { slopes: 5 }), x(5, 1)),
        (Op::Prelu(Prelu { slopes: 1 }), x(5, 1)),
        (Op::Snake, x(5, 1)),
        (Op::Activation(Activation::Softplus), x(3, 1)),
        (Op::Activation(Activation::ExpSigmoid), x(3, 1)),
        (Op::Activation(Activation::Exp), x(3, 1)),
        (Op::Delay(Delay { frames: 0 }), x(5, 1)),
        (Op::Delay(Delay { frames: 1 }), x(5, 1)),
        (Op::Delay(Delay { frames: 150 }), x(5, 1)),
        (Op::Latency(Latency { samples: 9 }), x(5, 1)),
        (Op::Interleave(Interleave { factor: 4 }), x(12, 4)),
        (Op::FlipOddBands, x(5, 2)),
        (Op::Gate, x(10, 1)),
        (
            Op::Affine(Affine {
                scale: 2.0,
                offset: 1.0,
            }),
            x(3, 1),
        ),
        (Op::Film, two(5, 10)),
        (Op::Add, two(5, 5)),
        (Op::Multiply, two(5, 1)),
        (Op::Concat, two(5, 2)),
        (
            Op::Split(Split {
                start: 1,
                channels: 2,
            }),
            x(5, 1),
        ),
        (
            Op::NearestCodes(NearestCodes {
                codebooks: 3,
                codes: 9,
            }),
            x(5, 1),
        ),
        (
            Op::CodeSum(CodeSum {
                codes: 9,
                channels: 4,
            }),
            x(3, 1),
        ),
        (
            Op::Attention(Attention {
                heads: 3,
                window: 21,
            }),
            attended(1),
        ),
        (
            Op::Attention(Attention {
                heads: 1,
                window: 1,
            }),
            attended(2),
        ),
    ] {
        check_layer(op, &inputs, 8);
    }
    let bank = [
        port("pitch", 1, 64),
        port("amplitude", 1, 64),
        port("distribution", 30, 64),
    ];
    check_layer(Op::Harmonic, &bank, 64);
    check_layer(Op::Convolve(Convolve { taps: 700 }), &x(1, 1), 64);
    check_layer(Op::Pitch(Pitch { hop: 64 }), &x(1, 1), 128);
}

#[test]
fn every_int8_layer_streams() {
    let conv = |outputs, kernel, stride, dilation, groups| {
        Op::Conv1d(
            Conv1d::new(outputs, kernel)
                .strided(stride)
                .dilated(dilation)
                .grouped(groups),
        )
    };
    for (op, inputs) in [
        (Op::Linear(Linear { outputs: 97 }), x(65, 2)),
        (conv(33, 3, 1, 2, 1), x(67, 2)),
        (conv(64, 4, 2, 1, 2), x(136, 2)),
        (
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 34,
                kernel: 8,
                stride: 4,
            }),
            x(66, 8),
        ),
        (
            Op::Gru(Gru {
                hidden: 65,
                initial_state: false,
            }),
            x(33, 2),
        ),
        (
            Op::Lstm(Lstm {
                hidden: 64,
                initial_state: true,
            }),
            x(70, 2),
        ),
    ] {
        let label = format!("{op:?} on bytes");
        for warm_up in [0, 23] {
            let floats = model(
                Kind::Effect,
                vec![Method {
                    warm_up,
                    ..single_node_method(op.clone(), &inputs, 8)
                }],
                5,
            );
            let bytes = int8_model(&floats);
            let on_bytes = |model: &Model| {
                let executor =
                    Executor::new(model, "forward", Kernels::detect(), 1, 1).expect("it is there");
                executor.int8_layers().count()
            };
            assert_eq!((on_bytes(&floats), on_bytes(&bytes)), (0, 1), "{label}");
            check_model(&label, &bytes);
        }
    }
}

#[test]
fn half_precision_stays_in_memory_and_changes_no_bit() {
    // At audio rate, fused networks and cells run such layers; they keep their weights in f32.
    for (op, inputs) in [
        (Op::Linear(Linear { outputs: 201 }), x(199, 2)),
        (
            Op::Conv1d(Conv1d::new(120, 3).dilated(2).grouped(2)),
            x(190, 2),
        ),
        (
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 67,
                kernel: 8,
                stride: 4,
            }),
            x(65, 4),
        ),
        (
            Op::Gru(Gru {
                hidden: 130,
                initial_state: false,
            }),
            x(110, 2),
        ),
    ] {
        let label = format!("{op:?} in half precision");
        let floats = model(Kind::Effect, vec![single_node_method(op, &inputs, 8)], 5);
        let halves = floats
            .compressed(Scaling::default(), |_| WeightPrecision::F16)
            .expect("no weight is too large");
        check_model(&label, &halves);
        let mut rounded = Weights::default();
        for (name, tensor) in halves.weights().iter() {
            rounded.insert(
                name,
                Tensor::new(tensor.shape(), tensor.floats().into_owned()),
            );
        }
        let header = Header {
            format: FORMAT,
            ..halves.header().clone()
        };
        let rounded = Model::new(header, rounded).expect("it has the same shapes");
        for kernels in Kernels::available() {
            let [halves, rounded] = [&halves, &rounded].map(|model| {
                let mut executor =
                    Executor::new(model, "forward", kernels, 1, 20).expect("it is there");
                executor.begin(&[0], 20);
                let input = executor.input(0);
                input
                    .iter_mut()
                    .enumerate()
                    .for_each(|(n, value)| *value = (n as f32 * 0.37).sin());
                executor.run();
                (executor.output(0).to_vec(), executor.bytes())
            });
            assert!(halves.0 == rounded.0, "{label} with {}", kernels.name());
            assert!(
                halves.1 + 60_000 < rounded.1,
                "{label}: {} and {} bytes",
                halves.1,
                rounded.1
            );
        }
    }
}

/// Noise differs by stream by design, so only stream 0 is compared.
#[test]
fn noise_streams() {
    check_noise(Op::FilteredNoise, &[port("magnitudes", 9, 64)]);
    for distribution in [Distribution::Uniform, Distribution::Normal] {
        check_noise(
            Op::Noise(Noise {
                channels: 3,
                distribution,
                number: 2,
            }),
            &[port("x", 1, 64)],
        );
    }
    let mixture = [
        port("logits", 3, 8),
        port("means", 15, 8),
        port("scales", 15, 8),
        port("temperature", 1, 8),
    ];
    check_noise(
        Op::DrawMixture(DrawMixture {
            components: 3,
            least: 0.5,
            number: 2,
        }),
        &mixture,
    );
    for top in [2, 7] {
        let inputs = [port("logits", 21, 8), port("temperature", 1, 8)];
        check_noise(
            Op::DrawCategories(DrawCategories {
                categories: 7,
                top,
                number: 2,
            }),
            &inputs,
        );
    }
    check_noise(
        Op::ShapedNoise(ShapedNoise { bands: 5, hop: 16 }),
        &[port("magnitudes", 10, 64), port("noise", 32, 64)],
    );
}

fn check_noise(op: Op, inputs: &[Port]) {
    let label = format!("{op:?}");
    let model = model(Kind::Effect, vec![single_node_method(op, inputs, 64)], 5);
    let per_block = |port: &Port| 64 / port.ratio * port.channels;
    let values = |port: &Port| {
        (0..128 * per_block(port))
            .map(|i| (i as f32 * 0.37).sin().abs())
            .collect::<Vec<f32>>()
    };
    let values: Vec<Vec<f32>> = inputs.iter().map(values).collect();
    for kernels in Kernels::available() {
        let run = |parts: &[usize]| {
            let mut executor =
                Executor::new(&model, "forward", kernels, 1, 128).expect("it is there");
            let mut position = 0;
            let mut sound = Vec::new();
            for &count in parts {
                executor.begin(&[0], count);
                for (index, (values, port)) in values.iter().zip(inputs).enumerate() {
                    let part = position * per_block(port)..(position + count) * per_block(port);
                    executor.input(index).copy_from_slice(&values[part]);
                }
                executor.run();
                sound.extend_from_slice(executor.output(0));
                position += count;
            }
            sound
        };
        assert_eq!(
            run(&[128]),
            run(&random_splits(3, 128, 30)),
            "{label} with {}",
            kernels.name()
        );
    }
}

/// Runs a node with constant inputs for `frames` frames; returns its output.
fn drawn(op: Op, inputs: &[(&str, &[f32])], frames: usize) -> Vec<f32> {
    let ports: Vec<Port> = inputs
        .iter()
        .map(|(name, values)| port(name, values.len(), 1))
        .collect();
    let model = model(Kind::Effect, vec![single_node_method(op, &ports, 1)], 5);
    let mut executor =
        Executor::new(&model, "forward", Kernels::detect(), 1, frames).expect("it is there");
    executor.begin(&[0], frames);
    for (index, (_, values)) in inputs.iter().enumerate() {
        executor
            .input(index)
            .copy_from_slice(&values.repeat(frames));
    }
    executor.run();
    executor.output(0).to_vec()
}

#[test]
fn mixtures_are_drawn_with_their_moments_and_temperature() {
    const FRAMES: usize = 20_000;
    let (logits, means, scales) = (
        [0.75_f32.ln(), 0.25_f32.ln()],
        [-4.0, 1.0, 4.0, 2.0],
        [0.5, 0.1, 1.0, 0.2],
    );
    let op = Op::DrawMixture(DrawMixture {
        components: 2,
        least: 0.0,
        number: 0,
    });
    for temperature in [1.0_f32, 0.25] {
        let inputs: [(&str, &[f32]); 4] = [
            ("logits", &logits),
            ("means", &means),
            ("scales", &scales),
            ("temperature", &[temperature]),
        ];
        let values = drawn(op.clone(), &inputs, FRAMES);
        // At temperature 1/4 the odds are raised to the fourth power, and deviations halved.
        let odds = 3.0_f64.powf(1.0 / f64::from(temperature));
        let (mut low, mut high) = (Vec::new(), Vec::new());
        values.chunks_exact(2).for_each(|frame| {
            if frame[0] < 0.5 {
                low.push(frame)
            } else {
                high.push(frame)
            }
        });
        let share = low.len() as f64 / FRAMES as f64;
        assert!(
            (share - odds / (1.0 + odds)).abs() < 0.012,
            "temperature {temperature}: {share}"
        );
        for (frames, component) in [(&low, 0), (&high, 1)] {
            for channel in 0..2 {
                let (mean, scale) = (
                    means[2 * component + channel],
                    scales[2 * component + channel],
                );
                let count = frames.len() as f32;
                let found = frames.iter().map(|frame| frame[channel]).sum::<f32>() / count;
                let variance = frames
                    .iter()
                    .map(|frame| (frame[channel] - found).powi(2))
                    .sum::<f32>()
                    / count;
                let expected = scale * temperature.sqrt();
                assert!(
                    (found - mean).abs() < 5.0 * expected / count.sqrt(),
                    "mean {found}, expected {mean}"
                );
                assert!(
                    (variance.sqrt() / expected - 1.0).abs() < 4.0 / count.sqrt(),
                    "deviation {}",
                    variance.sqrt()
                );
            }
        }
    }
    // At 0 it is the mean of the likeliest component; below, the same.
    for temperature in [0.0, -3.0] {
        let inputs: [(&str, &[f32]); 4] = [
            ("logits", &logits),
            ("means", &means),
            ("scales", &scales),
            ("temperature", &[temperature]),
        ];
        assert_eq!(
            drawn(op.clone(), &inputs, 3),
            [-4.0, 1.0, -4.0, 1.0, -4.0, 1.0]
        );
    }
    // A component with less than that share of the likeliest one's probability is left out, at any
    // temperature.
    for (least, is_drawn) in [(0.3, true), (0.4, false)] {
        let op = Op::DrawMixture(DrawMixture {
            components: 2,
            least,
            number: 0,
        });
        let inputs: [(&str, &[f32]); 4] = [
            ("logits", &logits),
            ("means", &means),
            ("scales", &scales),
            ("temperature", &[2.0]),
        ];
        let values = drawn(op, &inputs, FRAMES);
        assert_eq!(
            values.chunks_exact(2).any(|frame| frame[0] > 0.5),
            is_drawn,
            "{least}"
        );
    }
}

#[test]
fn categories_are_drawn_among_the_likeliest() {
    const FRAMES: usize = 20_000;
    let logits: Vec<f32> = [0.1_f32, 0.6, 0.3, 0.4, 0.4, 0.2]
        .iter()
        .map(|share| share.ln())
        .collect();
    let shares = |top: usize, temperature: f32, channel: usize| {
        let op = Op::DrawCategories(DrawCategories {
            categories: 3,
            top,
            number: 1,
        });
        let values = drawn(
            op,
            &[("logits", &logits), ("temperature", &[temperature])],
            FRAMES,
        );
        [0.0, 1.0, 2.0].map(|category| {
            let count = values
                .chunks_exact(2)
                .filter(|frame| frame[channel] == category)
                .count();
            count as f64 / FRAMES as f64
        })
    };
    let near = |found: [f64; 3], expected: [f64; 3]| {
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 0.015),
            "{found:?}, expected {expected:?}"
        );
    };
    near(shares(3, 1.0, 0), [0.1, 0.6, 0.3]);
    near(shares(3, 1.0, 1), [0.4, 0.4, 0.2]);
    near(shares(2, 1.0, 0), [0.0, 2.0 / 3.0, 1.0 / 3.0]);
    near(shares(3, 0.5, 0), [0.01 / 0.46, 0.36 / 0.46, 0.09 / 0.46]);
    assert_eq!(shares(1, 1.0, 0), [0.0, 1.0, 0.0]);
    assert_eq!(shares(2, 0.0, 0), [0.0, 1.0, 0.0]);
}

/// Noise depends on the stream, the node and the seed only.
#[test]
fn noise_is_seeded_by_stream_and_number() {
    let of_number = |number| {
        Op::Noise(Noise {
            channels: 4,
            distribution: Distribution::Normal,
            number,
        })
    };
    let run = |number, stream: usize, seed: Option<u64>| {
        let model = model(
            Kind::Effect,
            vec![single_node_method(of_number(number), &[port("x", 1, 1)], 8)],
            5,
        );
        let mut executor =
            Executor::new(&model, "forward", Kernels::detect(), 2, 4).expect("it is there");
        if let Some(seed) = seed {
            executor.seed(stream, seed);
        }
        executor.begin(&[stream], 4);
        executor.input(0).fill(0.0);
        executor.run();
        executor.output(0).to_vec()
    };
    assert_ne!(run(0, 0, None), run(1, 0, None));
    assert_ne!(run(0, 0, None), run(0, 1, None));
    assert_ne!(run(0, 0, Some(1)), run(0, 0, Some(2)));
    assert_eq!(run(0, 0, Some(1)), run(0, 1, Some(1)));
}

/// Plays events through a pipeline in blocks of the given lengths.
fn play(
    model: &Model,
    options: &PipelineOptions,
    events: &[Event],
    input: &[f32],
    blocks: &[usize],
) -> Vec<f32> {
    let mut pipeline = Pipeline::new(model, options).expect("it plays");
    let mut sound = Vec::new();
    let mut events = events.iter().peekable();
    for &length in blocks {
        let start = sound.len();
        sound.resize(start + length, f32::NAN);
        // Pass each block its own events, as a host does.
        while let Some(event) = events.next_if(|event| event.at < sound.len() as u64) {
            pipeline.handle(*event).expect("there is room");
        }
        let output = if input.is_empty() {
            &[]
        } else {
            &input[start..start + length]
        };
        pipeline.process(output, &mut sound[start..]);
    }
    assert_eq!(
        pipeline.samples_missing(),
        0,
        "the latency is too short at {} Hz",
        options.sample_rate
    );
    sound
}

fn check_instrument(model: &Model, rates: &[u32]) {
    for &sample_rate in rates {
        let length = 30_000;
        let options = PipelineOptions {
            sample_rate,
            seed: 3,
            voices: Some(6),
            ..PipelineOptions::default()
        };
        let events = random_events(u64::from(sample_rate), length as u64);
        let whole = play(model, &options, &events, &[], &[length]);
        assert!(
            whole.iter().any(|sample| sample.abs() > 1e-3),
            "nothing sounds at {sample_rate} Hz"
        );
        for seed in 0..3 {
            let parts = random_splits(seed, length, 8192);
            assert!(
                whole == play(model, &options, &events, &[], &parts),
                "notes at {sample_rate} Hz, split {seed}"
            );
        }
        let ones = vec![1; 3000];
        assert!(
            whole[..3000] == play(model, &options, &events, &[], &ones),
            "notes at {sample_rate} Hz, singly"
        );
        let options = PipelineOptions {
            source: ControlSource::AudioInput,
            ..options
        };
        let step = std::f32::consts::TAU * 330.0 / sample_rate as f32;
        let input: Vec<f32> = (0..length)
            .map(|n| 0.3 * (step * n as f32).sin() * (n as f32 * 3e-4).sin())
            .collect();
        let whole = play(model, &options, &[], &input, &[length]);
        for seed in 0..2 {
            let parts = random_splits(seed, length, 8192);
            assert!(
                whole == play(model, &options, &[], &input, &parts),
                "sound at {sample_rate} Hz, split {seed}"
            );
        }
    }
}

#[test]
fn instruments_stream_at_many_rates() {
    let rates = [
        8_000,
        22_050,
        32_000,
        44_100,
        SAMPLE_RATE,
        88_200,
        96_000,
        192_000,
    ];
    check_instrument(&untrained_instrument(1), &rates);
}

#[test]
fn bundled_instruments_stream() {
    for path in bundled_models() {
        let model = file::read(&path).expect("bundled models are whole");
        check_instrument(&model, &[44_100, SAMPLE_RATE]);
        check_instrument(&int8_model(&model), &[SAMPLE_RATE]);
    }
}

#[test]
fn effects_and_codecs_stream_at_many_rates() {
    for (model, spread) in [
        (untrained_effect(1), false),
        (untrained_codec(1), false),
        (untrained_codec(1), true),
    ] {
        let kind = model.header().kind;
        // 44,099 Hz shares no factor with the model's rate, so conversion blocks last two seconds.
        for sample_rate in [8_000, 22_050, 44_099, 44_100, SAMPLE_RATE, 88_200, 192_000] {
            let options = PipelineOptions {
                sample_rate,
                spread,
                ..PipelineOptions::default()
            };
            let length = if sample_rate == 44_099 {
                400_000
            } else {
                20_000
            };
            let input = sound(length, sample_rate);
            let whole = play(&model, &options, &[], &input, &[length]);
            assert!(
                whole.iter().any(|sample| sample.abs() > 1e-3),
                "{kind:?}: nothing sounds at {sample_rate} Hz"
            );
            for seed in 0..3 {
                let parts = random_splits(seed, length, 8192);
                let split = play(&model, &options, &[], &input, &parts);
                assert!(whole == split, "{kind:?} at {sample_rate} Hz, split {seed}");
            }
            let ones = vec![1; 3000];
            assert!(
                whole[..3000] == play(&model, &options, &[], &input, &ones),
                "{kind:?} at {sample_rate} Hz, singly"
            );
        }
    }
}

#[test]
fn all_kernels_agree() {
    let (events, input) = (random_events(9, 20_000), sound(20_000, SAMPLE_RATE));
    for model in [
        untrained_instrument(2),
        untrained_effect(2),
        untrained_codec(2),
    ] {
        let play = |kernels| {
            play(
                &model,
                &PipelineOptions {
                    kernels,
                    ..PipelineOptions::default()
                },
                &events,
                &input,
                &[20_000],
            )
        };
        let scalar = play(Kernels::scalar());
        for kernels in Kernels::available() {
            assert!(
                scalar == play(kernels),
                "{:?} with {}",
                model.header().kind,
                kernels.name()
            );
        }
    }
}

#[test]
fn all_int8_kernels_agree() {
    let events = random_events(9, 20_000);
    let path = &bundled_models()[0];
    let model = int8_model(&file::read(path).expect("bundled models are whole"));
    let play = |kernels| {
        play(
            &model,
            &PipelineOptions {
                kernels,
                ..PipelineOptions::default()
            },
            &events,
            &[],
            &[20_000],
        )
    };
    let scalar = play(Kernels::scalar());
    for kernels in Kernels::available_for_int8() {
        assert!(scalar == play(kernels), "with {}", kernels.int8_name());
    }
}
