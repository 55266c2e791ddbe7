//! Sums and products of slices.

use crate::Kernels;
use crate::lanewise::{Lanewise, Over};
use crate::simd::{Array, Simd};

struct Add;
struct Multiply;
struct ScaleOffset {
    scale: f32,
    offset: f32,
}
struct MultiplyAdd {
    gain: f32,
}
struct ComplexMultiplyAdd;

impl Lanewise<1, 1> for Add {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [x]: [S::V; 1], [y]: [S::V; 1]) -> [S::V; 1] {
        [s.add(y, x)]
    }
}

impl Lanewise<1, 1> for Multiply {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [x]: [S::V; 1], [y]: [S::V; 1]) -> [S::V; 1] {
        [s.mul(y, x)]
    }
}

impl Lanewise<0, 1> for ScaleOffset {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, []: [S::V; 0], [x]: [S::V; 1]) -> [S::V; 1] {
        [s.fma(x, s.splat(self.scale), s.splat(self.offset))]
    }
}

impl Lanewise<1, 1> for MultiplyAdd {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [x]: [S::V; 1], [acc]: [S::V; 1]) -> [S::V; 1] {
        [s.fma(x, s.splat(self.gain), acc)]
    }
}

const CONJUGATE: Array = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0];

impl Lanewise<2, 1> for ComplexMultiplyAdd {
    /// `re = (re + a.re·b.re) − a.im·b.im`, `im = (im + a.re·b.im) + a.im·b.re`. A pair never straddles two vectors.
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, [a, b]: [S::V; 2], [acc]: [S::V; 1]) -> [S::V; 1] {
        let real_part = s.fma(s.duplicate_even(a), b, acc);
        let turned = s.mul(s.swap_pairs(b), s.load(&CONJUGATE));
        [s.fma(s.duplicate_odd(a), turned, real_part)]
    }
}

/// Sums and products. Products that are summed are fused: rounded once.
impl Kernels {
    /// `y += x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(self, y: &mut [f32], x: &[f32]) {
        assert_eq!(y.len(), x.len(), "add: lengths differ");
        self.run(Over { op: Add, inputs: [x], held: [y] });
    }

    /// `y *= x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply(self, y: &mut [f32], x: &[f32]) {
        assert_eq!(y.len(), x.len(), "multiply: lengths differ");
        self.run(Over { op: Multiply, inputs: [x], held: [y] });
    }

    /// `x = x * scale + offset`.
    pub fn scale_offset(self, x: &mut [f32], scale: f32, offset: f32) {
        self.run(Over { op: ScaleOffset { scale, offset }, inputs: [], held: [x] });
    }

    /// `acc += x * gain`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply_add(self, acc: &mut [f32], x: &[f32], gain: f32) {
        assert_eq!(acc.len(), x.len(), "multiply_add: lengths differ");
        self.run(Over { op: MultiplyAdd { gain }, inputs: [x], held: [acc] });
    }

    /// `acc += a * b` over complex numbers, each slice `re im re im …`.
    ///
    /// # Panics
    /// If the lengths differ or are odd.
    pub fn complex_multiply_add(self, acc: &mut [f32], a: &[f32], b: &[f32]) {
        assert_eq!(acc.len(), a.len(), "complex_multiply_add: lengths of acc and a differ");
        assert_eq!(acc.len(), b.len(), "complex_multiply_add: lengths of acc and b differ");
        assert!(acc.len().is_multiple_of(2), "complex_multiply_add: half a complex number in {} values", acc.len());
        self.run(Over { op: ComplexMultiplyAdd, inputs: [a, b], held: [acc] });
    }
}
