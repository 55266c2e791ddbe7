//! Products of bytes, and what each CPU makes of them.
//!
//! Values are unsigned bytes with an offset of 128, weights signed bytes from −127 to 127. All sums are whole numbers below
//! 2³¹, so the order in which they are added makes no difference.

use super::vector::Simd;

/// What a value of 0 is as a byte.
pub(crate) const ZERO_POINT: u8 = 128;

/// Inputs that meet their weights at a time.
pub(crate) const QUAD: usize = 4;

/// Weights of 16 outputs by 4 inputs, `[output][input]`, on one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct WeightQuads(pub [i8; 64]);

/// PanelSums of 16 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct PanelSums(pub [i32; 16]);

/// Proof of a set of CPU features, and the products of bytes that they give.
pub(crate) trait Int8Simd: Copy {
    /// What computes with `f32` beside it.
    type Float: Simd;
    /// 16 sums.
    type Sums: Copy;
    /// Weights, ready to be used more than once.
    type Weights: Copy;
    /// Four values for all outputs.
    type Values: Copy;

    fn float(self) -> Self::Float;
    /// PanelSums to begin with; `offsets` are −128 times the sums of the weights, for who takes the values as they are.
    fn begin(self, offsets: &PanelSums) -> Self::Sums;
    fn load(self, from: &WeightQuads) -> Self::Weights;
    fn splat(self, values: [u8; QUAD]) -> Self::Values;
    /// Adds to each output the four products of its weights with the values.
    fn dot(self, sums: Self::Sums, weights: Self::Weights, values: Self::Values) -> Self::Sums;
    /// To the nearest float, halves to even.
    fn to_floats(self, sums: Self::Sums) -> <Self::Float as Simd>::V;
}

/// A computation with bytes, written once for any token.
pub(crate) trait Int8Kernel {
    /// Has to be `#[inline(always)]`, as [`super::Kernel::run`].
    fn run<B: Int8Simd>(self, b: B);
}
