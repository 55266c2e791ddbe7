//! Passes over signals with time across the lanes.

use std::ops::Range;

use ondes_kernels::{
    Activation, Binary, BufferView, ChannelRows, Convolution, FRAMES_PER_VECTOR, Kernels, Passes,
    StreamSignals, TapWeights, Taps, Unary,
};

use crate::common::{Noise, assert_close, assert_same_bits, check};

const TANH: Unary = Unary::Activation(Activation::Tanh);

/// Length of a row with room for whole vectors.
fn padded(frames: usize) -> usize {
    frames.next_multiple_of(FRAMES_PER_VECTOR)
}

/// Taps without delay.
fn taps(views: Range<usize>) -> Vec<Taps> {
    views.map(Taps::now).collect()
}

/// Passes on rows that do not move.
fn passes(rows: &[ChannelRows], add: impl FnOnce(&mut Passes)) -> Passes {
    let mut passes = Passes::new(rows.iter().map(|&rows| BufferView::new(rows, 0)).collect());
    add(&mut passes);
    passes
}

/// Runs convolutions, each group in a pass of its own.
fn run(
    kernels: Kernels,
    groups: &[&[Convolution]],
    rows: &[ChannelRows],
    signals: &mut [f32],
    frames: usize,
) {
    let passes = passes(rows, |passes| {
        groups
            .iter()
            .for_each(|group| passes.convolve(group.to_vec()))
    });
    kernels.run_passes(&passes, &[0], signals, frames);
}

/// Computes a convolution with a residual, an activation and an accumulation; returns the results
/// and their reference.
fn convolve(
    kernels: Kernels,
    inputs: usize,
    outputs: usize,
    frames: usize,
) -> (Vec<f32>, Vec<f64>) {
    let mut noise = Noise::new((inputs * 31 + outputs) as u64);
    let stride = padded(frames) + 5;
    let mut signals = noise.vec((inputs + 2 * outputs) * stride, 1.0);
    let weights = noise.vec(inputs * outputs, 0.3);
    let bias = noise.vec(outputs, 0.2);
    let packed = TapWeights::new(inputs, &bias, |output, input| {
        weights[output * inputs + input]
    });
    assert_eq!((packed.inputs(), packed.outputs()), (inputs, outputs));
    let rows = |first: usize| ChannelRows {
        start: first * stride,
        stride,
        channels: outputs,
    };
    let (output, sum) = (rows(inputs), rows(inputs + outputs));
    let before = signals.clone();
    // Two signals.
    let some = inputs / 2;
    let parts = [(0, some), (some, inputs - some)].map(|(first, channels)| ChannelRows {
        channels,
        ..rows(first)
    });
    // The output overwrites the residual, as in a network that reads it no more.
    let convolution = Convolution {
        residual: Some(2),
        activation: Some(TANH),
        accumulate_into: Some(3),
        ..Convolution::new(packed, taps(0..2), 2)
    };
    run(
        kernels,
        &[&[convolution]],
        &[parts[0], parts[1], output, sum],
        &mut signals,
        frames,
    );
    let mut found = Vec::new();
    let mut expected = Vec::new();
    for output in 0..outputs {
        for frame in 0..frames {
            let x = |row: usize| f64::from(before[row * stride + frame]);
            let product: f64 = (0..inputs)
                .map(|input| f64::from(weights[output * inputs + input]) * x(input))
                .sum();
            let y = (f64::from(bias[output]) + product + x(inputs + output)).tanh();
            found.push(signals[inputs * stride + output * stride + frame]);
            expected.push(y);
            found.push(signals[sum.start + output * stride + frame]);
            expected.push(y + x(inputs + outputs + output));
        }
    }
    (found, expected)
}

#[test]
fn a_convolution_matches_the_reference_in_every_variant() {
    check(
        (1_usize..40, 1_usize..20, 1_usize..100),
        |(inputs, outputs, frames)| {
            let (reference, expected) = convolve(Kernels::scalar(), inputs, outputs, frames);
            assert_close(&reference, &expected, 1e-5, 1e-5);
            for kernels in Kernels::available() {
                assert_same_bits(&convolve(kernels, inputs, outputs, frames).0, &reference);
            }
        },
    );
}

