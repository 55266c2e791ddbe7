//! The convolution: a product of weights with taps, in tiles.

use super::Rows;
use super::each::{self, Unary};
use crate::Kernels;
use crate::arithmetic::Add;
use crate::simd::{Kernel, LANES, Simd};

/// Most outputs of a tile: their weights for one input lie side by side.
const WIDTH: usize = 8;

/// Weights of a convolution for [`Kernels::convolve_rows`], packed once and then only read.
#[derive(Clone, Debug)]
pub struct TapWeights {
    inputs: usize,
    /// As few as there can be, as even as they can be.
    groups: Vec<Group>,
    /// `[group][input][output of the group]`
    weights: Vec<f32>,
    /// `[output]`
    bias: Vec<f32>,
}

/// Outputs whose weights for one input lie side by side.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    /// At most [`WIDTH`].
    width: usize,
}

impl TapWeights {
    /// Packs `weight(output, input)`; an input is one channel at one delay, in the order in which they are to be summed.
    ///
    /// # Panics
    /// If there are no outputs: there are as many as there are values of the bias.
    pub fn new(inputs: usize, bias: &[f32], weight: impl Fn(usize, usize) -> f32) -> Self {
        let outputs = bias.len();
        assert!(outputs > 0, "a convolution has outputs");
        let count = outputs.div_ceil(WIDTH);
        let bound = |group: usize| group * outputs / count;
        let groups = (0..count).map(|group| Group { first: bound(group), width: bound(group + 1) - bound(group) });
        let groups: Vec<Group> = groups.collect();
        let mut weights = Vec::with_capacity(outputs * inputs);
        for &Group { first, width } in &groups {
            for input in 0..inputs {
                weights.extend((first..first + width).map(|output| weight(output, input)));
            }
        }
        Self { inputs, groups, weights, bias: bias.to_vec() }
    }

    /// Rows that go in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Channels that come out.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights) + size_of_val(&*self.bias)
    }
}

/// A convolution at work: `y[o][t] = then(bias[o] + Σ weight[o][input] · x[input][t] + add[o][t])`.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<'a> {
    /// The weights.
    pub weights: &'a TapWeights,
    /// Where the row of each input starts, in the order of the weights.
    pub inputs: &'a [usize],
    /// A residual.
    pub add: Option<Rows>,
    /// Where `y` goes.
    pub to: Rows,
    /// The activation.
    pub then: Option<Unary>,
    /// Where `y` is added as well, such as the sum of all heads.
    pub onto: Option<Rows>,
}

struct Convolve<'a> {
    convolution: Convolution<'a>,
    signals: &'a mut [f32],
    frames: usize,
}

impl Kernel for Convolve<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let all = self.convolution.weights;
        let mut packed = 0;
        for &Group { first, width } in &all.groups {
            let weights = &all.weights[packed..packed + all.inputs * width];
            packed += weights.len();
            if S::MANY_REGISTERS {
                match width {
                    8 => self.group::<S, 8, 8, 2>(s, first, weights, 0),
                    7 => self.group::<S, 7, 7, 2>(s, first, weights, 0),
                    6 => self.group::<S, 6, 6, 2>(s, first, weights, 0),
                    5 => self.group::<S, 5, 5, 2>(s, first, weights, 0),
                    4 => self.group::<S, 4, 4, 2>(s, first, weights, 0),
                    3 => self.group::<S, 3, 3, 2>(s, first, weights, 0),
                    2 => self.group::<S, 2, 2, 2>(s, first, weights, 0),
                    _ => self.group::<S, 1, 1, 2>(s, first, weights, 0),
                }
            } else {
                match width {
                    8 => {
                        self.group::<S, 8, 4, 1>(s, first, weights, 0);
                        self.group::<S, 8, 4, 1>(s, first, weights, 4);
                    }
                    7 => {
                        self.group::<S, 7, 4, 1>(s, first, weights, 0);
                        self.group::<S, 7, 3, 1>(s, first, weights, 4);
                    }
                    6 => {
                        self.group::<S, 6, 3, 1>(s, first, weights, 0);
                        self.group::<S, 6, 3, 1>(s, first, weights, 3);
                    }
                    5 => {
                        self.group::<S, 5, 3, 1>(s, first, weights, 0);
                        self.group::<S, 5, 2, 2>(s, first, weights, 3);
                    }
                    4 => self.group::<S, 4, 4, 1>(s, first, weights, 0),
                    3 => self.group::<S, 3, 3, 1>(s, first, weights, 0),
                    2 => self.group::<S, 2, 2, 2>(s, first, weights, 0),
                    _ => self.group::<S, 1, 1, 2>(s, first, weights, 0),
                }
            }
        }
        let Self { convolution: Convolution { to, then, onto, .. }, signals, frames } = self;
        match then {
            Some(then) => each::then(s, then, signals, to, onto, frames),
            None => {
                if let Some(onto) = onto {
                    each::over(s, &Add, signals, [to], onto, frames);
                }
            }
        }
    }
}

