//! Convolution: a product of weights with taps, in tiles.

use super::buffer_view::ViewsAt;
use super::elementwise::{self, Unary};
use super::window::{DelayedWindow, SignalMemory, SignalWindow};
use crate::arithmetic::Add;
use crate::simd::{LANES, Simd};

/// Maximum number of outputs per group.
const WIDTH: usize = 8;

/// Partial sums of a convolution with a single output.
const CHAINS: usize = 4;

/// Weights of a [`Convolution`], packed on construction.
#[derive(Clone, Debug)]
pub struct TapWeights {
    inputs: usize,
    /// As few groups as possible.
    groups: Vec<OutputGroup>,
    /// `[group][input][output of the group]`
    pub(super) weights: Vec<f32>,
    /// `[output]`
    pub(super) bias: Vec<f32>,
    /// Number of outputs of the widest group.
    pub(super) widest: usize,
}

/// Outputs whose weights for one input are adjacent, so that they are summed together.
#[derive(Clone, Copy, Debug)]
struct OutputGroup {
    first: usize,
    /// At most [`WIDTH`].
    width: usize,
}

impl TapWeights {
    /// Packs `weight(output, input)` for `bias.len()` outputs. An input is one channel at one
    /// delay; inputs are summed in order.
    ///
    /// # Panics
    /// If `bias` is empty.
    pub fn new(inputs: usize, bias: &[f32], weight: impl Fn(usize, usize) -> f32) -> Self {
        let outputs = bias.len();
        assert!(outputs > 0, "a convolution has outputs");
        let count = outputs.div_ceil(WIDTH);
        // AVX2 has registers for four outputs at a time.
        let even = !outputs.is_multiple_of(4);
        let bound = |group: usize| {
            if even {
                group * outputs / count
            } else {
                outputs.min(group * WIDTH)
            }
        };
        let groups = (0..count).map(|group| OutputGroup {
            first: bound(group),
            width: bound(group + 1) - bound(group),
        });
        let groups: Vec<OutputGroup> = groups.collect();
        let mut weights = Vec::with_capacity(outputs * inputs);
        for &OutputGroup { first, width } in &groups {
            for input in 0..inputs {
                weights.extend((first..first + width).map(|output| weight(output, input)));
            }
        }
        let widest = groups
            .iter()
            .map(|group| group.width)
            .max()
            .unwrap_or(WIDTH);
        Self {
            inputs,
            groups,
            weights,
            bias: bias.to_vec(),
            widest,
        }
    }

    /// Returns the number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of outputs.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Returns the memory of weights and bias in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.weights) + size_of_val(&*self.bias)
    }
}

/// All channels of a view at some delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taps {
    /// Index of the view.
    pub view: usize,
    /// Delays in frames.
    pub delays: Vec<usize>,
}

impl Taps {
    /// The taps of a 1×1 convolution: no delay.
    pub fn now(view: usize) -> Self {
        Self {
            view,
            delays: vec![0],
        }
    }
}

/// Convolution with all that is computed in its pass:
/// `output[o][t] = activation(bias[o] + Σ weight[o][input] · x[input][t] + residual[o][t])`.
/// Signals are indices of views.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// Weights and bias.
    pub weights: TapWeights,
    /// Inputs, in the order of the weights.
    pub taps: Vec<Taps>,
    /// Signal that is added before the activation.
    pub residual: Option<usize>,
    /// Destination.
    pub output: usize,
    /// Applied to each output, such as an activation.
    pub activation: Option<Unary>,
    /// Signal to which the output is added as well, such as the sum of all heads.
    pub accumulate_into: Option<usize>,
    /// Set if only the next convolution of the pass reads the output, which then may stay in
    /// registers instead of being stored.
    pub transient: bool,
}

impl Convolution {
    /// A convolution without residual, activation or accumulation.
    pub fn new(weights: TapWeights, taps: Vec<Taps>, output: usize) -> Self {
        Self {
            weights,
            taps,
            residual: None,
            output,
            activation: None,
            accumulate_into: None,
            transient: false,
        }
    }
}

/// Convolutions that are interleaved a few frames at a time.
#[derive(Clone, Debug)]
pub(super) struct ConvolutionGroup {
    convolutions: Vec<Convolution>,
    /// Sums of the widest output group of all.
    widest: usize,
}

impl ConvolutionGroup {
    /// Groups convolutions, which are run in this order.
    pub fn new(convolutions: Vec<Convolution>) -> Self {
        let sums = |convolution: &Convolution| match convolution.weights.widest {
            1 => CHAINS,
            widest => widest,
        };
        let widest = convolutions.iter().map(sums).max().unwrap_or(WIDTH);
        Self {
            convolutions,
            widest,
        }
    }

    /// Returns the memory of the weights in bytes.
    pub fn bytes(&self) -> usize {
        self.convolutions
            .iter()
            .map(|convolution| convolution.weights.bytes())
            .sum()
    }

