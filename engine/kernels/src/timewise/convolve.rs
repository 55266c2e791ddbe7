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

    /// Outputs of the widest group.
    fn widest(&self) -> usize {
        self.groups.iter().map(|group| group.width).max().unwrap_or(0)
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
    /// What is read, in the order of the weights: some channels of a signal at one delay each.
    pub taps: &'a [Rows],
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
    chain: &'a [Convolution<'a>],
    signals: &'a mut [f32],
    frames: usize,
}

impl Kernel for Convolve<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let widest = self.chain.iter().map(|convolution| convolution.weights.widest()).max().unwrap_or(WIDTH);
        // As many frames at a time as there are registers for the sums of the widest group, or of half of it.
        let sums = if S::MANY_REGISTERS { 16 } else { 4 };
        let most = [4, 2].into_iter().find(|vectors| vectors * widest <= sums).unwrap_or(1);
        let (mut at, mut left) = (0, self.frames.div_ceil(LANES));
        while left > 0 {
            let vectors = if left >= most { most } else { left.min(2) };
            match vectors {
                4 => self.all::<S, 4>(s, at),
                2 => self.all::<S, 2>(s, at),
                _ => self.all::<S, 1>(s, at),
            }
            at += vectors * LANES;
            left -= vectors;
        }
    }
}

impl Convolve<'_> {
    /// All of the chain, F vectors from frame `at` on.
    #[inline(always)]
    fn all<S: Simd, const F: usize>(&mut self, s: S, at: usize) {
        for convolution in self.chain {
            let all = convolution.weights;
            let mut packed = 0;
            for &Group { first, width } in &all.groups {
                let weights = &all.weights[packed..packed + all.inputs * width];
                packed += weights.len();
                let mut group = Tile { convolution, signals: self.signals, at, first, weights };
                match (width, S::MANY_REGISTERS) {
                    (8, true) => group.sum::<S, 8, 8, F>(s, 0),
                    (7, true) => group.sum::<S, 7, 7, F>(s, 0),
                    (6, true) => group.sum::<S, 6, 6, F>(s, 0),
                    (5, true) => group.sum::<S, 5, 5, F>(s, 0),
                    (8, false) => {
                        group.sum::<S, 8, 4, F>(s, 0);
                        group.sum::<S, 8, 4, F>(s, 4);
                    }
                    (7, false) => {
                        group.sum::<S, 7, 4, F>(s, 0);
                        group.sum::<S, 7, 3, F>(s, 4);
                    }
                    (6, false) => {
                        group.sum::<S, 6, 3, F>(s, 0);
                        group.sum::<S, 6, 3, F>(s, 3);
                    }
                    (5, false) => {
                        group.sum::<S, 5, 3, F>(s, 0);
                        group.sum::<S, 5, 2, F>(s, 3);
                    }
                    (4, _) => group.sum::<S, 4, 4, F>(s, 0),
                    (3, _) => group.sum::<S, 3, 3, F>(s, 0),
                    (2, _) => group.sum::<S, 2, 2, F>(s, 0),
                    _ => group.sum::<S, 1, 1, F>(s, 0),
                }
            }
            let here = |rows: Rows| Rows { start: rows.start + at, ..rows };
            let (to, onto) = (here(convolution.to), convolution.onto.map(here));
            match (convolution.then, onto) {
                (Some(then), onto) => each::then(s, then, self.signals, to, onto, F * LANES),
                (None, Some(onto)) => each::over(s, &Add, self.signals, [to], onto, F * LANES),
                (None, None) => {}
            }
        }
    }
}

/// Some frames of a group of outputs.
struct Tile<'a> {
    convolution: &'a Convolution<'a>,
    signals: &'a mut [f32],
    at: usize,
    /// The first output.
    first: usize,
    /// Those of the group.
    weights: &'a [f32],
}

impl Tile<'_> {
    /// Outputs `skip..skip + O` of a group of `W`, F vectors.
    #[inline(always)]
    fn sum<S: Simd, const W: usize, const O: usize, const F: usize>(&mut self, s: S, skip: usize) {
        let Self { convolution: Convolution { weights: all, taps, add, to, .. }, signals, at, first, weights } = self;
        let first = *first + skip;
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            let bias = s.splat(all.bias[first + o]);
            for f in 0..F {
                sums[o][f] = bias;
            }
        }
        let mut weights = weights.as_chunks::<W>().0.iter();
        for tap in *taps {
            let mut row = tap.start + *at;
            for weight in weights.by_ref().take(tap.channels) {
                let x = signals[row..row + F * LANES].as_chunks().0;
                row += tap.stride;
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
        }
        let row = |rows: &Rows, o: usize| {
            let start = rows.start + (first + o) * rows.stride + *at;
            start..start + F * LANES
        };
        if let Some(add) = add {
            for o in 0..O {
                let x = signals[row(add, o)].as_chunks().0;
                for f in 0..F {
                    sums[o][f] = s.add(s.load(&x[f]), sums[o][f]);
                }
            }
        }
        for o in 0..O {
            let y = signals[row(to, o)].as_chunks_mut().0;
            for f in 0..F {
                s.store(sums[o][f], &mut y[f]);
            }
        }
    }
}

impl Kernels {
    /// Computes `frames` frames of convolutions over the rows of `signals`, one after the other for a few frames at a time:
    /// what one of them makes, a later one may read at the same frame, but not later, and none may change what one before
    /// it reads at another frame.
    ///
    /// # Panics
    /// When weights are for another number of inputs or outputs, or whole vectors of `frames` frames of a row lie outside
    /// the slice.
    pub fn convolve_rows(self, chain: &[Convolution<'_>], signals: &mut [f32], frames: usize) {
        for Convolution { weights, taps, to, .. } in chain {
            assert_eq!(taps.iter().map(|tap| tap.channels).sum::<usize>(), weights.inputs, "a weight for each input");
            assert_eq!(to.channels, weights.outputs(), "a row for each output");
        }
        self.run(Convolve { chain, signals, frames });
    }
}
