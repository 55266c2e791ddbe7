//! A convolution, its activation and a 1×1 convolution of what comes out, with no way through memory between them: where
//! channels are few, it is that way which a layer waits for. For the same reason layers of one width run in a loop of their own,
//! which has all registers for itself.

use super::convolve::{Chain, Convolution, Taps, Tile, sums_at_once};
use super::each::Unary;
use super::places::Places;
use super::step::Step;
use super::window::Room;
use crate::activation::{LeakyRelu, Tanh};
use crate::lanewise::Lanewise;
use crate::simd::{Kernel, LANES, Simd};

/// Both convolutions.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) chain: Chain,
    /// Channels that go in and come out.
    width: usize,
}

impl Layer {
    /// Of two convolutions that are one group of equally many outputs, few enough, the second a 1×1 convolution of the first.
    ///
    /// # Errors
    /// Gives back what else they are.
    pub(super) fn new(chain: Chain) -> Result<Self, Chain> {
        let [first, second] = &chain.convolutions[..] else { return Err(chain) };
        let width = first.weights.outputs();
        let follows = matches!(width, 2 | 3 | 4 | 6 | 8)
            && [first, second].iter().all(|one| one.weights.widest == width && one.weights.outputs() == width)
            && second.taps == [Taps::now(first.to)]
            && first.onto != Some(first.to)
            && matches!(first.then, Some(Unary::Tanh | Unary::LeakyRelu { .. }))
            && second.then.is_none()
            && second.onto.is_none();
        if follows { Ok(Self { chain, width }) } else { Err(chain) }
    }

    /// Whether there are registers for it.
    pub(super) fn fits<S: Simd>(&self) -> bool {
        self.width <= sums_at_once::<S>()
    }

    /// How many steps that follow are layers of this width.
    pub(super) fn alike(&self, steps: &[Step]) -> usize {
        let alike = |step: &&Step| matches!(step, Step::Layer(layer) if layer.width == self.width);
        steps.iter().take_while(alike).count()
    }
}

/// Computes so many frames of layers of one width.
#[inline(always)]
pub(super) fn run<S: Simd>(s: S, layers: &[Step], places: Places<'_>, signals: &mut [f32], frames: usize) {
    let width = layers.iter().find_map(|step| if let Step::Layer(layer) = step { Some(layer.width) } else { None });
    match width {
        Some(8) => s.call(Run::<8> { layers, places, signals, frames }),
        Some(6) => s.call(Run::<6> { layers, places, signals, frames }),
        Some(4) => s.call(Run::<4> { layers, places, signals, frames }),
        Some(3) => s.call(Run::<3> { layers, places, signals, frames }),
        _ => s.call(Run::<2> { layers, places, signals, frames }),
    }
}

struct Run<'a, const W: usize> {
    layers: &'a [Step],
    places: Places<'a>,
    signals: &'a mut [f32],
    frames: usize,
}

impl<const W: usize> Kernel for Run<'_, W> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { layers, places, signals, frames } = self;
        for step in layers {
            let Step::Layer(Layer { chain, .. }) = step else { continue };
            let [first, second] = &chain.convolutions[..] else { continue };
            let mut pass = Pass::<W> { first, second, places, signals, at: 0 };
            while pass.at < frames {
                let left = frames - pass.at;
                if 4 * W <= sums_at_once::<S>() && left > 3 * LANES {
                    pass.compute::<S, 4>(s);
                } else if 2 * W <= sums_at_once::<S>() && left > LANES {
                    pass.compute::<S, 2>(s);
                } else {
                    pass.compute::<S, 1>(s);
                }
            }
        }
    }
}

/// One layer.
struct Pass<'a, const W: usize> {
    first: &'a Convolution,
    second: &'a Convolution,
    places: Places<'a>,
    signals: &'a mut [f32],
    /// The next frame.
    at: usize,
}

impl<const W: usize> Pass<'_, W> {
    /// The next F vectors.
    #[inline(always)]
    fn compute<S: Simd, const F: usize>(&mut self, s: S) {
        // More are never asked for, so there need not be code for them.
        if W * F > sums_at_once::<S>() {
            return;
        }
        let Self { first, second, places, ref mut signals, at } = *self;
        let room = Room::<F>::of(signals);
        let window = |place| room.window::<W>(places.rows(place).skip(at));
        let tile = Tile { convolution: first, places, signals, at, first: 0, weights: &first.weights.weights };
        let mut z = tile.sums::<S, W, W, F>(s, 0);
        match first.then {
            Some(Unary::LeakyRelu { slope }) => apply(s, &LeakyRelu { slope }, &mut z),
            _ => apply(s, &Tanh, &mut z),
        }
        if !first.passed_on {
            let to = window(first.to);
            for o in 0..W {
                to.store(s, z[o], signals, o);
            }
        }
        // What the next layer waits for comes first.
        let (to, add) = (window(second.to), second.add.map(&window));
        let (weights, bias) = (&second.weights.weights.as_chunks::<W>().0[..W], &second.weights.bias[..W]);
        for o in 0..W {
            let mut sums = [s.splat(bias[o]); F];
            for k in 0..W {
                let weight = s.splat(weights[k][o]);
                for f in 0..F {
                    sums[f] = s.fma(weight, z[k][f], sums[f]);
                }
            }
            if let Some(add) = add {
                let residual = add.load(s, signals, o);
                for f in 0..F {
                    sums[f] = s.add(residual[f], sums[f]);
                }
            }
            to.store(s, sums, signals, o);
        }
        if let Some(onto) = first.onto {
            let onto = window(onto);
            for o in 0..W {
                let mut sums = onto.load(s, signals, o);
                for f in 0..F {
                    sums[f] = s.add(sums[f], z[o][f]);
                }
                onto.store(s, sums, signals, o);
            }
        }
        self.at += F * LANES;
    }
}

#[inline(always)]
fn apply<S: Simd, Op: Lanewise<0, 1>, const W: usize, const F: usize>(s: S, op: &Op, z: &mut [[S::V; F]; W]) {
    for row in z {
        for value in row {
            [*value] = op.apply(s, [], [*value]);
        }
    }
}