    /// Computes `frames` frames.
    #[inline(always)]
    pub fn run<S: Simd>(&self, s: S, views: ViewsAt<'_>, signals: &mut [f32], frames: usize) {
        // The same for every chunk of a network, so it is only checked in debug builds; without the
        // check a mismatch gives wrong sums, but no access outside the slices.
        debug_assert!(self.convolutions.iter().all(
            |Convolution {
                 weights,
                 taps,
                 output,
                 ..
             }| {
                let inputs: usize = taps
                    .iter()
                    .map(|taps| views.views[taps.view].channels() * taps.delays.len())
                    .sum();
                inputs == weights.inputs && views.views[*output].channels() == weights.outputs()
            }
        ));
        // As many vectors of frames at a time as there are registers for the sums of the widest
        // group.
        let most = [4, 2]
            .into_iter()
            .find(|vectors| fits::<S>(vectors * self.widest, *vectors))
            .unwrap_or(1);
        let (mut at, mut left) = (0, frames.div_ceil(LANES));
        while left > 0 {
            let vectors = if left >= most { most } else { left.min(2) };
            match vectors {
                4 => self.all::<S, 4>(s, views, signals, at),
                2 => self.all::<S, 2>(s, views, signals, at),
                _ => self.all::<S, 1>(s, views, signals, at),
            }
            at += vectors * LANES;
            left -= vectors;
        }
        for &Convolution {
            output,
            accumulate_into,
            ..
        } in &self.convolutions
        {
            views.mirror(output, signals, frames);
            if let Some(accumulate_into) = accumulate_into {
                views.mirror(accumulate_into, signals, frames);
            }
        }
    }

    /// Computes F vectors of all convolutions from frame `at` on.
    #[inline(always)]
    fn all<S: Simd, const F: usize>(
        &self,
        s: S,
        views: ViewsAt<'_>,
        signals: &mut [f32],
        at: usize,
    ) {
        // Unreachable instantiation; returning lets the compiler drop it.
        if !fits::<S>(F, F) {
            return;
        }
        for convolution in &self.convolutions {
            let all = &convolution.weights;
            let mut packed = 0;
            for &OutputGroup { first, width } in &all.groups {
                let weights = &all.weights[packed..packed + all.inputs * width];
                packed += weights.len();
                let group = Tile {
                    convolution,
                    views,
                    signals: SignalMemory::new(signals),
                    at,
                    first,
                    weights,
                };
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
                    _ => group.sum_one::<S, F>(s),
                }
            }
            let rows = |view: usize| views.rows(view).skip(at);
            let (output, sum) = (
                rows(convolution.output),
                convolution.accumulate_into.map(rows),
            );
            match (convolution.activation, sum) {
                (Some(activation), sum) => {
                    elementwise::apply_unary(s, activation, signals, output, sum, F * LANES);
                }
                (None, Some(sum)) => {
                    elementwise::map_rows(s, &Add, signals, [output], sum, F * LANES)
                }
                (None, None) => {}
            }
        }
    }
}

/// Some frames of an output group.
struct Tile<'a> {
    convolution: &'a Convolution,
    views: ViewsAt<'a>,
    signals: SignalMemory<'a>,
    at: usize,
    /// First output of the group.
    first: usize,
    /// `[input][output of the group]`
    weights: &'a [f32],
}

