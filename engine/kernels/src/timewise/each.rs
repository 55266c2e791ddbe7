//! What happens at each frame alone.

use super::places::Rows;
use crate::lanewise::Lanewise;
use crate::simd::{LANES, Simd};
use crate::{activation, arithmetic};

/// An operation on one value; as the method of [`Kernels`](crate::Kernels) of that name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// [`Kernels::tanh`](crate::Kernels::tanh)
    Tanh,
    /// [`Kernels::sigmoid`](crate::Kernels::sigmoid)
    Sigmoid,
    /// [`Kernels::relu`](crate::Kernels::relu)
    Relu,
    /// [`Kernels::leaky_relu`](crate::Kernels::leaky_relu)
    LeakyRelu {
        /// Slope below zero.
        slope: f32,
    },
    /// [`Kernels::softplus`](crate::Kernels::softplus)
    Softplus,
    /// [`Kernels::exp_sigmoid`](crate::Kernels::exp_sigmoid)
    ExpSigmoid,
    /// [`Kernels::hard_tanh`](crate::Kernels::hard_tanh)
    HardTanh,
    /// [`Kernels::leaky_hard_tanh`](crate::Kernels::leaky_hard_tanh)
    LeakyHardTanh {
        /// Lower and upper bound.
        bounds: [f32; 2],
        /// Slopes below and above them.
        slopes: [f32; 2],
    },
    /// [`Kernels::hard_swish`](crate::Kernels::hard_swish)
    HardSwish,
    /// [`Kernels::softsign`](crate::Kernels::softsign)
    Softsign,
    /// [`Kernels::silu`](crate::Kernels::silu)
    Silu,
    /// [`Kernels::fast_tanh`](crate::Kernels::fast_tanh)
    FastTanh,
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
        Unary::Tanh => apply(s, &activation::Tanh, signals, held, onto, frames),
        Unary::Sigmoid => apply(s, &activation::Sigmoid, signals, held, onto, frames),
        Unary::Relu => apply(s, &activation::Relu, signals, held, onto, frames),
        Unary::LeakyRelu { slope } => apply(s, &activation::LeakyRelu { slope }, signals, held, onto, frames),
        Unary::Softplus => apply(s, &activation::Softplus, signals, held, onto, frames),
        Unary::ExpSigmoid => apply(s, &activation::ExpSigmoid, signals, held, onto, frames),
        Unary::HardTanh => apply(s, &activation::HardTanh, signals, held, onto, frames),
        Unary::LeakyHardTanh { bounds: [low, high], slopes: [low_slope, high_slope] } => {
            let function = activation::LeakyHardTanh { low, high, low_slope, high_slope };
            apply(s, &function, signals, held, onto, frames);
        }
        Unary::HardSwish => apply(s, &activation::HardSwish, signals, held, onto, frames),
        Unary::Softsign => apply(s, &activation::Softsign, signals, held, onto, frames),
        Unary::Silu => apply(s, &activation::Silu, signals, held, onto, frames),
        Unary::FastTanh => apply(s, &activation::FastTanh, signals, held, onto, frames),
        Unary::ScaleOffset { scale, offset } => {
            apply(s, &arithmetic::ScaleOffset { scale, offset }, signals, held, onto, frames);
        }
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
