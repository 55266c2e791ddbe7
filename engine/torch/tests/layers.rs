//! Native f32 and libtorch agree within 1e-5 relative RMS on random input, for every layer.

mod common;

use common::{native, relative_rms, torch};
use ondes_engine::Kernels;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::{Activation, Distribution, Kind, Method, Model, Op, Port};
use ondes_engine::native::Executor;
use ondes_engine::ops::{
    Affine, Attention, CodeSum, Conv1d, ConvTranspose1d, Convolve, Delay, DrawCategories,
    DrawMixture, Gru, Interleave, Latency, Linear, Lstm, NearestCodes, Noise, Pitch, Prelu,
    ShapedNoise, Split,
};
use ondes_tests::audio_models::method;
use ondes_tests::{model, node, port, seeded_rng, single_node_method};
use ondes_torch::{RecurrentState, TorchGraph, TorchWeights};
use rand::RngExt;

/// Compares both executors on one node, with random inputs within `range`.
fn check(op: Op, inputs: &[Port], block: usize, range: std::ops::Range<f32>) {
    check_warmed(op, inputs, block, range, 0);
}

/// Compares as above, after a warm-up.
fn check_warmed(
    op: Op,
    inputs: &[Port],
    block: usize,
    range: std::ops::Range<f32>,
    warm_up: usize,
) {
    let label = format!("{op:?}");
    let (streams, blocks) = (3, 40);
    let model = model(
        Kind::Effect,
        vec![Method {
            warm_up,
            ..single_node_method(op, inputs, block)
        }],
        1,
    );
    let mut random = seeded_rng(2);
    let values: Vec<Vec<f32>> = inputs
        .iter()
        .map(|port| {
            (0..streams * blocks * block / port.ratio * port.channels)
                .map(|_| random.random_range(range.clone()))
                .collect()
        })
        .collect();
    let reference = torch(&model, "forward", streams, &values);
    for kernels in Kernels::available() {
        let ours = native(&model, "forward", kernels, streams, blocks, &values);
        let error = relative_rms(&ours, &reference);
        assert!(error <= 1e-5, "{label} with {}: {error:e}", kernels.name());
    }
}

fn x(channels: usize) -> Vec<Port> {
    vec![port("x", channels, 1)]
}

#[test]
fn linear_layers_and_convolutions_agree() {
    check(Op::Linear(Linear { outputs: 37 }), &x(53), 4, -1.0..1.0);
}

#[test]
fn conv1d() {
    for (kernel, stride, dilation, groups) in [
        (1, 1, 1, 1),
        (3, 1, 1, 1),
        (3, 1, 7, 1),
        (4, 2, 1, 1),
        (9, 4, 1, 2),
        (5, 1, 2, 3),
    ] {
        check(
            Op::Conv1d(
                Conv1d::new(18, kernel)
                    .strided(stride)
                    .dilated(dilation)
                    .grouped(groups),
            ),
            &x(12),
            8,
            -1.0..1.0,
        );
    }
}

#[test]
fn conv_transpose1d() {
    for (kernel, stride) in [(2, 2), (8, 4), (3, 1), (16, 8)] {
        check(
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 5,
                kernel,
                stride,
            }),
            &[port("x", 11, 8)],
            8,
            -1.0..1.0,
        );
    }
}

#[test]
fn recurrent_layers_agree() {
    check(
        Op::Gru(Gru {
            hidden: 45,
            initial_state: false,
        }),
        &x(19),
        4,
        -1.0..1.0,
    );
    check(
        Op::Lstm(Lstm {
            hidden: 33,
            initial_state: false,
        }),
        &x(19),
        4,
        -1.0..1.0,
    );
    check(
        Op::Gru(Gru {
            hidden: 45,
            initial_state: true,
        }),
        &x(19),
        4,
        -1.0..1.0,
    );
    check(
        Op::Lstm(Lstm {
            hidden: 33,
            initial_state: true,
        }),
        &x(19),
        4,
        -1.0..1.0,
    );
}