#[test]
fn interleaved_convolutions_equal_separate_ones() {
    check(
        (1_usize..20, 1_usize..20, 1_usize..100),
        |(inputs, outputs, frames)| {
            let mut noise = Noise::new((inputs * 37 + outputs) as u64);
            let stride = padded(frames);
            let rows = |first: usize, channels: usize| ChannelRows {
                start: first * stride,
                stride,
                channels,
            };
            let (x, y, z) = (
                rows(0, inputs),
                rows(inputs, outputs),
                rows(inputs + outputs, inputs),
            );
            let mut weights = |from: usize, to: usize| {
                let (bias, weights) = (noise.vec(to, 0.2), noise.vec(from * to, 0.3));
                TapWeights::new(from, &bias, |output, input| weights[output * from + input])
            };
            let (first, second) = (weights(inputs, outputs), weights(outputs, inputs));
            let signals = noise.vec((2 * inputs + outputs) * stride, 1.0);
            let rows = [x, y, z];
            let both = [
                Convolution {
                    activation: Some(TANH),
                    ..Convolution::new(first, taps(0..1), 1)
                },
                Convolution {
                    residual: Some(0),
                    ..Convolution::new(second, taps(1..2), 2)
                },
            ];
            for kernels in Kernels::available() {
                let (mut together, mut apart) = (signals.clone(), signals.clone());
                run(kernels, &[&both], &rows, &mut together, frames);
                run(
                    kernels,
                    &[&both[..1], &both[1..]],
                    &rows,
                    &mut apart,
                    frames,
                );
                for channel in 0..inputs {
                    let row = z.start + channel * stride..z.start + channel * stride + frames;
                    assert_same_bits(&together[row.clone()], &apart[row]);
                }
            }
        },
    );
}

#[test]
fn a_fused_layer_equals_its_separate_passes() {
    check(
        (1_usize..10, 1_usize..100, 0_usize..3),
        |(channels, frames, activation)| {
            let activation = [
                Activation::Tanh,
                Activation::LeakyRelu { slope: 0.2 },
                Activation::Relu,
            ]
            .map(Unary::Activation)[activation];
            let mut noise = Noise::new((channels * 41 + frames) as u64);
            let stride = padded(frames);
            let rows = |index: usize| ChannelRows {
                start: index * channels * stride,
                stride,
                channels,
            };
            let [past, x, z, head, y] = [0, 1, 2, 3, 4].map(rows);
            let mut weights = |from: usize| {
                let (bias, weights) = (noise.vec(channels, 0.2), noise.vec(from * channels, 0.3));
                TapWeights::new(from, &bias, |output, input| weights[output * from + input])
            };
            let (wide, narrow) = (weights(2 * channels), weights(channels));
            let signals = noise.vec(5 * channels * stride, 1.0);
            let rows = [past, x, z, head, y];
            let plain = Convolution::new(wide, taps(0..2), 2);
            let second = Convolution {
                residual: Some(1),
                ..Convolution::new(narrow, taps(2..3), 4)
            };
            for kernels in Kernels::available() {
                let (mut together, mut apart) = (signals.clone(), signals.clone());
                let first = Convolution {
                    activation: Some(activation),
                    accumulate_into: Some(3),
                    ..plain.clone()
                };
                let layer = [first.clone(), second.clone()];
                run(kernels, &[&layer], &rows, &mut together, frames);
                let separate = passes(&rows, |passes| {
                    passes.convolve(vec![plain.clone()]);
                    passes.apply(activation, 2);
                    passes.combine(Binary::Add, 2, 3);
                    passes.convolve(vec![second.clone()]);
                });
                kernels.run_passes(&separate, &[0], &mut apart, frames);
                let of = |rows: Range<usize>| rows.map(|row| row * stride..row * stride + frames);
                for row in of(2 * channels..5 * channels) {
                    assert_same_bits(&together[row.clone()], &apart[row]);
                }
                // A transient intermediate may be missing, but nothing else; and layers may follow
                // each other.
                let transient = [
                    Convolution {
                        transient: true,
                        ..first
                    },
                    second.clone(),
                ];
                let (mut alone, mut again) = (signals.clone(), together);
                run(kernels, &[&transient], &rows, &mut alone, frames);
                for row in of(3 * channels..5 * channels) {
                    assert_same_bits(&alone[row.clone()], &again[row]);
                }
                let next = [
                    Convolution {
                        taps: taps(3..5),
                        ..transient[0].clone()
                    },
                    Convolution {
                        output: 1,
                        ..transient[1].clone()
                    },
                ];
                let mut both = signals.clone();
                run(kernels, &[&transient, &next], &rows, &mut both, frames);
                run(kernels, &[&next], &rows, &mut again, frames);
                for row in of(channels..2 * channels).chain(of(3 * channels..5 * channels)) {
                    assert_same_bits(&both[row.clone()], &again[row]);
                }
            }
        },
    );
}

