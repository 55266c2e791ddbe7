//! Signals with time across the lanes, and recurrent layers at the rate of sound.

use std::ops::Range;

use ondes_kernels::{
    Activation, Binary, Cell, CellWeights, Convolution, FRAMES_OF_A_VECTOR, Kernels, Place, Rows, Step, Steps, TapWeights, Taps,
    Unary,
};

use crate::common::{Noise, assert_close, assert_same_bits, check, sigmoid};

/// Room for so many frames and what lies beside them in the last vector.
fn room(frames: usize) -> usize {
    frames.next_multiple_of(FRAMES_OF_A_VECTOR)
}

fn chain(convolutions: &[Convolution]) -> Step {
    Step::Convolve(convolutions.to_vec())
}

/// What is read at no delay.
fn taps(places: Range<usize>) -> Vec<Taps> {
    places.map(Taps::now).collect()
}

/// Runs steps on rows that stay where they are.
fn run(kernels: Kernels, steps: &[Step], rows: &[Rows], signals: &mut [f32], frames: usize) {
    let places = rows.iter().map(|&rows| Place::new(rows, 0)).collect();
    kernels.run_steps(&Steps::new(places, steps.iter().cloned()), &[0], signals, frames);
}

/// A convolution of `inputs` rows, with a residual, an activation and a sum that it is added to.
fn convolve(kernels: Kernels, inputs: usize, outputs: usize, frames: usize) -> (Vec<f32>, Vec<f64>) {
    let mut noise = Noise::new((inputs * 31 + outputs) as u64);
    let stride = room(frames) + 5;
    let mut signals = noise.vec((inputs + 2 * outputs) * stride, 1.0);
    let weights = noise.vec(inputs * outputs, 0.3);
    let bias = noise.vec(outputs, 0.2);
    let packed = TapWeights::new(inputs, &bias, |output, input| weights[output * inputs + input]);
    assert_eq!((packed.inputs(), packed.outputs()), (inputs, outputs));
    let rows = |first: usize| Rows { start: first * stride, stride, channels: outputs };
    let (to, onto) = (rows(inputs), rows(inputs + outputs));
    let before = signals.clone();
    // Two signals.
    let some = inputs / 2;
    let parts = [(0, some), (some, inputs - some)].map(|(first, channels)| Rows { channels, ..rows(first) });
    // The residual lies where the result goes, as in a network that needs it no more.
    let then = Some(Unary::Activation(Activation::Tanh));
    let convolution =
        Convolution { weights: packed, taps: taps(0..2), add: Some(2), to: 2, then, onto: Some(3), passed_on: false };
    run(kernels, &[chain(&[convolution])], &[parts[0], parts[1], to, onto], &mut signals, frames);
    let mut found = Vec::new();
    let mut expected = Vec::new();
    for output in 0..outputs {
        for frame in 0..frames {
            let x = |row: usize| f64::from(before[row * stride + frame]);
            let sum: f64 = (0..inputs).map(|input| f64::from(weights[output * inputs + input]) * x(input)).sum();
            let y = (f64::from(bias[output]) + sum + x(inputs + output)).tanh();
            found.push(signals[to.start + output * stride + frame]);
            expected.push(y);
            found.push(signals[onto.start + output * stride + frame]);
            expected.push(y + x(inputs + outputs + output));
        }
    }
    (found, expected)
}

#[test]
fn a_convolution_is_the_sum_in_every_variant() {
    check((1_usize..40, 1_usize..20, 1_usize..100), |(inputs, outputs, frames)| {
        let (reference, expected) = convolve(Kernels::scalar(), inputs, outputs, frames);
        assert_close(&reference, &expected, 1e-5, 1e-5);
        for kernels in Kernels::available() {
            assert_same_bits(&convolve(kernels, inputs, outputs, frames).0, &reference);
        }
    });
}

