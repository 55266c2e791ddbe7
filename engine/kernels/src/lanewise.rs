//! An elementwise operation over slices of one length.

use crate::simd::{Kernel, LANES, Simd};

/// From `I` values read and `O` values in_out, the `O` values in_out next.
pub(crate) trait Lanewise<const I: usize, const O: usize> {
    /// Has to be `#[inline(always)]`, as [`Kernel::run`].
    fn apply<S: Simd>(&self, s: S, inputs: [S::V; I], in_out: [S::V; O]) -> [S::V; O];
}

/// Applies an operation to each index of its slices.
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
