//! Operations on each value by itself.

use super::buffer_view::ChannelRows;
use crate::activation::{Activation, FormulaTask};
use crate::arithmetic;
use crate::lanewise::Lanewise;
use crate::simd::{LANES, Simd};

/// Operation on one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// An activation.
    Activation(Activation),
    /// `x · scale + offset`, as [`Kernels::scale_offset`](crate::Kernels::scale_offset).
    ScaleOffset {
        /// Factor.
        scale: f32,
        /// Summand, after scaling.
        offset: f32,
    },
}

/// Operation on two values whose result replaces the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The second value.
    Copy,
    /// The sum.
    Add,
    /// The product.
    Multiply,
}

struct Copy;

impl Lanewise<1, 1> for Copy {
    #[inline(always)]
    fn apply<S: Simd>(&self, _: S, [x]: [S::V; 1], _: [S::V; 1]) -> [S::V; 1] {
        [x]
    }
}

/// Applies an operation to `in_out` in place, with `inputs` as further operands.
#[inline(always)]
pub(super) fn map_rows<S: Simd, Op: Lanewise<I, 1>, const I: usize>(
    s: S,
    op: &Op,
    signals: &mut [f32],
    inputs: [ChannelRows; I],
    in_out: ChannelRows,
    frames: usize,
) {
    for channel in 0..in_out.channels {
        let row = |rows: ChannelRows| rows.start + channel * rows.stride;
        for vector in 0..frames.div_ceil(LANES) {
            let at = vector * LANES;
            let mut x = [s.splat(0.0); I];
            for k in 0..I {
                x[k] = s.load(&signals[row(inputs[k]) + at..].as_chunks().0[0]);
            }
            let in_out = &mut signals[row(in_out) + at..].as_chunks_mut().0[0];
            let [y] = op.apply(s, x, [s.load(in_out)]);
            s.store(y, in_out);
        }
    }
}

/// Applies an operation to `in_out` in place and adds the results to `accumulate_into`, if any.
#[inline(always)]
fn map_and_accumulate<S: Simd, Op: Lanewise<0, 1>>(
    s: S,
    op: &Op,
    signals: &mut [f32],
    in_out: ChannelRows,
    accumulate_into: Option<ChannelRows>,
    frames: usize,
) {
    let Some(accumulate_into) = accumulate_into else {
        return map_rows(s, op, signals, [], in_out, frames);
    };
    for channel in 0..in_out.channels {
        let row = |rows: ChannelRows| rows.start + channel * rows.stride;
        for vector in 0..frames.div_ceil(LANES) {
            let at = vector * LANES;
            let in_out = &mut signals[row(in_out) + at..].as_chunks_mut().0[0];
            let [y] = op.apply(s, [], [s.load(in_out)]);
            s.store(y, in_out);
            let sum = &mut signals[row(accumulate_into) + at..].as_chunks_mut().0[0];
            s.store(s.add(s.load(sum), y), sum);
        }
    }
}

/// Applies an operation to `in_out` in place and adds the results to `accumulate_into`, if any.
#[inline(always)]
pub(super) fn apply_unary<S: Simd>(
    s: S,
    operation: Unary,
    signals: &mut [f32],
    in_out: ChannelRows,
    accumulate_into: Option<ChannelRows>,
    frames: usize,
) {
    match operation {
        Unary::Activation(activation) => {
            activation.dispatch(MapAndAccumulate {
                s,
                signals,
                in_out,
                accumulate_into,
                frames,
            });
        }
        Unary::ScaleOffset { scale, offset } => {
            let op = arithmetic::ScaleOffset { scale, offset };
            map_and_accumulate(s, &op, signals, in_out, accumulate_into, frames);
        }
    }
}

/// [`map_and_accumulate`] with the formula of an activation.
struct MapAndAccumulate<'a, S> {
    s: S,
    signals: &'a mut [f32],
    in_out: ChannelRows,
    accumulate_into: Option<ChannelRows>,
    frames: usize,
}

impl<S: Simd> FormulaTask for MapAndAccumulate<'_, S> {
    #[inline(always)]
    fn run<F: Lanewise<0, 1>>(self, formula: F) {
        map_and_accumulate(
            self.s,
            &formula,
            self.signals,
            self.in_out,
            self.accumulate_into,
            self.frames,
        );
    }
}

/// Combines `in_out` with `operand` in place.
#[inline(always)]
pub(super) fn apply_binary<S: Simd>(
    s: S,
    operation: Binary,
    signals: &mut [f32],
    operand: ChannelRows,
    in_out: ChannelRows,
    frames: usize,
) {
    match operation {
        Binary::Copy => map_rows(s, &Copy, signals, [operand], in_out, frames),
        Binary::Add => map_rows(s, &arithmetic::Add, signals, [operand], in_out, frames),
        Binary::Multiply => map_rows(s, &arithmetic::Multiply, signals, [operand], in_out, frames),
    }
}