#[test]
fn warmed_up_layers_agree() {
    for op in [
        Op::Lstm(Lstm {
            hidden: 33,
            initial_state: true,
        }),
        Op::Gru(Gru {
            hidden: 20,
            initial_state: false,
        }),
        Op::Conv1d(Conv1d::new(6, 3).dilated(7)),
    ] {
        check_warmed(op, &x(19), 4, -1.0..1.0, 18);
    }
}

#[test]
fn activations_agree() {
    for op in [
        Op::Activation(Activation::Tanh),
        Op::Activation(Activation::Sigmoid),
        Op::Activation(Activation::Relu),
        Op::Activation(Activation::LeakyRelu { slope: 0.01 }),
        Op::Activation(Activation::HardTanh),
        Op::Activation(Activation::LeakyHardTanh {
            min: -1.5,
            max: 2.0,
            min_slope: 0.1,
            max_slope: -0.2,
        }),
        Op::Activation(Activation::HardSwish),
        Op::Activation(Activation::Softsign),
        Op::Activation(Activation::Silu),
        Op::Activation(Activation::FastTanh),
        Op::Prelu(Prelu { slopes: 22 }),
        Op::Prelu(Prelu { slopes: 1 }),
        Op::Snake,
        Op::Activation(Activation::Softplus),
        Op::Activation(Activation::ExpSigmoid),
        Op::Activation(Activation::Exp),
        Op::LayerNorm,
        Op::Softmax,
        Op::Gate,
        Op::Affine(Affine {
            scale: 0.7,
            offset: -0.2,
        }),
    ] {
        check(op, &x(22), 4, -8.0..8.0);
    }
}

#[test]
fn joins_agree() {
    let ports = |channels: &[usize]| -> Vec<Port> {
        channels
            .iter()
            .enumerate()
            .map(|(index, &channels)| port(&format!("x{index}"), channels, 1))
            .collect()
    };
    check(Op::Film, &ports(&[14, 28]), 4, -1.0..1.0);
    check(Op::Add, &ports(&[9, 9, 9]), 4, -1.0..1.0);
    check(Op::Multiply, &ports(&[9, 9]), 4, -1.0..1.0);
    check(Op::Multiply, &ports(&[9, 1]), 4, -1.0..1.0);
    check(Op::Concat, &ports(&[3, 5, 1]), 4, -1.0..1.0);
    check(
        Op::Split(Split {
            start: 2,
            channels: 5,
        }),
        &x(9),
        4,
        -1.0..1.0,
    );
}

#[test]
fn delays_and_interleaving_agree() {
    check(Op::Delay(Delay { frames: 0 }), &x(3), 4, -1.0..1.0);
    check(Op::Delay(Delay { frames: 7 }), &x(3), 4, -1.0..1.0);
    check(Op::Delay(Delay { frames: 100 }), &x(3), 4, -1.0..1.0);
    check_warmed(Op::Delay(Delay { frames: 30 }), &x(3), 4, -1.0..1.0, 22);
    check(Op::Latency(Latency { samples: 5 }), &x(3), 4, -1.0..1.0);
    check(
        Op::Interleave(Interleave { factor: 4 }),
        &[port("x", 12, 4)],
        8,
        -1.0..1.0,
    );
    check(Op::FlipOddBands, &[port("x", 7, 4)], 8, -1.0..1.0);
}

#[test]
fn noise_agrees() {
    for distribution in [Distribution::Uniform, Distribution::Normal] {
        for number in [0, 3] {
            check(
                Op::Noise(Noise {
                    channels: 5,
                    distribution,
                    number,
                }),
                &x(2),
                4,
                -1.0..1.0,
            );
        }
    }
    let shaped = |channels: usize, bands: usize, hop: usize| {
        let ports = [
            port("magnitudes", channels * bands, hop),
            port("noise", channels * hop, hop),
        ];
        check(
            Op::ShapedNoise(ShapedNoise { bands, hop }),
            &ports,
            hop,
            -1.0..1.0,
        );
    };
    shaped(3, 5, 64);
    shaped(16, 5, 8);
    shaped(1, 2, 2);
    // A response longer than the frame.
    shaped(2, 32, 8);
}

