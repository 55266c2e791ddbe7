//! What happens at each frame alone.

use super::places::Rows;
use crate::activation::{Activation, FormulaTask};
use crate::arithmetic;
use crate::lanewise::Lanewise;
use crate::simd::{LANES, Simd};

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// An activation.
    Activation(Activation),
    /// [`Kernels::scale_offset`](crate::Kernels::scale_offset)
    ScaleOffset {
        /// Factor.
        scale: f32,
        /// Summand.
        offset: f32,
    },
}

/// An operation on two values that takes the place of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The second alone.
    Copy,
    /// [`Kernels::add`](crate::Kernels::add)
    Add,
    /// [`Kernels::multiply`](crate::Kernels::multiply)
    Multiply,
}

struct Copy;

impl Lanewise<1, 1> for Copy {
    #[inline(always)]
    fn apply<S: Simd>(&self, _: S, [x]: [S::V; 1], _: [S::V; 1]) -> [S::V; 1] {
        [x]
    }
}

/// At each frame of rows: from what lies in `inputs` and in `held`, what lies in `held` next.
#[inline(always)]
pub(super) fn over<S: Simd, Op: Lanewise<I, 1>, const I: usize>(
    s: S,
    op: &Op,
    signals: &mut [f32],
    inputs: [Rows; I],
    held: Rows,
    frames: usize,
) {
    for channel in 0..held.channels {
        let row = |rows: Rows| rows.start + channel * rows.stride;
        for vector in 0..frames.div_ceil(LANES) {
            let at = vector * LANES;
            let mut x = [s.splat(0.0); I];
            for k in 0..I {
                x[k] = s.load(&signals[row(inputs[k]) + at..].as_chunks().0[0]);
            }
            let held = &mut signals[row(held) + at..].as_chunks_mut().0[0];
            let [y] = op.apply(s, x, [s.load(held)]);
            s.store(y, held);
        }
    }
}

/// Applies an operation where rows lie, and adds what comes out to others while it is at hand.
#[inline(always)]
fn apply<S: Simd, Op: Lanewise<0, 1>>(
    s: S,
    op: &Op,
    signals: &mut [f32],
    held: Rows,
    onto: Option<Rows>,
    frames: usize,
) {
    let Some(onto) = onto else {
        return over(s, op, signals, [], held, frames);
    };
    for channel in 0..held.channels {
        let row = |rows: Rows| rows.start + channel * rows.stride;
        for vector in 0..frames.div_ceil(LANES) {
            let at = vector * LANES;
            let held = &mut signals[row(held) + at..].as_chunks_mut().0[0];
            let [y] = op.apply(s, [], [s.load(held)]);
            s.store(y, held);
            let onto = &mut signals[row(onto) + at..].as_chunks_mut().0[0];
            s.store(s.add(s.load(onto), y), onto);
        }
    }
}

/// Applies an operation where rows lie, and adds what comes out to others.
#[inline(always)]
pub(super) fn then<S: Simd>(
    s: S,
    operation: Unary,
    signals: &mut [f32],
    held: Rows,
    onto: Option<Rows>,
    frames: usize,
) {
    match operation {
        Unary::Activation(activation) => activation.dispatch(Apply { s, signals, held, onto, frames }),
        Unary::ScaleOffset { scale, offset } => {
            apply(s, &arithmetic::ScaleOffset { scale, offset }, signals, held, onto, frames);
        }
    }
}

/// [`apply`] for the formula of an activation.
struct Apply<'a, S> {
    s: S,
    signals: &'a mut [f32],
    held: Rows,
    onto: Option<Rows>,
    frames: usize,
}

impl<S: Simd> FormulaTask for Apply<'_, S> {
    #[inline(always)]
    fn run<F: Lanewise<0, 1>>(self, formula: F) {
        apply(self.s, &formula, self.signals, self.held, self.onto, self.frames);
    }
}

/// Combines rows with others where they lie.
#[inline(always)]
pub(super) fn with<S: Simd>(s: S, operation: Binary, signals: &mut [f32], x: Rows, held: Rows, frames: usize) {
    match operation {
        Binary::Copy => over(s, &Copy, signals, [x], held, frames),
        Binary::Add => over(s, &arithmetic::Add, signals, [x], held, frames),
        Binary::Multiply => over(s, &arithmetic::Multiply, signals, [x], held, frames),
    }
}
