//! NEON's dot product: four products of bytes and their sum in one instruction, in four registers.

use std::arch::aarch64::*;
use std::arch::asm;

use super::bytes::{ByteKernel, Bytes, QUAD, Quads, Sums};
use super::neon::Neon;

/// Proof of NEON and its dot product: [`NeonDot::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeonDot {
    floats: Neon,
}

impl NeonDot {
    pub(crate) fn detect() -> Option<NeonDot> {
        let floats = Neon::detect()?;
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(NeonDot { floats })
    }

    #[inline]
    pub(crate) fn run_bytes<K: ByteKernel>(self, kernel: K) {
        #[target_feature(enable = "neon,dotprod")]
        fn with_features<K: ByteKernel>(token: NeonDot, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }
}

/// The instruction itself: the standard library's name for it is not stable yet.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn sdot(mut sums: int32x4_t, weights: int8x16_t, values: int8x16_t) -> int32x4_t {
    // SAFETY: the function's features are those the instruction needs; it changes nothing but its first register.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {weights:v}.16b, {values:v}.16b",
            sums = inout(vreg) sums,
            weights = in(vreg) weights,
            values = in(vreg) values,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

impl Bytes for NeonDot {
    type Floats = Neon;
    type I = [int32x4_t; 4];
    type W = [int8x16_t; 4];
    type X = int8x16_t;

    #[inline(always)]
    fn floats(self) -> Neon {
        self.floats
    }

    #[inline(always)]
    fn begin(self, offsets: &Sums) -> [int32x4_t; 4] {
        self.floats.begin(offsets)
    }

    #[inline(always)]
    fn load(self, from: &Quads) -> [int8x16_t; 4] {
        self.floats.load_weights(from)
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> int8x16_t {
        self.floats.splat_values(values)
    }

    #[inline(always)]
    fn dot(self, sums: [int32x4_t; 4], weights: [int8x16_t; 4], values: int8x16_t) -> [int32x4_t; 4] {
        // SAFETY: the token proves that the CPU has the dot product.
        [0, 1, 2, 3].map(|register: usize| unsafe { sdot(sums[register], weights[register], values) })
    }

    #[inline(always)]
    fn to_floats(self, sums: [int32x4_t; 4]) -> [float32x4_t; 4] {
        self.floats.to_floats(sums)
    }
}