impl<'a> Tile<'a> {
    /// Returns O channels of a view from `channel` on.
    #[inline(always)]
    fn window<const O: usize, const F: usize>(
        &self,
        view: usize,
        channel: usize,
    ) -> SignalWindow<'a, O, F> {
        let (view, position) = self.views.get(view);
        self.signals.window(view, channel, position, self.at)
    }

    /// Computes F vectors of outputs `skip..skip + O` of a group of W.
    #[inline(always)]
    fn sum<S: Simd, const W: usize, const O: usize, const F: usize>(&self, s: S, skip: usize) {
        // Unreachable instantiation; returning lets the compiler drop it.
        if !fits::<S>(O * F, F) {
            return;
        }
        let Self {
            convolution: Convolution {
                weights: all, taps, ..
            },
            views,
            signals,
            at,
            first,
            weights,
        } = *self;
        let first = first + skip;
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            sums[o] = [s.splat(all.bias[first + o]); F];
        }
        let mut left = weights.as_chunks::<W>().0;
        for Taps { view, delays } in taps {
            let (view, position) = views.get(*view);
            let channels = view.channels();
            let (here, rest) = left.split_at(delays.len() * channels);
            left = rest;
            // Fast path: the channel count equals the compile-time width of the group.
            if channels == W {
                sums = add_taps(
                    s,
                    signals.delayed(view, 0, position, at),
                    delays,
                    here,
                    skip,
                    sums,
                );
                continue;
            }
            for (&delay, mut single) in delays.iter().zip(here.chunks_exact(channels.max(1))) {
                let mut channel = 0;
                // Signals with 2·W channels take two iterations.
                while let Some((together, rest)) = single.split_first_chunk::<W>() {
                    let window = signals
                        .delayed::<W, F>(view, channel, position, at)
                        .before(delay);
                    for k in 0..W {
                        sums = multiply_add(s, window.load(s, k), &together[k], skip, sums);
                    }
                    channel += W;
                    single = rest;
                }
                for weight in single {
                    let window = signals
                        .delayed::<1, F>(view, channel, position, at)
                        .before(delay);
                    sums = multiply_add(s, window.load(s, 0), weight, skip, sums);
                    channel += 1;
                }
            }
        }
        self.finish(s, sums, first);
    }

    /// Computes F vectors of the only output of a group, in several chains of sums: a single chain
    /// would be bound by the latency of the multiply-add.
    #[inline(always)]
    fn sum_one<S: Simd, const F: usize>(&self, s: S) {
        let Self {
            convolution: Convolution {
                weights: all, taps, ..
            },
            views,
            signals,
            at,
            first,
            weights,
        } = *self;
        let mut chains = [[s.splat(0.0); F]; CHAINS];
        chains[0] = [s.splat(all.bias[first]); F];
        let mut left = weights;
        for Taps { view, delays } in taps {
            let (view, position) = views.get(*view);
            let channels = view.channels();
            let (here, rest) = left.split_at(delays.len() * channels);
            left = rest;
            let (together, single) = delays.as_chunks::<CHAINS>();
            for channel in 0..channels {
                let delayed = signals.delayed::<1, F>(view, channel, position, at);
                let mut weights = here[channel..].iter().step_by(channels);
                for delays in together {
                    for c in 0..CHAINS {
                        let weight = s.splat(*weights.next().expect("a weight for each tap"));
                        let x = delayed.before(delays[c]).load(s, 0);
                        for f in 0..F {
                            chains[c][f] = s.fma(weight, x[f], chains[c][f]);
                        }
                    }
                }
                for (&delay, &weight) in single.iter().zip(weights) {
                    let x = delayed.before(delay).load(s, 0);
                    for f in 0..F {
                        chains[0][f] = s.fma(s.splat(weight), x[f], chains[0][f]);
                    }
                }
            }
        }
        let mut sums = [[s.splat(0.0); F]; 1];
        for f in 0..F {
            sums[0][f] = s.add(
                s.add(chains[0][f], chains[1][f]),
                s.add(chains[2][f], chains[3][f]),
            );
        }
        self.finish(s, sums, first);
    }

    /// Adds the residual and stores the sums.
    #[inline(always)]
    fn finish<S: Simd, const O: usize, const F: usize>(
        &self,
        s: S,
        mut sums: [[S::V; F]; O],
        first: usize,
    ) {
        if let Some(residual) = self.convolution.residual {
            let window = self.window::<O, F>(residual, first);
            for o in 0..O {
                let residual = window.load(s, o);
                for f in 0..F {
                    sums[o][f] = s.add(residual[f], sums[o][f]);
                }
            }
        }
        let output = self.window::<O, F>(self.convolution.output, first);
        for o in 0..O {
            output.store(s, sums[o], o);
        }
    }
}

/// Returns whether so many sums, of `vectors` vectors of frames, fit into the registers beside
/// their operands.
pub(super) fn fits<S: Simd>(sums: usize, vectors: usize) -> bool {
    sums <= if S::MANY_REGISTERS { 16 } else { 4 } && (vectors == 1 || !S::SMALL_TILES)
}

/// Adds all channels of a signal at some delays to all sums of a tile; weights of a group begin at
/// `skip`.
#[inline(always)]
pub(super) fn add_taps<S: Simd, const W: usize, const O: usize, const F: usize>(
    s: S,
    delayed: DelayedWindow<'_, W, F>,
    delays: &[usize],
    weights: &[[f32; W]],
    skip: usize,
    mut sums: [[S::V; F]; O],
) -> [[S::V; F]; O] {
    for (&delay, together) in delays.iter().zip(weights.as_chunks::<W>().0) {
        let window = delayed.before(delay);
        for k in 0..W {
            sums = multiply_add(s, window.load(s, k), &together[k], skip, sums);
        }
    }
    sums
}

/// Adds one input to all sums of a tile; weights of a group begin at `skip`.
#[inline(always)]
pub(super) fn multiply_add<S: Simd, const W: usize, const O: usize, const F: usize>(
    s: S,
    x: [S::V; F],
    weights: &[f32; W],
    skip: usize,
    mut sums: [[S::V; F]; O],
) -> [[S::V; F]; O] {
    for o in 0..O {
        let weight = s.splat(weights[skip + o]);
        for f in 0..F {
            sums[o][f] = s.fma(weight, x[f], sums[o][f]);
        }
    }
    sums
}
