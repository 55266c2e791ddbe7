//! NEON's dot product: the sum of four products in eight bits in one instruction, in four
//! registers.

use std::arch::aarch64::*;
use std::arch::asm;

use super::int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads};
use super::neon::Neon;

/// Proof of NEON and its dot product: [`NeonDot::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeonDot {
    float: Neon,
}

impl NeonDot {
    pub(crate) fn detect() -> Option<NeonDot> {
        let float = Neon::detect()?;
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(NeonDot { float })
    }

    #[inline]
    pub(crate) fn run_int8<K: Int8Kernel>(self, kernel: K) {
        #[target_feature(enable = "neon,dotprod")]
        fn with_features<K: Int8Kernel>(token: NeonDot, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }
}

/// Dot products of four. Inline assembly, since the intrinsic is not stable yet.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn sdot(mut sums: int32x4_t, weights: int8x16_t, values: int8x16_t) -> int32x4_t {
    // SAFETY: the function's features are those the instruction needs; it changes nothing but its
    // first register.
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

impl Int8Simd for NeonDot {
    type Float = Neon;
    type SumVector = [int32x4_t; 4];
    type WeightVector = [int8x16_t; 4];
    type ValueVector = int8x16_t;

    #[inline(always)]
    fn float(self) -> Neon {
        self.float
    }

    #[inline(always)]
    fn initial_sums(self, offsets: &PanelSums) -> [int32x4_t; 4] {
        self.float.initial_sums(offsets)
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> [int8x16_t; 4] {
        self.float.load_weights(from)
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> int8x16_t {
        self.float.splat_values(values)
    }

    #[inline(always)]
    fn dot(
        self,
        sums: [int32x4_t; 4],
        weights: [int8x16_t; 4],
        values: int8x16_t,
    ) -> [int32x4_t; 4] {
        // SAFETY: the token proves that the CPU has the dot product.
        [0, 1, 2, 3]
            .map(|register: usize| unsafe { sdot(sums[register], weights[register], values) })
    }

    #[inline(always)]
    fn to_floats(self, sums: [int32x4_t; 4]) -> [float32x4_t; 4] {
        self.float.to_floats(sums)
    }
}
