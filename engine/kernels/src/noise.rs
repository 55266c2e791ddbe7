//! White noise: a hash of each sample's index.

use crate::Kernels;
use crate::simd::{Kernel, Simd};

struct WhiteNoise<'a> {
    key: u64,
    first: u32,
    out: &'a mut [f32],
}

impl Kernel for WhiteNoise<'_> {
    /// The compiler may vectorise this freely, since integers are exact in any order.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (low, high) = (self.key as u32, (self.key >> 32) as u32);
        for (index, sample) in self.out.iter_mut().enumerate() {
            let bits = mix(self.first.wrapping_add(index as u32) ^ low) ^ high;
            *sample = bits as i32 as f32 * (1.0 / 2_147_483_648.0);
        }
    }
}

/// A 32-bit hash with little bias (the `lowbias32` constants of C. Wellons' hash prospector).
#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// Noise.
impl Kernels {
    /// Fills `out` with uniform noise in [−1, 1): samples `first..` of the sequence of `key`, which
    /// repeats after 2³² samples.
    ///
    /// ```
    /// use ondes_kernels::Kernels;
    ///
    /// let (mut all, mut tail) = ([0.0; 8], [0.0; 3]);
    /// Kernels::detect().white_noise(42, 0, &mut all);
    /// Kernels::detect().white_noise(42, 5, &mut tail);
    /// assert_eq!(all[5..], tail);
    /// ```
    pub fn white_noise(self, key: u64, first: u32, out: &mut [f32]) {
        self.run(WhiteNoise { key, first, out });
    }
}
