//! The convolution: a product of weights with taps, in tiles.

use super::each::{self, Unary};
use super::places::Places;
use super::window::{Past, Signals, Window};
use crate::arithmetic::Add;
use crate::simd::{LANES, Simd};

/// Most outputs of a tile: their weights for one input lie side by side.
const WIDTH: usize = 8;

/// Sums of which a single output is made.
const CHAINS: usize = 4;

/// Weights of a [`Convolution`], packed once and then only read.
#[derive(Clone, Debug)]
pub struct TapWeights {
    inputs: usize,
    /// As few as there can be.
    groups: Vec<Group>,
    /// `[group][input][output of the group]`
    pub(super) weights: Vec<f32>,
    /// `[output]`
    pub(super) bias: Vec<f32>,
    /// Outputs of the widest group.
    pub(super) widest: usize,
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
        // Fours are what AVX2 has registers for.
        let even = !outputs.is_multiple_of(4);
        let bound = |group: usize| if even { group * outputs / count } else { outputs.min(group * WIDTH) };
        let groups = (0..count).map(|group| Group { first: bound(group), width: bound(group + 1) - bound(group) });
        let groups: Vec<Group> = groups.collect();
        let mut weights = Vec::with_capacity(outputs * inputs);
        for &Group { first, width } in &groups {
            for input in 0..inputs {
                weights.extend((first..first + width).map(|output| weight(output, input)));
            }
        }
        let widest = groups.iter().map(|group| group.width).max().unwrap_or(WIDTH);
        Self { inputs, groups, weights, bias: bias.to_vec(), widest }
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

/// Some channels of a signal at some delays: for each of these all channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taps {
    /// The signal, as a place in the list.
    pub place: usize,
    /// In frames.
    pub delays: Vec<usize>,
}

impl Taps {
    /// Those of a 1×1 convolution.
    pub fn now(place: usize) -> Self {
        Self { place, delays: vec![0] }
    }
}

/// A convolution: `y[o][t] = then(bias[o] + Σ weight[o][input] · x[input][t] + add[o][t])`. What it reads and writes are places in
/// a list.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// The weights.
    pub weights: TapWeights,
    /// What is read, in the order of the weights.
    pub taps: Vec<Taps>,
    /// A residual.
    pub add: Option<usize>,
    /// Where `y` goes.
    pub to: usize,
    /// The activation.
    pub then: Option<Unary>,
    /// Where `y` is added as well, such as the sum of all heads.
    pub onto: Option<usize>,
    /// Whether nobody looks at `y` but the next convolution in its step: then it need not be stored.
    pub passed_on: bool,
}

/// The convolutions of a step: [`Step::Convolve`](super::Step::Convolve).
#[derive(Clone, Debug)]
pub(super) struct Chain {
    convolutions: Vec<Convolution>,
    /// Sums of the widest group of all.
    widest: usize,
}

impl Chain {
    /// These, in their order.
    pub fn new(convolutions: Vec<Convolution>) -> Self {
        let sums = |convolution: &Convolution| match convolution.weights.widest {
            1 => CHAINS,
            widest => widest,
        };
        let widest = convolutions.iter().map(sums).max().unwrap_or(WIDTH);
        Self { convolutions, widest }
    }

    /// Memory that the weights take.
    pub fn bytes(&self) -> usize {
        self.convolutions.iter().map(|convolution| convolution.weights.bytes()).sum()
    }

    /// Computes so many frames.
    #[inline(always)]
    pub fn run<S: Simd>(&self, s: S, places: Places<'_>, signals: &mut [f32], frames: usize) {
        // The same for each chunk that a network ever plays, so it is looked at where mistakes are looked for. Whatever is
        // given, nothing outside the slices is read.
        debug_assert!(self.convolutions.iter().all(|Convolution { weights, taps, to, .. }| {
            let inputs: usize = taps.iter().map(|taps| places.list[taps.place].channels() * taps.delays.len()).sum();
            inputs == weights.inputs && places.list[*to].channels() == weights.outputs()
        }));
        // As many frames at a time as there are registers for the sums of the widest group, or of half of it.
        let most = [4, 2].into_iter().find(|vectors| vectors * self.widest <= sums_at_once::<S>()).unwrap_or(1);
        let (mut at, mut left) = (0, frames.div_ceil(LANES));
        while left > 0 {
            let vectors = if left >= most { most } else { left.min(2) };
            match vectors {
                4 => self.all::<S, 4>(s, places, signals, at),
                2 => self.all::<S, 2>(s, places, signals, at),
                _ => self.all::<S, 1>(s, places, signals, at),
            }
            at += vectors * LANES;
            left -= vectors;
        }
        for Convolution { to, onto, .. } in &self.convolutions {
            places.close(*to, signals, frames);
            if let Some(onto) = *onto {
                places.close(onto, signals, frames);
            }
        }
    }

    /// All of them, F vectors from frame `at` on.
    #[inline(always)]
    fn all<S: Simd, const F: usize>(&self, s: S, places: Places<'_>, signals: &mut [f32], at: usize) {
        for convolution in &self.convolutions {
            let all = &convolution.weights;
            let mut packed = 0;
            for &Group { first, width } in &all.groups {
                let weights = &all.weights[packed..packed + all.inputs * width];
                packed += weights.len();
                let group = Tile { convolution, places, signals: Signals::of(signals), at, first, weights };
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
            let here = |place: usize| places.rows(place).skip(at);
            let (to, onto) = (here(convolution.to), convolution.onto.map(here));
            match (convolution.then, onto) {
                (Some(then), onto) => each::then(s, then, signals, to, onto, F * LANES),
                (None, Some(onto)) => each::over(s, &Add, signals, [to], onto, F * LANES),
                (None, None) => {}
            }
        }
    }
}

/// Some frames of a group of outputs.
struct Tile<'a> {
    convolution: &'a Convolution,
    places: Places<'a>,
    signals: Signals<'a>,
    at: usize,
    /// The first output.
    first: usize,
    /// Those of the group.
    weights: &'a [f32],
}