#[test]
fn draws_agree() {
    let mixture = [
        port("logits", 3, 1),
        port("means", 15, 1),
        port("scales", 15, 1),
        port("temperature", 1, 1),
    ];
    for least in [0.0, 0.5] {
        check(
            Op::DrawMixture(DrawMixture {
                components: 3,
                least,
                number: 2,
            }),
            &mixture,
            4,
            -2.0..2.0,
        );
    }
    for top in [2, 7] {
        let inputs = [port("logits", 21, 8), port("temperature", 1, 8)];
        check(
            Op::DrawCategories(DrawCategories {
                categories: 7,
                top,
                number: 2,
            }),
            &inputs,
            8,
            0.0..2.0,
        );
    }
}

#[test]
fn attention_agrees() {
    let ports = |channels: usize| ["query", "key", "value"].map(|name| port(name, channels, 4));
    for (heads, window) in [(1, 1), (3, 9), (2, 200)] {
        check(
            Op::Attention(Attention { heads, window }),
            &ports(12),
            8,
            -2.0..2.0,
        );
    }
}

#[test]
fn codes_agree() {
    check(
        Op::NearestCodes(NearestCodes {
            codebooks: 3,
            codes: 17,
        }),
        &[port("x", 6, 8)],
        8,
        -1.0..1.0,
    );
    // Beyond both ends of the codes.
    check(
        Op::CodeSum(CodeSum {
            codes: 5,
            channels: 7,
        }),
        &[port("x", 3, 8)],
        8,
        -2.0..8.0,
    );
}

#[test]
fn synthesis_agrees() {
    let hop = 192;
    let bank = [
        port("pitch", 1, hop),
        port("amplitude", 1, hop),
        port("distribution", 80, hop),
    ];
    // One range for all three ports: pitches below 1 are sub-audio, so every harmonic is audible.
    check(Op::Harmonic, &bank, hop, 0.01..1.0);
    check(
        Op::FilteredNoise,
        &[port("magnitudes", 65, hop)],
        hop,
        0.0..1.0,
    );
    check(
        Op::FilteredNoise,
        &[port("magnitudes", 9, 240)],
        240,
        0.0..1.0,
    );
    check(Op::Convolve(Convolve { taps: 1000 }), &x(1), 192, -1.0..1.0);
    check(Op::Pitch(Pitch { hop: 96 }), &x(1), 192, -1.0..1.0);
}

#[test]
fn harmonics_agree_at_audible_pitches() {
    let hop = 192;
    let bank = [
        port("pitch", 1, hop),
        port("amplitude", 1, hop),
        port("distribution", 80, hop),
    ];
    let model = model(
        Kind::Effect,
        vec![single_node_method(Op::Harmonic, &bank, hop)],
        1,
    );
    let (streams, blocks) = (4, 250);
    let mut random = seeded_rng(3);
    // A vibrato around a different pitch in each stream: from few harmonics below half the sample
    // rate to all.
    let pitch: Vec<f32> = (0..streams * blocks)
        .map(|i| [40.0, 57.0, 76.0, 100.0][i / blocks] + (0.1 * (i % blocks) as f32).sin())
        .collect();
    let amplitude = (0..streams * blocks)
        .map(|_| random.random_range(0.0..1.0))
        .collect();
    let distribution = (0..streams * blocks * 80)
        .map(|i| random.random_range(0.0..1.0) / (1 + i % 80) as f32)
        .collect();
    let inputs = [pitch, amplitude, distribution];
    let reference = torch(&model, "forward", streams, &inputs);
    for kernels in Kernels::available() {
        let error = relative_rms(
            &native(&model, "forward", kernels, streams, blocks, &inputs),
            &reference,
        );
        assert!(error <= 1e-5, "{}: {error:e}", kernels.name());
    }
}

