//! Products in eight bits: the operations that each CPU variant implements, and the kernels written
//! against them.
//!
//! Values are unsigned bytes with a zero point of 128, weights signed bytes from −127 to 127. All
//! sums are integers below 2³¹, so they are exact in any order.

use super::vector::Simd;

/// Code of the value 0.
pub(crate) const ZERO_POINT: u8 = 128;

/// Inputs that are multiplied at a time.
pub(crate) const QUAD: usize = 4;

/// Weights of 16 outputs by 4 inputs, `[output][input]`, on one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct WeightQuads(pub [i8; 64]);

/// Integer sums of 16 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct PanelSums(pub [i32; 16]);

/// Proof of a set of CPU features, with the products in eight bits that they offer.
pub(crate) trait Int8Simd: Copy {
    /// Token for the `f32` operations around the products.
    type Float: Simd;
    /// 16 sums.
    type SumVector: Copy;
    /// Weights, prepared for repeated use.
    type WeightVector: Copy;
    /// Four values, repeated for all outputs.
    type ValueVector: Copy;

    fn float(self) -> Self::Float;
    /// Returns the initial sums: `offsets`, which are −128 times the sums of the weights, if
    /// [`Int8Simd::dot`] takes the codes as they are, and zeros if it subtracts the zero point
    /// itself.
    fn initial_sums(self, offsets: &PanelSums) -> Self::SumVector;
    fn load(self, from: &WeightQuads) -> Self::WeightVector;
    fn splat(self, values: [u8; QUAD]) -> Self::ValueVector;
    /// Adds to each output the four products of its weights with the values.
    fn dot(
        self,
        sums: Self::SumVector,
        weights: Self::WeightVector,
        values: Self::ValueVector,
    ) -> Self::SumVector;
    /// Converts to the nearest floats, halves to even.
    fn to_floats(self, sums: Self::SumVector) -> <Self::Float as Simd>::V;
}

/// Computation in eight bits, written once for any token.
pub(crate) trait Int8Kernel {
    /// Runs the computation. Must be `#[inline(always)]`, like [`Kernel::run`](super::Kernel::run).
    fn run<B: Int8Simd>(self, b: B);
}
