//! Sums and products of slices.

use crate::Kernels;
use crate::lanewise::{Lanewise, OverSlices};
use crate::simd::{Array, Kernel, LANES, Simd};

pub(crate) struct Add;
pub(crate) struct Multiply;
pub(crate) struct ScaleOffset {
    pub scale: f32,
    pub offset: f32,
}
struct MultiplyAdd {
    gain: f32,
}

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

const CONJUGATE: Array = [
    -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0,
];

struct ComplexMultiplyAdd<'a> {
    acc: &'a mut [f32],
    a: &'a [f32],
    b: &'a [f32],
}

/// Vectors of sums held in registers while all blocks are added.
const SUMS: usize = 4;

impl Kernel for ComplexMultiplyAdd<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let len = self.acc.len();
        let whole = len - len % LANES;
        let mut first = 0;
        while first < whole {
            first += if whole - first >= SUMS * LANES {
                self.vectors::<S, SUMS>(s, first)
            } else {
                self.vectors::<S, 1>(s, first)
            };
        }
        if whole < len {
            let mut sum = s.load_padded(&self.acc[whole..], 0.0);
            for (a, b) in self.a.chunks_exact(len).zip(self.b.chunks_exact(len)) {
                sum = complex_multiply_add(
                    s,
                    s.load_padded(&a[whole..], 0.0),
                    s.load_padded(&b[whole..], 0.0),
                    sum,
                );
            }
            s.store_partial(sum, &mut self.acc[whole..]);
        }
    }
}

impl ComplexMultiplyAdd<'_> {
    /// Computes `U` whole vectors of sums from `first` on. Returns their number of values.
    #[inline(always)]
    fn vectors<S: Simd, const U: usize>(&mut self, s: S, first: usize) -> usize {
        let range = first..first + U * LANES;
        let mut sums = [s.splat(0.0); U];
        for u in 0..U {
            sums[u] = s.load(&self.acc[range.clone()].as_chunks().0[u]);
        }
        let len = self.acc.len();
        for (a, b) in self.a.chunks_exact(len).zip(self.b.chunks_exact(len)) {
            let (a, b) = (
                a[range.clone()].as_chunks().0,
                b[range.clone()].as_chunks().0,
            );
            for u in 0..U {
                sums[u] = complex_multiply_add(s, s.load(&a[u]), s.load(&b[u]), sums[u]);
            }
        }
        for u in 0..U {
            s.store(sums[u], &mut self.acc[range.clone()].as_chunks_mut().0[u]);
        }
        U * LANES
    }
}

/// Computes `re = (re + a.re·b.re) − a.im·b.im` and `im = (im + a.re·b.im) + a.im·b.re`. A pair
/// never straddles two vectors.
#[inline(always)]
fn complex_multiply_add<S: Simd>(s: S, a: S::V, b: S::V, acc: S::V) -> S::V {
    let real_part = s.fma(s.duplicate_even(a), b, acc);
    let turned = s.mul(s.swap_pairs(b), s.load(&CONJUGATE));
    s.fma(s.duplicate_odd(a), turned, real_part)
}

/// Sums and products. A product plus a sum is fused, that is, rounded once.
impl Kernels {
    /// Computes `y += x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(self, y: &mut [f32], x: &[f32]) {
        assert_eq!(y.len(), x.len(), "add: lengths differ");
        self.run(OverSlices {
            op: Add,
            inputs: [x],
            in_out: [y],
        });
    }

    /// Computes `y *= x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply(self, y: &mut [f32], x: &[f32]) {
        assert_eq!(y.len(), x.len(), "multiply: lengths differ");
        self.run(OverSlices {
            op: Multiply,
            inputs: [x],
            in_out: [y],
        });
    }

    /// Computes `x = x * scale + offset`.
    pub fn scale_offset(self, x: &mut [f32], scale: f32, offset: f32) {
        self.run(OverSlices {
            op: ScaleOffset { scale, offset },
            inputs: [],
            in_out: [x],
        });
    }

    /// Computes `acc += x * gain`.
    ///
    /// ```
    /// let mut acc = [1.0, 2.0];
    /// ondes_kernels::Kernels::detect().multiply_add(&mut acc, &[10.0, 20.0], 0.5);
    /// assert_eq!(acc, [6.0, 12.0]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply_add(self, acc: &mut [f32], x: &[f32], gain: f32) {
        assert_eq!(acc.len(), x.len(), "multiply_add: lengths differ");
        self.run(OverSlices {
            op: MultiplyAdd { gain },
            inputs: [x],
            in_out: [acc],
        });
    }

    /// Computes `acc[i] += Σ_k a[k][i] * b[k][i]` over complex numbers, each slice `re im re im …`:
    /// `acc` is one block, `a` and `b` are as many blocks as each other. Adds in the order of `k`,
    /// so the result does not depend on how the blocks are divided into calls.
    ///
    /// # Panics
    /// If the lengths of `a` and `b` differ or are no multiple of the length of `acc`, or that
    /// length is odd.
    pub fn complex_multiply_add(self, acc: &mut [f32], a: &[f32], b: &[f32]) {
        assert_eq!(
            a.len(),
            b.len(),
            "complex_multiply_add: lengths of a and b differ"
        );
        assert!(
            a.len().is_multiple_of(acc.len()),
            "complex_multiply_add: {} values in blocks of {}",
            a.len(),
            acc.len()
        );
        assert!(
            acc.len().is_multiple_of(2),
            "complex_multiply_add: half a complex number in {} values",
            acc.len()
        );
        if !a.is_empty() {
            self.run(ComplexMultiplyAdd { acc, a, b });
        }
    }
}
