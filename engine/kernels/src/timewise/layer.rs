//! A convolution, its activation and a 1×1 convolution of what comes out, with no way through memory between them: where
//! channels are few, it is that way which a layer waits for.

use super::Rows;
use super::convolve::{Convolution, Tile, load, store, sums_at_once};
use super::each::Unary;
use crate::activation::{LeakyRelu, Tanh};
use crate::lanewise::Lanewise;
use crate::simd::Simd;

/// Computes F vectors of both convolutions from frame `at` on, if the second is a 1×1 convolution of the first and both are one
/// group of equally many outputs. Returns whether it did.
#[inline(always)]
pub(super) fn run<S: Simd, const F: usize>(
    s: S,
    first: &Convolution,
    second: &Convolution,
    rows: &[Rows],
    signals: &mut [f32],
    at: usize,
) -> bool {
    let outputs = first.weights.outputs();
    let follows = outputs * F <= sums_at_once::<S>()
        && first.weights.widest == outputs
        && second.weights.widest == outputs
        && second.weights.outputs() == outputs
        && rows[second.taps.clone()] == [rows[first.to]]
        && first.onto.is_none_or(|onto| rows[onto] != rows[first.to])
        && matches!(first.then, Some(Unary::Tanh | Unary::LeakyRelu { .. }))
        && second.then.is_none()
        && second.onto.is_none();
    if !follows {
        return false;
    }
    let layer = Layer { first, second, rows, signals, at };
    match outputs {
        8 => layer.run::<S, 8, F>(s),
        6 => layer.run::<S, 6, F>(s),
        4 => layer.run::<S, 4, F>(s),
        3 => layer.run::<S, 3, F>(s),
        2 => layer.run::<S, 2, F>(s),
        _ => return false,
    }
    true
}

struct Layer<'a> {
    first: &'a Convolution,
    second: &'a Convolution,
    rows: &'a [Rows],
    signals: &'a mut [f32],
    at: usize,
}

impl Layer<'_> {
    #[inline(always)]
    fn run<S: Simd, const W: usize, const F: usize>(self, s: S) {
        let Self { first, second, rows, signals, at } = self;
        // As many as are computed at a time where outputs are so many.
        if W * F > sums_at_once::<S>() {
            return;
        }
        let tile = Tile { convolution: first, rows, signals, at, first: 0, weights: &first.weights.weights };
        let mut z = tile.sums::<S, W, W, F>(s, 0);
        match first.then {
            Some(Unary::Tanh) => apply(s, &Tanh, &mut z),
            Some(Unary::LeakyRelu { slope }) => apply(s, &LeakyRelu { slope }, &mut z),
            _ => unreachable!("another activation"),
        }
        for o in 0..W {
            store(s, z[o], signals, rows[first.to], o, at);
        }
        if let Some(onto) = first.onto.map(|onto| rows[onto]) {
            for o in 0..W {
                let mut sums: [S::V; F] = load(s, signals, onto, o, at);
                for f in 0..F {
                    sums[f] = s.add(sums[f], z[o][f]);
                }
                store(s, sums, signals, onto, o, at);
            }
        }
        let weights = second.weights.weights.as_chunks::<W>().0;
        for o in 0..W {
            let mut sums = [s.splat(second.weights.bias[o]); F];
            for k in 0..W {
                let weight = s.splat(weights[k][o]);
                for f in 0..F {
                    sums[f] = s.fma(weight, z[k][f], sums[f]);
                }
            }
            if let Some(add) = second.add.map(|add| rows[add]) {
                let residual: [S::V; F] = load(s, signals, add, o, at);
                for f in 0..F {
                    sums[f] = s.add(residual[f], sums[f]);
                }
            }
            store(s, sums, signals, rows[second.to], o, at);
        }
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