#[test]
fn a_chain_is_its_convolutions_one_after_the_other() {
    check((1_usize..20, 1_usize..20, 1_usize..100), |(inputs, outputs, frames)| {
        let mut noise = Noise::new((inputs * 37 + outputs) as u64);
        let stride = room(frames);
        let rows = |first: usize, channels: usize| Rows { start: first * stride, stride, channels };
        let (x, y, z) = (rows(0, inputs), rows(inputs, outputs), rows(inputs + outputs, inputs));
        let mut weights = |from: usize, to: usize| {
            let (bias, weights) = (noise.vec(to, 0.2), noise.vec(from * to, 0.3));
            TapWeights::new(from, &bias, |output, input| weights[output * from + input])
        };
        let (first, second) = (weights(inputs, outputs), weights(outputs, inputs));
        let signals = noise.vec((2 * inputs + outputs) * stride, 1.0);
        let rows = [x, y, z];
        let both = [
            Convolution {
                weights: first,
                taps: taps(0..1),
                add: None,
                to: 1,
                then: Some(Unary::Activation(Activation::Tanh)),
                onto: None,
                passed_on: false,
            },
            Convolution {
                weights: second,
                taps: taps(1..2),
                add: Some(0),
                to: 2,
                then: None,
                onto: None,
                passed_on: false,
            },
        ];
        for kernels in Kernels::available() {
            let (mut together, mut apart) = (signals.clone(), signals.clone());
            run(kernels, &[chain(&both)], &rows, &mut together, frames);
            run(kernels, &[chain(&both[..1]), chain(&both[1..])], &rows, &mut apart, frames);
            for channel in 0..inputs {
                let row = z.start + channel * stride..z.start + channel * stride + frames;
                assert_same_bits(&together[row.clone()], &apart[row]);
            }
        }
    });
}

#[test]
fn a_layer_of_few_channels_is_what_its_steps_make() {
    check((1_usize..10, 1_usize..100, 0_usize..3), |(channels, frames, activation)| {
        let then = [Unary::Activation(Activation::Tanh), Unary::Activation(Activation::LeakyRelu { slope: 0.2 }), Unary::Activation(Activation::Relu)][activation];
        let mut noise = Noise::new((channels * 41 + frames) as u64);
        let stride = room(frames);
        let rows = |index: usize| Rows { start: index * channels * stride, stride, channels };
        let [past, x, z, head, y] = [0, 1, 2, 3, 4].map(rows);
        let mut weights = |from: usize| {
            let (bias, weights) = (noise.vec(channels, 0.2), noise.vec(from * channels, 0.3));
            TapWeights::new(from, &bias, |output, input| weights[output * from + input])
        };
        let (wide, narrow) = (weights(2 * channels), weights(channels));
        let signals = noise.vec(5 * channels * stride, 1.0);
        let rows = [past, x, z, head, y];
        let plain =
            Convolution { weights: wide, taps: taps(0..2), add: None, to: 2, then: None, onto: None, passed_on: false };
        let out = Convolution {
            weights: narrow,
            taps: taps(2..3),
            add: Some(1),
            to: 4,
            then: None,
            onto: None,
            passed_on: false,
        };
        for kernels in Kernels::available() {
            let (mut together, mut apart) = (signals.clone(), signals.clone());
            let layer = [Convolution { then: Some(then), onto: Some(3), ..plain.clone() }, out.clone()];
            run(kernels, &[chain(&layer)], &rows, &mut together, frames);
            let steps = [
                chain(std::slice::from_ref(&plain)),
                Step::Unary { operation: then, at: 2 },
                Step::Binary { operation: Binary::Add, x: 2, at: 3 },
                chain(&layer[1..]),
            ];
            run(kernels, &steps, &rows, &mut apart, frames);
            let of = |rows: Range<usize>| rows.map(|row| row * stride..row * stride + frames);
            for row in of(2 * channels..5 * channels) {
                assert_same_bits(&together[row.clone()], &apart[row]);
            }
            // What nobody else looks at may be missing, but nothing else; and one layer may follow another.
            let [first, second] = layer;
            let passed = Convolution { passed_on: true, ..first };
            let (mut alone, mut again) = (signals.clone(), together);
            run(kernels, &[chain(&[passed.clone(), second.clone()])], &rows, &mut alone, frames);
            for row in of(3 * channels..5 * channels) {
                assert_same_bits(&alone[row.clone()], &again[row]);
            }
            let layer = [passed, second];
            let next =
                [Convolution { taps: taps(3..5), ..layer[0].clone() }, Convolution { to: 1, ..layer[1].clone() }];
            let mut both = signals.clone();
            run(kernels, &[chain(&layer), chain(&next)], &rows, &mut both, frames);
            run(kernels, &[chain(&next)], &rows, &mut again, frames);
            for row in of(channels..2 * channels).chain(of(3 * channels..5 * channels)) {
                assert_same_bits(&both[row.clone()], &again[row]);
            }
        }
    });
}