#[test]
fn recurrent_layers_continue_from_their_state() {
    for op in [
        Op::Lstm(Lstm {
            hidden: 6,
            initial_state: true,
        }),
        Op::Gru(Gru {
            hidden: 6,
            initial_state: false,
        }),
    ] {
        let label = format!("{op:?}");
        let model = model(Kind::Effect, vec![single_node_method(op, &x(2), 1)], 1);
        let graph = TorchGraph::new(&model.header().methods[0], 48_000).expect("the method fits");
        let weights = TorchWeights::new(model.weights(), tch::Device::Cpu);
        let sound = tch::Tensor::rand([3, 2, 50], (tch::Kind::Float, tch::Device::Cpu)) - 0.5;
        let whole = graph.run(&weights, &[sound.shallow_clone()], 0).remove(0);
        let mut memory = RecurrentState::default();
        let mut part = |from, length| {
            memory.detach();
            graph
                .run_with_state(&weights, &[sound.narrow(2, from, length)], 0, &mut memory)
                .remove(0)
        };
        let parts = tch::Tensor::cat(&[part(0, 17), part(17, 1), part(18, 32)], 2);
        let difference = (&whole - &parts).abs().max().double_value(&[]);
        assert!(difference < 1e-6, "{label}: {difference:e}");
        // Without the state, the second part differs.
        let anew = graph.run(&weights, &[sound.narrow(2, 18, 32)], 0).remove(0);
        assert!(
            (whole.narrow(2, 18, 32) - anew)
                .abs()
                .max()
                .double_value(&[])
                > 1e-3,
            "{label}"
        );
    }
}

/// Returns the outputs of a recurrent layer and its last states, and the gradients of a sum of
/// them, by the kernels or by libtorch's layer.
fn recurrent_gradients(
    model: &Model,
    op: &Op,
    sound: &tch::Tensor,
    by_kernels: bool,
) -> Vec<tch::Tensor> {
    let weights = TorchWeights::new(model.weights(), tch::Device::Cpu);
    let leaves: Vec<tch::Tensor> = weights
        .0
        .values()
        .map(|weight| weight.copy().set_requires_grad(true))
        .collect();
    let names = weights.0.into_keys();
    let weights = TorchWeights(
        names
            .zip(leaves.iter().map(tch::Tensor::shallow_clone))
            .collect(),
    );
    let options = (tch::Kind::Float, tch::Device::Cpu);
    let sound = sound.copy().set_requires_grad(true);
    let values: Vec<tch::Tensor> = if by_kernels {
        let graph = TorchGraph::new(&model.header().methods[0], 48_000).expect("the method fits");
        let mut memory = RecurrentState::default();
        let output = graph
            .run_with_state(&weights, std::slice::from_ref(&sound), 0, &mut memory)
            .remove(0);
        let states = memory.tensors().into_iter().map(|(_, tensor)| tensor);
        std::iter::once(output).chain(states).collect()
    } else {
        let weight = |name: &str| weights.0[&format!("y.{name}")].shallow_clone();
        let parameters = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(weight);
        let (rows, frames) = (sound.size()[0], sound.transpose(1, 2));
        let state = |name: &str| {
            weight(name)
                .view([1, 1, -1])
                .expand([1, rows, -1], false)
                .contiguous()
        };
        match op {
            Op::Lstm(_) => {
                let states = [state("h0"), state("c0")];
                let (y, h, c) = frames.lstm(&states, &parameters, true, 1, 0.0, false, false, true);
                vec![y.transpose(1, 2), h, c]
            }
            _ => {
                let (y, h) =
                    frames.gru(&state("h0"), &parameters, true, 1, 0.0, false, false, true);
                vec![y.transpose(1, 2), h]
            }
        }
    };
    let mixed = |value: &tch::Tensor| {
        value
            * tch::Tensor::arange(value.numel() as i64, options)
                .sin()
                .view_as(value)
    };
    let parts = values
        .iter()
        .map(|value| mixed(value).sum(tch::Kind::Float));
    parts
        .reduce(|sum, part| sum + part)
        .expect("there are values")
        .backward();
    let gradients = leaves.iter().chain([&sound]).map(tch::Tensor::grad);
    values
        .iter()
        .map(tch::Tensor::detach)
        .chain(gradients)
        .collect()
}