#[test]
fn streams_of_a_batch_are_computed_as_alone() {
    check((1_usize..13, 1_usize..100), |(channels, frames)| {
        let stride = padded(frames);
        let rows = [0, 1, 2, 3].map(|index| ChannelRows {
            start: index * channels * stride,
            stride,
            channels,
        });
        let weights = |seed: u64| {
            let (bias, weights) = (
                Noise::new(seed).vec(channels, 0.2),
                Noise::new(seed).vec(channels * channels, 0.3),
            );
            TapWeights::new(channels, &bias, |output, input| {
                weights[output * channels + input]
            })
        };
        // A fused layer for some widths, a convolution alone, and operations on values.
        let passes = passes(&rows, |passes| {
            let first = Convolution {
                activation: Some(TANH),
                ..Convolution::new(weights(1), taps(0..1), 1)
            };
            passes.convolve(vec![
                first,
                Convolution {
                    residual: Some(0),
                    ..Convolution::new(weights(2), taps(1..2), 2)
                },
            ]);
            passes.convolve(vec![Convolution::new(weights(3), taps(2..3), 3)]);
            passes.apply(TANH, 3);
            passes.combine(Binary::Add, 0, 3);
        });
        let streams = [5, 6, 7].map(|seed| Noise::new(seed).vec(4 * channels * stride, 1.0));
        for kernels in Kernels::available() {
            let (mut together, mut alone) = (streams.clone(), streams.clone());
            let mut batch = together.each_mut().map(|signals| StreamSignals {
                positions: &[0],
                signals,
            });
            kernels.run_passes_batch(&passes, &mut batch, frames);
            for (together, alone) in together.iter().zip(&mut alone) {
                kernels.run_passes(&passes, &[0], alone, frames);
                assert_same_bits(together, alone);
            }
        }
    });
}

#[test]
fn elementwise_passes_equal_the_kernels_on_slices() {
    let operations = [
        TANH,
        Unary::Activation(Activation::LeakyRelu { slope: 0.2 }),
        Unary::Activation(Activation::Exp),
        Unary::ScaleOffset {
            scale: 3.0,
            offset: -0.5,
        },
    ];
    let (channels, frames) = (3, 37);
    let stride = padded(frames);
    let rows = ChannelRows {
        start: 2,
        stride,
        channels,
    };
    for kernels in Kernels::available() {
        for operation in operations {
            let mut signals = Noise::new(3).vec(2 + channels * stride, 4.0);
            let mut expected = signals.clone();
            let passes = passes(&[rows], |passes| passes.apply(operation, 0));
            kernels.run_passes(&passes, &[0], &mut signals, frames);
            for channel in 0..channels {
                let row = 2 + channel * stride..2 + channel * stride + frames;
                match operation {
                    Unary::Activation(activation) => {
                        kernels.activate(activation, &mut expected[row.clone()])
                    }
                    Unary::ScaleOffset { scale, offset } => {
                        kernels.scale_offset(&mut expected[row.clone()], scale, offset);
                    }
                }
                assert_same_bits(&signals[row.clone()], &expected[row]);
            }
        }
        for (operation, result) in [
            (Binary::Copy, (|_, x| x) as fn(f32, f32) -> f32),
            (Binary::Add, |in_out, x| in_out + x),
            (Binary::Multiply, |in_out, x| in_out * x),
        ] {
            let mut signals = Noise::new(4).vec(2 + 2 * channels * stride, 4.0);
            let before = signals.clone();
            let x = ChannelRows {
                start: 2 + channels * stride,
                ..rows
            };
            let passes = passes(&[rows, x], |passes| passes.combine(operation, 1, 0));
            kernels.run_passes(&passes, &[0], &mut signals, frames);
            for channel in 0..channels {
                for frame in 0..frames {
                    let at = |rows: ChannelRows| rows.start + channel * stride + frame;
                    let expected = result(before[at(rows)], before[at(x)]);
                    assert_same_bits(&signals[at(rows)..][..1], &[expected]);
                }
            }
        }
    }
}

#[test]
#[should_panic = "rows beyond the slice"]
fn rows_beyond_the_slice() {
    let weights = TapWeights::new(1, &[0.0], |_, _| 1.0);
    let output = ChannelRows {
        start: 0,
        stride: 16,
        channels: 1,
    };
    let rows = [ChannelRows { start: 1, ..output }, output];
    run(
        Kernels::detect(),
        &[&[Convolution::new(weights, taps(0..1), 1)]],
        &rows,
        &mut [0.0; 16],
        16,
    );
}