impl Convolve<'_> {
    /// Outputs `skip..skip + O` of a group of `W` that starts at `first`: all frames, F vectors at a time.
    #[inline(always)]
    fn group<S: Simd, const W: usize, const O: usize, const F: usize>(
        &mut self,
        s: S,
        first: usize,
        weights: &[f32],
        skip: usize,
    ) {
        let (mut at, mut vectors) = (0, self.frames.div_ceil(LANES));
        while vectors >= F {
            self.tile::<S, W, O, F>(s, at, first, weights, skip);
            at += F * LANES;
            vectors -= F;
        }
        if F > 2 && vectors >= 2 {
            self.tile::<S, W, O, 2>(s, at, first, weights, skip);
            at += 2 * LANES;
            vectors -= 2;
        }
        if F > 1 && vectors >= 1 {
            self.tile::<S, W, O, 1>(s, at, first, weights, skip);
        }
    }

    /// Outputs `skip..skip + O` of a group of `W` that starts at `first`, F vectors from frame `at` on.
    #[inline(always)]
    fn tile<S: Simd, const W: usize, const O: usize, const F: usize>(
        &mut self,
        s: S,
        at: usize,
        first: usize,
        weights: &[f32],
        skip: usize,
    ) {
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            let bias = s.splat(self.convolution.weights.bias[first + skip + o]);
            for f in 0..F {
                sums[o][f] = bias;
            }
        }
        let weights = weights.as_chunks::<W>().0;
        for (weight, &row) in weights.iter().zip(self.convolution.inputs) {
            let x = self.signals[row + at..row + at + F * LANES].as_chunks().0;
            let mut values = [s.splat(0.0); F];
            for f in 0..F {
                values[f] = s.load(&x[f]);
            }
            for o in 0..O {
                let weight = s.splat(weight[skip + o]);
                for f in 0..F {
                    sums[o][f] = s.fma(weight, values[f], sums[o][f]);
                }
            }
        }
        if let Some(add) = self.convolution.add {
            for o in 0..O {
                let row = add.start + (first + skip + o) * add.stride + at;
                let x = self.signals[row..row + F * LANES].as_chunks().0;
                for f in 0..F {
                    sums[o][f] = s.add(s.load(&x[f]), sums[o][f]);
                }
            }
        }
        for o in 0..O {
            let row = self.convolution.to.start + (first + skip + o) * self.convolution.to.stride + at;
            let y = self.signals[row..row + F * LANES].as_chunks_mut().0;
            for f in 0..F {
                s.store(sums[o][f], &mut y[f]);
            }
        }
    }
}

impl Kernels {
    /// Computes `frames` frames of a convolution over the rows of `signals`.
    ///
    /// # Panics
    /// When the weights are for another number of inputs or outputs, or whole vectors of `frames` frames of a row lie
    /// outside the slice.
    pub fn convolve_rows(self, convolution: Convolution<'_>, signals: &mut [f32], frames: usize) {
        let Convolution { weights, inputs, to, .. } = convolution;
        assert_eq!(inputs.len(), weights.inputs, "a weight for each input");
        assert_eq!(to.channels, weights.outputs(), "a row for each output");
        self.run(Convolve { convolution, signals, frames });
    }
}
