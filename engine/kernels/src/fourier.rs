//! Conversion between the spectrum of real samples and the transform of half as many complex ones.

use crate::Kernels;
use crate::simd::{Array, Kernel, LANES, Simd};

struct RealBins<'a> {
    near: &'a mut [f32],
    far: &'a mut [f32],
    twiddles: &'a [f32],
    scale: f32,
}

impl Kernel for RealBins<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (near, near_tail) = self.near.as_chunks_mut();
        let (far_tail, far) = self.far.as_rchunks_mut();
        let (twiddles, twiddles_tail) = self.twiddles.as_chunks();
        for ((near, far), twiddles) in near.iter_mut().zip(far.iter_mut().rev()).zip(twiddles) {
            let (x, y) = real_bins(s, s.load(near), s.load(far), s.load(twiddles), self.scale);
            s.store(x, near);
            s.store(y, far);
        }
        if !near_tail.is_empty() {
            // The first bin of `near` pairs with the last of `far`.
            let padding = LANES - far_tail.len();
            let mut lanes: Array = [0.0; LANES];
            lanes[padding..].copy_from_slice(far_tail);
            let (x, twiddles) = (
                s.load_padded(near_tail, 0.0),
                s.load_padded(twiddles_tail, 0.0),
            );
            let (x, y) = real_bins(s, x, s.load(&lanes), twiddles, self.scale);
            s.store_partial(x, near_tail);
            s.store(y, &mut lanes);
            far_tail.copy_from_slice(&lanes[padding..]);
        }
    }
}

const NEGATE_IMAGINARY: Array = [
    1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0,
];

/// Converts one vector of pairs. Nothing is fused, so each term is rounded as in scalar code.
#[inline(always)]
fn real_bins<S: Simd>(s: S, near: S::V, far: S::V, twiddle: S::V, scale: f32) -> (S::V, S::V) {
    let conjugate = s.load(&NEGATE_IMAGINARY);
    let mirror = s.mul(s.reverse_pairs(far), conjugate);
    let even = s.mul(s.add(near, mirror), s.splat(scale));
    // Multiplication by −i swaps the parts of the second product.
    let odd = s.sub(near, mirror);
    let turned = s.mul(s.swap_pairs(twiddle), conjugate);
    let odd = s.add(
        s.mul(s.duplicate_odd(odd), twiddle),
        s.mul(s.duplicate_even(odd), turned),
    );
    let mirrored = s.sub(s.mul(even, conjugate), s.mul(odd, conjugate));
    (s.add(even, odd), s.reverse_pairs(mirrored))
}

/// Fourier transforms of real samples.
impl Kernels {
    /// Converts pairs of bins of a complex transform to those of a real one, or back.
    ///
    /// With `x = near[k]`, `y` the conjugate of `far[n − 1 − k]` and `w = twiddles[k]`, `near[k]`
    /// becomes `scale·(x + y) − i·w·(x − y)` and `far[n − 1 − k]` the conjugate of
    /// `scale·(x + y) + i·w·(x − y)`. All slices are `re im re im …`, `n` numbers each.
    ///
    /// # Panics
    /// If the lengths differ or are odd.
    pub fn real_bins(self, near: &mut [f32], far: &mut [f32], twiddles: &[f32], scale: f32) {
        assert_eq!(
            near.len(),
            far.len(),
            "real_bins: lengths of near and far differ"
        );
        assert_eq!(near.len(), twiddles.len(), "real_bins: a twiddle per bin");
        assert!(
            near.len().is_multiple_of(2),
            "real_bins: half a complex number in {} values",
            near.len()
        );
        self.run(RealBins {
            near,
            far,
            twiddles,
            scale,
        });
    }
}