#[test]
#[should_panic = "rows beyond the slice"]
fn rows_of_a_layer_beyond_the_slice() {
    let weights = || TapWeights::new(3, &[0.0; 3], |_, _| 1.0);
    let layer = [
        Convolution {
            activation: Some(TANH),
            transient: true,
            ..Convolution::new(weights(), taps(0..1), 1)
        },
        Convolution::new(weights(), taps(1..2), 1),
    ];
    let rows = ChannelRows {
        start: 0,
        stride: 16,
        channels: 3,
    };
    let rows = [
        ChannelRows {
            stride: usize::MAX / 2,
            ..rows
        },
        rows,
    ];
    run(Kernels::detect(), &[&layer], &rows, &mut [0.0; 48], 16);
}

/// Runs a layer and a convolution on rings, for `width` channels and delays in frames, in blocks of
/// these lengths. Returns the output of the layer and that of the convolution.
fn in_rings(
    kernels: Kernels,
    width: usize,
    delays: &[usize],
    blocks: &[usize],
) -> (Vec<f32>, Vec<f32>) {
    let (ring_frames, mirrored) = (256, 64);
    let stride = ring_frames + mirrored + FRAMES_PER_VECTOR;
    let rows = |index: usize| ChannelRows {
        start: index * width * stride,
        stride,
        channels: width,
    };
    // The input, the output of the layer and that of the convolution after it, in rings; and the
    // intermediate.
    let views =
        [0, 1, 2].map(|index| BufferView::new(rows(index), index).in_ring(ring_frames, mirrored));
    let intermediate = BufferView::new(rows(3), 3);
    let weights = |inputs: usize| {
        let weights = Noise::new(inputs as u64).vec(inputs * width * width, 0.3);
        TapWeights::new(inputs * width, &vec![0.1; width], |output, input| {
            weights[input * width + output]
        })
    };
    let delayed = |view| {
        vec![Taps {
            view,
            delays: delays.to_vec(),
        }]
    };
    let activation = Some(TANH);
    let layer = vec![
        Convolution {
            activation,
            transient: true,
            ..Convolution::new(weights(delays.len()), delayed(0), 3)
        },
        Convolution::new(weights(1), taps(3..4), 1),
    ];
    let last = Convolution {
        activation,
        ..Convolution::new(weights(delays.len()), delayed(1), 2)
    };
    let mut passes = Passes::new([&views[..], &[intermediate]].concat());
    passes.convolve(layer);
    passes.convolve(vec![last]);
    let mut signals = vec![0.0; 4 * width * stride];
    let mut positions = [ring_frames - 7, 40, 0, 0];
    let mut noise = Noise::new(5);
    let (mut layer_output, mut found) = (Vec::new(), Vec::new());
    for &frames in blocks {
        for frame in 0..frames {
            for channel in 0..width {
                signals[rows(0).start + channel * stride + positions[0] + frame] =
                    noise.vec(1, 1.0)[0];
            }
        }
        views[0].mirror(&positions, &mut signals, frames);
        kernels.run_passes(&passes, &positions, &mut signals, frames);
        for frame in 0..frames {
            for (view, to) in [(1, &mut layer_output), (2, &mut found)] {
                let first = rows(view).start + positions[view] + frame;
                to.extend((0..width).map(|channel| signals[first + channel * stride]));
            }
        }
        positions[..3]
            .iter_mut()
            .for_each(|position| *position = (*position + frames) % ring_frames);
    }
    (layer_output, found)
}

#[test]
fn delays_wrap_in_rings() {
    let delays = [191, 64, 17, 5, 1, 0];
    let odd: Vec<usize> = [7, 64, 1, 40, 33, 16]
        .into_iter()
        .cycle()
        .take(40)
        .collect();
    let frames: usize = odd.iter().sum();
    for width in [1, 3, 5, 8] {
        let (layer_output, found) = in_rings(Kernels::scalar(), width, &delays, &vec![1; frames]);
        let weights = Noise::new(delays.len() as u64).vec(delays.len() * width * width, 0.3);
        let mut expected = vec![0.0; found.len()];
        for frame in 0..frames {
            for output in 0..width {
                let mut sum = f64::from(0.1_f32);
                for (tap, &delay) in delays
                    .iter()
                    .enumerate()
                    .filter(|&(_, &delay)| delay <= frame)
                {
                    for channel in 0..width {
                        let weight = weights[(tap * width + channel) * width + output];
                        sum += f64::from(weight)
                            * f64::from(layer_output[(frame - delay) * width + channel]);
                    }
                }
                expected[frame * width + output] = sum.tanh();
            }
        }
        assert_close(&found, &expected, 1e-5, 1e-5);
        for kernels in Kernels::available() {
            assert_same_bits(&in_rings(kernels, width, &delays, &odd).1, &found);
        }
    }
}