#[test]
fn operations_at_each_frame_are_those_of_slices() {
    let operations = [
        Unary::Activation(Activation::Tanh),
        Unary::Activation(Activation::LeakyRelu { slope: 0.2 }),
        Unary::Activation(Activation::Exp),
        Unary::ScaleOffset { scale: 3.0, offset: -0.5 },
    ];
    let (channels, frames) = (3, 37);
    let stride = room(frames);
    let rows = Rows { start: 2, stride, channels };
    for kernels in Kernels::available() {
        for operation in operations {
            let mut signals = Noise::new(3).vec(2 + channels * stride, 4.0);
            let mut expected = signals.clone();
            run(kernels, &[Step::Unary { operation, at: 0 }], &[rows], &mut signals, frames);
            for channel in 0..channels {
                let row = 2 + channel * stride..2 + channel * stride + frames;
                match operation {
                    Unary::Activation(activation) => kernels.activate(activation, &mut expected[row.clone()]),
                    Unary::ScaleOffset { scale, offset } => {
                        kernels.scale_offset(&mut expected[row.clone()], scale, offset);
                    }
                }
                assert_same_bits(&signals[row.clone()], &expected[row]);
            }
        }
        for (operation, result) in [
            (Binary::Copy, (|_, x| x) as fn(f32, f32) -> f32),
            (Binary::Add, |held, x| held + x),
            (Binary::Multiply, |held, x| held * x),
        ] {
            let mut signals = Noise::new(4).vec(2 + 2 * channels * stride, 4.0);
            let before = signals.clone();
            let x = Rows { start: 2 + channels * stride, ..rows };
            run(kernels, &[Step::Binary { operation, x: 1, at: 0 }], &[rows, x], &mut signals, frames);
            for channel in 0..channels {
                for frame in 0..frames {
                    let at = |rows: Rows| rows.start + channel * stride + frame;
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
    let to = Rows { start: 0, stride: 16, channels: 1 };
    let convolution =
        Convolution { weights, taps: taps(0..1), add: None, to: 1, then: None, onto: None, passed_on: false };
    let rows = [Rows { start: 1, ..to }, to];
    run(Kernels::detect(), &[chain(&[convolution])], &rows, &mut [0.0; 16], 16);
}

#[test]
#[should_panic = "rows beyond the slice"]
fn rows_of_a_layer_beyond_the_slice() {
    let weights = || TapWeights::new(3, &[0.0; 3], |_, _| 1.0);
    let then = Some(Unary::Activation(Activation::Tanh));
    let layer = [
        Convolution { weights: weights(), taps: taps(0..1), add: None, to: 1, then, onto: None, passed_on: true },
        Convolution {
            weights: weights(),
            taps: taps(1..2),
            add: None,
            to: 1,
            then: None,
            onto: None,
            passed_on: false,
        },
    ];
    let rows = [Rows { start: 0, stride: usize::MAX / 2, channels: 3 }, Rows { start: 0, stride: 16, channels: 3 }];
    run(Kernels::detect(), &[chain(&layer)], &rows, &mut [0.0; 48], 16);
}

/// Signals in rings: what comes from one at some delays, for channels of `width`, in blocks of these frames.
fn in_rings(kernels: Kernels, width: usize, delays: &[usize], blocks: &[usize]) -> (Vec<f32>, Vec<f32>) {
    let (round, overlap) = (256, 64);
    let stride = round + overlap + FRAMES_OF_A_VECTOR;
    let rows = |index: usize| Rows { start: index * width * stride, stride, channels: width };
    // The input, what is passed on from layer to layer, and what is heard of that.
    let places = [0, 1, 2].map(|index| Place::new(rows(index), index).in_ring(round, overlap));
    let here = Place::new(rows(3), 3);
    let weights = |inputs: usize| {
        let weights = Noise::new(inputs as u64).vec(inputs * width * width, 0.3);
        TapWeights::new(inputs * width, &vec![0.1; width], |output, input| weights[input * width + output])
    };
    let looks = |place| vec![Taps { place, delays: delays.to_vec() }];
    let first = Convolution {
        weights: weights(delays.len()),
        taps: looks(0),
        add: None,
        to: 3,
        then: Some(Unary::Activation(Activation::Tanh)),
        onto: None,
        passed_on: true,
    };
    let second =
        Convolution { weights: weights(1), taps: taps(3..4), to: 1, then: None, passed_on: false, ..first.clone() };
    let heard = Convolution { taps: looks(1), to: 2, passed_on: false, ..first.clone() };
    let steps = Steps::new([&places[..], &[here]].concat(), [chain(&[first, second]), chain(&[heard])]);
    let mut signals = vec![0.0; 4 * width * stride];
    let mut now = [round - 7, 40, 0, 0];
    let mut noise = Noise::new(5);
    let (mut passed, mut found) = (Vec::new(), Vec::new());
    for &frames in blocks {
        for frame in 0..frames {
            for channel in 0..width {
                signals[rows(0).start + channel * stride + now[0] + frame] = noise.vec(1, 1.0)[0];
            }
        }
        places[0].close(&now, &mut signals, frames);
        kernels.run_steps(&steps, &now, &mut signals, frames);
        for frame in 0..frames {
            for (place, to) in [(1, &mut passed), (2, &mut found)] {
                to.extend((0..width).map(|channel| signals[rows(place).start + channel * stride + now[place] + frame]));
            }
        }
        now[..3].iter_mut().for_each(|now| *now = (*now + frames) % round);
    }
    (passed, found)
}

#[test]
fn what_is_late_comes_round() {
    let delays = [191, 64, 17, 5, 1, 0];
    let odd: Vec<usize> = [7, 64, 1, 40, 33, 16].into_iter().cycle().take(40).collect();
    let frames: usize = odd.iter().sum();
    for width in [1, 3, 5, 8] {
        let (passed, found) = in_rings(Kernels::scalar(), width, &delays, &vec![1; frames]);
        let weights = Noise::new(delays.len() as u64).vec(delays.len() * width * width, 0.3);
        let mut expected = vec![0.0; found.len()];
        for frame in 0..frames {
            for output in 0..width {
                let mut sum = f64::from(0.1_f32);
                for (tap, &delay) in delays.iter().enumerate().filter(|&(_, &delay)| delay <= frame) {
                    for channel in 0..width {
                        let weight = weights[(tap * width + channel) * width + output];
                        sum += f64::from(weight) * f64::from(passed[(frame - delay) * width + channel]);
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

/// A layer of cells: its weights as PyTorch has them, for four gates.
struct Layer {
    cell: Cell,
    inputs: usize,
    hidden: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    fn new(cell: Cell, inputs: usize, hidden: usize) -> Self {
        let mut noise = Noise::new((inputs * 100 + hidden) as u64);
        let mut weights = noise.vec(4 * hidden * (inputs + hidden), 0.4);
        if cell == Cell::Gru {
            // Of the last two gates one hears the inputs only, the other the state only.
            for unit in 0..hidden {
                weights[(2 * hidden + unit) * (inputs + hidden) + inputs..][..hidden].fill(0.0);
                weights[(3 * hidden + unit) * (inputs + hidden)..][..inputs].fill(0.0);
            }
        }
        Self { cell, inputs, hidden, weights, bias: noise.vec(4 * hidden, 0.5) }
    }

    fn run(&self, kernels: Kernels, x: &[f32], block: usize) -> Vec<f32> {
        let row = |gate: usize, unit: usize| gate * self.hidden + unit;
        let width = self.inputs + self.hidden;
        let weight = |gate, unit, input| self.weights[row(gate, unit) * width + input];
        let packed =
            CellWeights::new(self.cell, self.inputs, self.hidden, weight, |gate, unit| self.bias[row(gate, unit)]);
        let (mut h, mut c) = (vec![0.0; 2 * packed.state_len()], vec![0.0; packed.state_len()]);
        let mut y = vec![0.0; x.len() / self.inputs * self.hidden];
        for (x, y) in x.chunks(block * self.inputs).zip(y.chunks_mut(block * self.hidden)) {
            kernels.run_cells(&packed, x, &mut h, &mut c, y);
        }
        y
    }

    fn reference(&self, x: &[f32]) -> Vec<f64> {
        let (mut h, mut c) = (vec![0.0; self.hidden], vec![0.0; self.hidden]);
        let mut y = Vec::new();
        for x in x.chunks_exact(self.inputs) {
            let seen: Vec<f64> = x.iter().map(|&x| f64::from(x)).chain(h.iter().copied()).collect();
            let gate = |gate: usize, unit: usize| {
                let row = gate * self.hidden + unit;
                let weights = &self.weights[row * seen.len()..][..seen.len()];
                let sum: f64 = weights.iter().zip(&seen).map(|(&weight, value)| f64::from(weight) * value).sum();
                sum + f64::from(self.bias[row])
            };
            for unit in 0..self.hidden {
                let [a, b, n, o] = [0, 1, 2, 3].map(|index| gate(index, unit));
                h[unit] = match self.cell {
                    Cell::Lstm => {
                        c[unit] = sigmoid(b) * c[unit] + sigmoid(a) * n.tanh();
                        sigmoid(o) * c[unit].tanh()
                    }
                    Cell::Gru => (1.0 - sigmoid(b)) * (n + sigmoid(a) * o).tanh() + sigmoid(b) * h[unit],
                };
            }
            y.extend(&h);
        }
        y
    }
}

#[test]
fn cells_remember_as_they_should_in_every_variant_and_block() {
    for cell in [Cell::Lstm, Cell::Gru] {
        for (inputs, hidden) in
            [(1, 16), (3, 40), (2, 7), (1, 1), (1, 29), (1, 9), (2, 24), (1, 48), (1, 49), (1, 72), (1, 100)]
        {
            let layer = Layer::new(cell, inputs, hidden);
            let x = Noise::new(9).vec(300 * inputs, 1.5);
            let reference = layer.run(Kernels::scalar(), &x, 300);
            assert_close(&reference, &layer.reference(&x), 0.0, 3e-6);
            for kernels in Kernels::available() {
                for block in [1, 7, 64, 300] {
                    assert_same_bits(&layer.run(kernels, &x, block), &reference);
                }
            }
        }
    }
}

#[test]
fn far_from_zero_cells_stay_bounded_and_what_is_no_number_stays_seen() {
    let layer = Layer::new(Cell::Lstm, 1, 16);
    let loud = layer.run(Kernels::detect(), &[1e30, -1e30, f32::INFINITY, 5.0, 0.0, 1.0], 6);
    assert!(loud.iter().all(|value| value.abs() <= 1.000_001), "{loud:?}");
    let nan = layer.run(Kernels::detect(), &[0.5, f32::NAN, 0.5], 3);
    assert!(nan[..16].iter().all(|value| value.is_finite()));
    assert!(nan[16..].iter().all(|value| value.is_nan()));
}
