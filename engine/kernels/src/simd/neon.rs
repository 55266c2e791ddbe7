//! NEON: a vector is four registers.

use std::arch::aarch64::*;

use super::{Array, EXPONENT_SHIFT, Kernel, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd};

/// Proof of NEON: [`Neon::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn detect() -> Option<Neon> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "neon")]
        fn with_features<K: Kernel>(token: Neon, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the feature.
        unsafe { with_features(self, kernel) }
    }
}

macro_rules! operations {
    ($($name:ident($($argument:ident),*) => $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: [float32x4_t; 4]),*) -> [float32x4_t; 4] {
            // SAFETY: the token proves that the CPU has NEON, and no operation here touches memory.
            unsafe { [
                { $(let $argument = $argument[0];)* $body },
                { $(let $argument = $argument[1];)* $body },
                { $(let $argument = $argument[2];)* $body },
                { $(let $argument = $argument[3];)* $body },
            ] }
        }
    )*};
}

impl Simd for Neon {
    type V = [float32x4_t; 4];

    const MANY_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> [float32x4_t; 4] {
        // SAFETY: the token proves that the CPU has NEON.
        [unsafe { vdupq_n_f32(x) }; 4]
    }

    #[inline(always)]
    fn load(self, from: &Array) -> [float32x4_t; 4] {
        let from = from.as_ptr();
        // SAFETY: the token proves that the CPU has NEON, and the array is the 64 bytes the four loads read.
        unsafe { [vld1q_f32(from), vld1q_f32(from.add(4)), vld1q_f32(from.add(8)), vld1q_f32(from.add(12))] }
    }

    #[inline(always)]
    fn store(self, v: [float32x4_t; 4], to: &mut Array) {
        let to = to.as_mut_ptr();
        // SAFETY: the token proves that the CPU has NEON, and the array is the 64 bytes the four stores write.
        unsafe {
            vst1q_f32(to, v[0]);
            vst1q_f32(to.add(4), v[1]);
            vst1q_f32(to.add(8), v[2]);
            vst1q_f32(to.add(12), v[3]);
        }
    }

    #[inline(always)]
    fn reverse_pairs(self, a: [float32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: the token proves that the CPU has NEON, and nothing here touches memory.
        [3, 2, 1, 0].map(|register: usize| unsafe { vextq_f32::<2>(a[register], a[register]) })
    }

    #[inline(always)]
    fn high_half(self, [.., a, b]: [float32x4_t; 4]) -> [float32x4_t; 4] {
        [a, b, a, b]
    }

    operations! {
        add(a, b) => vaddq_f32(a, b);
        sub(a, b) => vsubq_f32(a, b);
        mul(a, b) => vmulq_f32(a, b);
        div(a, b) => vdivq_f32(a, b);
        fma(a, b, c) => vfmaq_f32(c, a, b);
        // NEON's own minimum and maximum treat NaN and signed zeros otherwise.
        min(a, b) => vbslq_f32(vcltq_f32(a, b), a, b);
        max(a, b) => vbslq_f32(vcgtq_f32(a, b), a, b);
        round(a) => vrndnq_f32(a);
        abs(a) => vabsq_f32(a);
        copysign(a, sign) => vbslq_f32(vdupq_n_u32(1 << SIGN_SHIFT), sign, a);
        select_less(a, b, yes, no) => vbslq_f32(vcltq_f32(a, b), yes, no);
        pow2(n) => {
            let biased = vreinterpretq_u32_f32(vaddq_f32(n, vdupq_n_f32(POW2_MAGIC)));
            vreinterpretq_f32_u32(vshlq_n_u32::<{ EXPONENT_SHIFT as i32 }>(biased))
        };
        negate_if_odd(a, n) => {
            let parity = vreinterpretq_u32_f32(vaddq_f32(n, vdupq_n_f32(PARITY_MAGIC)));
            let sign = vshlq_n_u32::<{ SIGN_SHIFT as i32 }>(parity);
            vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a), sign))
        };
        duplicate_even(a) => vtrn1q_f32(a, a);
        duplicate_odd(a) => vtrn2q_f32(a, a);
        swap_pairs(a) => vrev64q_f32(a);
    }
}
