//! Elementwise operations on slices of equal length.

use crate::simd::{Kernel, LANES, Simd};

/// Elementwise operation that reads `I` values and updates `O` values.
pub(crate) trait Lanewise<const I: usize, const O: usize> {
    /// Returns the new values. Must be `#[inline(always)]`, like [`Kernel::run`].
    fn apply<S: Simd>(&self, s: S, inputs: [S::V; I], in_out: [S::V; O]) -> [S::V; O];
}

/// Applies an operation at each index of slices.
pub(crate) struct OverSlices<'a, Op, const I: usize, const O: usize> {
    pub op: Op,
    pub inputs: [&'a [f32]; I],
    pub in_out: [&'a mut [f32]; O],
}

impl<Op: Lanewise<I, O>, const I: usize, const O: usize> Kernel for OverSlices<'_, Op, I, O> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let OverSlices { op, inputs, in_out } = self;
        let len = in_out[0].len();
        let whole = len / LANES;
        for at in 0..whole {
            let mut x = [s.splat(0.0); I];
            let mut y = [s.splat(0.0); O];
            for k in 0..I {
                x[k] = s.load(&inputs[k].as_chunks().0[at]);
            }
            for k in 0..O {
                y[k] = s.load(&in_out[k].as_chunks().0[at]);
            }
            y = op.apply(s, x, y);
            for k in 0..O {
                s.store(y[k], &mut in_out[k].as_chunks_mut().0[at]);
            }
        }
        if whole * LANES < len {
            let mut x = [s.splat(0.0); I];
            let mut y = [s.splat(0.0); O];
            for k in 0..I {
                x[k] = s.load_padded(&inputs[k][whole * LANES..len], 0.0);
            }
            for k in 0..O {
                y[k] = s.load_padded(&in_out[k][whole * LANES..len], 0.0);
            }
            y = op.apply(s, x, y);
            for k in 0..O {
                s.store_partial(y[k], &mut in_out[k][whole * LANES..len]);
            }
        }
    }
}