impl<'a> Tile<'a> {
    /// Channels of a place from one on.
    #[inline(always)]
    fn window<const O: usize, const F: usize>(&self, place: usize, channel: usize) -> Window<'a, O, F> {
        let (place, now) = self.places.get(place);
        self.signals.window(place, channel, now, self.at)
    }

    /// Outputs `skip..skip + O` of a group of `W`, F vectors.
    #[inline(always)]
    fn sum<S: Simd, const W: usize, const O: usize, const F: usize>(&self, s: S, skip: usize) {
        // More are never asked for, so there need not be code for them.
        if O * F > sums_at_once::<S>() {
            return;
        }
        let Self { convolution: Convolution { weights: all, taps, .. }, places, signals, at, first, weights } = *self;
        let first = first + skip;
        let mut sums = [[s.splat(0.0); F]; O];
        for o in 0..O {
            sums[o] = [s.splat(all.bias[first + o]); F];
        }
        let mut left = weights.as_chunks::<W>().0;
        for Taps { place, delays } in taps {
            let (place, now) = places.get(*place);
            let channels = place.channels();
            let (here, rest) = left.split_at(delays.len() * channels);
            left = rest;
            // Most signals have as many channels as a tile has outputs: of a number that is known, nothing waits for it.
            if channels == W {
                sums = add_taps(s, signals.past(place, 0, now, at), delays, here, skip, sums);
                continue;
            }
            for (&delay, mut single) in delays.iter().zip(here.chunks_exact(channels.max(1))) {
                let mut channel = 0;
                // Others have twice as many: a loop that is none.
                while let Some((together, rest)) = single.split_first_chunk::<W>() {
                    let window = signals.past::<W, F>(place, channel, now, at).before(delay);
                    for k in 0..W {
                        sums = multiply_add(s, window.load(s, k), &together[k], skip, sums);
                    }
                    channel += W;
                    single = rest;
                }
                for weight in single {
                    let window = signals.past::<1, F>(place, channel, now, at).before(delay);
                    sums = multiply_add(s, window.load(s, 0), weight, skip, sums);
                    channel += 1;
                }
            }
        }
        self.finish(s, sums, first);
    }

    /// The only output of a group, F vectors: in several chains of sums, of which one alone would be waited for at each step.
    #[inline(always)]
    fn sum_one<S: Simd, const F: usize>(&self, s: S) {
        let Self { convolution: Convolution { weights: all, taps, .. }, places, signals, at, first, weights } = *self;
        let mut chains = [[s.splat(0.0); F]; CHAINS];
        chains[0] = [s.splat(all.bias[first]); F];
        let mut left = weights;
        for Taps { place, delays } in taps {
            let (place, now) = places.get(*place);
            let channels = place.channels();
            let (here, rest) = left.split_at(delays.len() * channels);
            left = rest;
            let (together, single) = delays.as_chunks::<CHAINS>();
            for channel in 0..channels {
                let past = signals.past::<1, F>(place, channel, now, at);
                let mut weights = here[channel..].iter().step_by(channels);
                for delays in together {
                    for c in 0..CHAINS {
                        let weight = s.splat(*weights.next().expect("a weight for each tap"));
                        let x = past.before(delays[c]).load(s, 0);
                        for f in 0..F {
                            chains[c][f] = s.fma(weight, x[f], chains[c][f]);
                        }
                    }
                }
                for (&delay, &weight) in single.iter().zip(weights) {
                    let x = past.before(delay).load(s, 0);
                    for f in 0..F {
                        chains[0][f] = s.fma(s.splat(weight), x[f], chains[0][f]);
                    }
                }
            }
        }
        let mut sums = [[s.splat(0.0); F]; 1];
        for f in 0..F {
            sums[0][f] = s.add(s.add(chains[0][f], chains[1][f]), s.add(chains[2][f], chains[3][f]));
        }
        self.finish(s, sums, first);
    }

    /// Adds the residual and stores what comes out.
    #[inline(always)]
    fn finish<S: Simd, const O: usize, const F: usize>(&self, s: S, mut sums: [[S::V; F]; O], first: usize) {
        if let Some(add) = self.convolution.add {
            let add = self.window::<O, F>(add, first);
            for o in 0..O {
                let residual = add.load(s, o);
                for f in 0..F {
                    sums[o][f] = s.add(residual[f], sums[o][f]);
                }
            }
        }
        let to = self.window::<O, F>(self.convolution.to, first);
        for o in 0..O {
            to.store(s, sums[o], o);
        }
    }
}

/// Sums that fit into the registers beside what they are made of.
pub(super) fn sums_at_once<S: Simd>() -> usize {
    if S::MANY_REGISTERS { 16 } else { 4 }
}

/// Adds all channels of a signal at some delays to all sums of a tile, each with its weight from the one at `skip` on.
#[inline(always)]
pub(super) fn add_taps<S: Simd, const W: usize, const O: usize, const F: usize>(
    s: S,
    past: Past<'_, W, F>,
    delays: &[usize],
    weights: &[[f32; W]],
    skip: usize,
    mut sums: [[S::V; F]; O],
) -> [[S::V; F]; O] {
    for (&delay, together) in delays.iter().zip(weights.as_chunks::<W>().0) {
        let window = past.before(delay);
        for k in 0..W {
            sums = multiply_add(s, window.load(s, k), &together[k], skip, sums);
        }
    }
    sums
}

/// Adds one input to all sums of a tile.
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