#[test]
fn recurrent_layers_learn_as_those_of_libtorch() {
    for (op, inputs, rows, frames) in [
        (
            Op::Lstm(Lstm {
                hidden: 16,
                initial_state: true,
            }),
            1,
            9,
            40,
        ),
        (
            Op::Lstm(Lstm {
                hidden: 21,
                initial_state: true,
            }),
            5,
            3,
            1,
        ),
        (
            Op::Gru(Gru {
                hidden: 16,
                initial_state: true,
            }),
            7,
            9,
            40,
        ),
        (
            Op::Gru(Gru {
                hidden: 70,
                initial_state: true,
            }),
            2,
            8,
            12,
        ),
    ] {
        let label = format!("{op:?}");
        let model = model(
            Kind::Effect,
            vec![single_node_method(op.clone(), &x(inputs), 1)],
            1,
        );
        let sound = tch::Tensor::randn(
            [rows, inputs as i64, frames],
            (tch::Kind::Float, tch::Device::Cpu),
        );
        let expected = recurrent_gradients(&model, &op, &sound, false);
        let threads = tch::get_num_threads();
        for count in [1, 2] {
            tch::set_num_threads(count);
            let found = recurrent_gradients(&model, &op, &sound, true);
            assert_eq!(found.len(), expected.len(), "{label}");
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found.size(), expected.size(), "{label}, {at}");
                let error =
                    (found - expected).norm().double_value(&[]) / expected.norm().double_value(&[]);
                assert!(error < 2e-6, "{label}, {at}: {error:e}");
            }
        }
        tch::set_num_threads(threads);
    }
}

#[test]
fn the_end_of_a_sequence_is_that_of_the_whole_with_its_gradients() {
    let conv = |kernel, dilation| Op::Conv1d(Conv1d::new(4, kernel).dilated(dilation));
    let nodes = |memory| {
        vec![
            node("first", &["x"], conv(1, 1)),
            node("second", &["first"], conv(3, 2)),
            node("bent", &["second"], Op::Activation(Activation::Tanh)),
            node("past", &["first"], memory),
            node("sum", &["bent", "past"], Op::Add),
            node("third", &["sum"], conv(2, 5)),
            node("both", &["third", "bent"], Op::Concat),
            node("out", &["both"], Op::Linear(Linear { outputs: 1 })),
        ]
    };
    // A recurrent layer and a delay need all that came before.
    for memory in [
        conv(4, 3),
        Op::Lstm(Lstm {
            hidden: 4,
            initial_state: false,
        }),
        Op::Delay(Delay { frames: 2 }),
    ] {
        let label = format!("{memory:?}");
        let mut method = method("forward", 1, x(1), nodes(memory));
        // Read by a convolution as well, which needs more of it.
        method.outputs.push(port("bent", 4, 1));
        let model = model(Kind::Effect, vec![method], 1);
        let whole = TorchGraph::new(&model.header().methods[0], 48_000).expect("the method fits");
        let sound = tch::Tensor::rand([2, 1, 40], (tch::Kind::Float, tch::Device::Cpu)) - 0.5;
        // Fewer samples than the network reaches back leave room for silence before the first.
        for samples in [1, 20, 28, 29, 36, 40] {
            let end_and_gradient = |graph: &TorchGraph| {
                let weights = TorchWeights::new(model.weights(), tch::Device::Cpu);
                let sound = sound.copy().set_requires_grad(true);
                let outputs = graph.run(&weights, std::slice::from_ref(&sound), 0);
                let lengths = [outputs[0].size()[2], outputs[1].size()[2]];
                let ends = outputs
                    .iter()
                    .map(|output| output.narrow(2, output.size()[2] - samples, samples));
                let end = tch::Tensor::cat(&ends.collect::<Vec<_>>(), 1);
                end.square().sum(tch::Kind::Float).backward();
                (lengths, end, sound.grad())
            };
            let (all, expected, expected_gradient) = end_and_gradient(&whole);
            let (lengths, end, gradient) =
                end_and_gradient(&whole.clone().with_end(samples as usize));
            assert_eq!((all, lengths), ([40; 2], [samples; 2]), "{label}");
            let difference =
                |a: &tch::Tensor, b: &tch::Tensor| (a - b).abs().max().double_value(&[]);
            assert!(difference(&end, &expected) < 1e-6, "{label}, {samples}");
            assert!(
                difference(&gradient, &expected_gradient) < 1e-5,
                "{label}, {samples}"
            );
        }
    }
}

/// Both executors use the same 8-bit weights. If the native executor quantizes activations too,
/// each value is off by up to 1/254 of the largest of its frame: about 0.5 % for uniform values.
#[test]
fn layers_with_8_bit_weights_agree() {
    let (streams, blocks, block) = (3, 40, 8);
    let conv = |outputs, kernel, stride, dilation, groups| {
        Op::Conv1d(
            Conv1d::new(outputs, kernel)
                .strided(stride)
                .dilated(dilation)
                .grouped(groups),
        )
    };
    for (op, channels, ratio) in [
        (Op::Linear(Linear { outputs: 97 }), 65, 2),
        (conv(33, 3, 1, 2, 1), 67, 2),
        (conv(64, 4, 2, 1, 2), 136, 2),
        (
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs: 34,
                kernel: 8,
                stride: 4,
            }),
            66,
            8,
        ),
        (
            Op::Gru(Gru {
                hidden: 65,
                initial_state: false,
            }),
            33,
            2,
        ),
        (
            Op::Lstm(Lstm {
                hidden: 64,
                initial_state: true,
            }),
            70,
            2,
        ),
    ] {
        let label = format!("{op:?}");
        let original = model(
            Kind::Effect,
            vec![single_node_method(op, &[port("x", channels, ratio)], block)],
            1,
        );
        let mut random = seeded_rng(2);
        let values = (0..streams * blocks * block / ratio * channels)
            .map(|_| random.random_range(-1.0..1.0))
            .collect();
        let inputs = [values];
        for (precision, on_bytes, bound) in [
            (WeightPrecision::Stored8, 0, 1e-5),
            (WeightPrecision::Computed8, 1, 1e-2),
        ] {
            let compressed = original
                .compressed(Scaling::default(), |_| precision)
                .expect("there are scales");
            let executor =
                Executor::new(&compressed, "forward", Kernels::detect(), 1, 1).expect("it fits");
            assert_eq!(executor.int8_layers().count(), on_bytes, "{label}");
            let reference = torch(&compressed, "forward", streams, &inputs);
            for kernels in Kernels::available_for_int8() {
                let ours = native(&compressed, "forward", kernels, streams, blocks, &inputs);
                let error = relative_rms(&ours, &reference);
                println!(
                    "{label}, {precision:?} with {}: {error:e}",
                    kernels.int8_name()
                );
                assert!(
                    error <= bound,
                    "{label}, {precision:?} with {}: {error:e}",
                    kernels.int8_name()
                );
                assert!(
                    on_bytes == 0 || error > 1e-5,
                    "{label}: nothing was brought to bytes"
                );
            }
        }
    }
}
