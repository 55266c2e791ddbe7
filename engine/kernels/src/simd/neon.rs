//! NEON: a vector is four registers.

use std::arch::aarch64::*;
use std::arch::asm;

use half::f16;

use super::int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads, ZERO_POINT};
use super::vector::{
    Array, EXPONENT_SHIFT, Kernel, LANES, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd,
};

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

    #[inline]
    pub(crate) fn run_int8<K: Int8Kernel>(self, kernel: K) {
        #[target_feature(enable = "neon")]
        fn with_features<K: Int8Kernel>(token: Neon, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the feature.
        unsafe { with_features(self, kernel) }
    }

    #[inline(always)]
    pub(super) fn load_weights(self, from: &WeightQuads) -> [int8x16_t; 4] {
        let from = from.0.as_ptr();
        // SAFETY: the token proves that the CPU has NEON, and the array is the 64 bytes the four
        // loads read.
        unsafe {
            [
                vld1q_s8(from),
                vld1q_s8(from.add(16)),
                vld1q_s8(from.add(32)),
                vld1q_s8(from.add(48)),
            ]
        }
    }

    /// Returns four signed values, repeated for all outputs.
    #[inline(always)]
    pub(super) fn splat_values(self, values: [u8; QUAD]) -> int8x16_t {
        // SAFETY: the token proves that the CPU has NEON.
        unsafe {
            let offset = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(values)));
            // Subtracting 128 flips the highest bit.
            vreinterpretq_s8_u8(veorq_u8(offset, vdupq_n_u8(ZERO_POINT)))
        }
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

/// Widens four values. Inline assembly, since the intrinsic is not stable.
#[target_feature(enable = "neon")]
#[inline]
fn widen(halves: uint16x4_t) -> float32x4_t {
    let out;
    // SAFETY: the function's feature is what the instruction needs; it changes nothing but its
    // first register.
    unsafe {
        asm!(
            "fcvtl {out:v}.4s, {halves:v}.4h",
            out = lateout(vreg) out,
            halves = in(vreg) halves,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    out
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
        // SAFETY: the token proves that the CPU has NEON, and the array is the 64 bytes the four
        // loads read.
        unsafe {
            [
                vld1q_f32(from),
                vld1q_f32(from.add(4)),
                vld1q_f32(from.add(8)),
                vld1q_f32(from.add(12)),
            ]
        }
    }

    #[inline(always)]
    fn store(self, v: [float32x4_t; 4], to: &mut Array) {
        let to = to.as_mut_ptr();
        // SAFETY: the token proves that the CPU has NEON, and the array is the 64 bytes the four
        // stores write.
        unsafe {
            vst1q_f32(to, v[0]);
            vst1q_f32(to.add(4), v[1]);
            vst1q_f32(to.add(8), v[2]);
            vst1q_f32(to.add(12), v[3]);
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> [float32x4_t; 4] {
        let from = from.as_ptr().cast::<u16>();
        // SAFETY: the token proves that the CPU has NEON, and the array is the 32 bytes the four
        // loads read.
        unsafe {
            [
                widen(vld1_u16(from)),
                widen(vld1_u16(from.add(4))),
                widen(vld1_u16(from.add(8))),
                widen(vld1_u16(from.add(12))),
            ]
        }
    }

    #[inline(always)]
    fn store_bytes(self, v: [float32x4_t; 4], to: &mut [u8; LANES]) {
        // SAFETY: the token proves that the CPU has NEON, and the array is the 16 bytes the store
        // writes.
        unsafe {
            let words = v.map(|v| {
                vmovn_u32(vcvtq_u32_f32(vaddq_f32(
                    v,
                    vdupq_n_f32(f32::from(ZERO_POINT)),
                )))
            });
            let [low, high] = [
                vcombine_u16(words[0], words[1]),
                vcombine_u16(words[2], words[3]),
            ];
            vst1q_u8(
                to.as_mut_ptr(),
                vcombine_u8(vmovn_u16(low), vmovn_u16(high)),
            );
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

    /// Transposes squares of four.
    #[inline(always)]
    fn transpose(self, rows: [[float32x4_t; 4]; LANES]) -> [[float32x4_t; 4]; LANES] {
        let mut columns = rows;
        for down in 0..4 {
            for across in 0..4 {
                let row = |k: usize| rows[4 * down + k][across];
                // SAFETY: the token proves that the CPU has NEON, and nothing here touches memory.
                unsafe {
                    let pairs = |x| vreinterpretq_f64_f32(x);
                    let (ab, cd) = (
                        pairs(vtrn1q_f32(row(0), row(1))),
                        pairs(vtrn1q_f32(row(2), row(3))),
                    );
                    let (a_b, c_d) = (
                        pairs(vtrn2q_f32(row(0), row(1))),
                        pairs(vtrn2q_f32(row(2), row(3))),
                    );
                    let square = [
                        vtrn1q_f64(ab, cd),
                        vtrn1q_f64(a_b, c_d),
                        vtrn2q_f64(ab, cd),
                        vtrn2q_f64(a_b, c_d),
                    ];
                    for k in 0..4 {
                        columns[4 * across + k][down] = vreinterpretq_f32_f64(square[k]);
                    }
                }
            }
        }
        columns
    }

    operations! {
        add(a, b) => vaddq_f32(a, b);
        sub(a, b) => vsubq_f32(a, b);
        mul(a, b) => vmulq_f32(a, b);
        div(a, b) => vdivq_f32(a, b);
        fma(a, b, c) => vfmaq_f32(c, a, b);
        // NEON's own minimum and maximum differ for NaN and signed zeros.
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

/// There is no instruction for four products, so pairs of products are added in 16 bits, where two
/// products of at most 127² fit.
impl Int8Simd for Neon {
    type Float = Neon;
    type SumVector = [int32x4_t; 4];
    type WeightVector = [int8x16_t; 4];
    type ValueVector = int8x16_t;

    #[inline(always)]
    fn float(self) -> Neon {
        self
    }

    #[inline(always)]
    fn initial_sums(self, _: &PanelSums) -> [int32x4_t; 4] {
        // SAFETY: the token proves that the CPU has NEON.
        [unsafe { vdupq_n_s32(0) }; 4]
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> [int8x16_t; 4] {
        self.load_weights(from)
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> int8x16_t {
        self.splat_values(values)
    }

    #[inline(always)]
    fn dot(
        self,
        sums: [int32x4_t; 4],
        weights: [int8x16_t; 4],
        values: int8x16_t,
    ) -> [int32x4_t; 4] {
        // SAFETY: the token proves that the CPU has NEON, and nothing here touches memory.
        [0, 1, 2, 3].map(|register: usize| unsafe {
            let weights = weights[register];
            let low = vmull_s8(vget_low_s8(weights), vget_low_s8(values));
            vpadalq_s16(
                sums[register],
                vpaddq_s16(low, vmull_high_s8(weights, values)),
            )
        })
    }

    #[inline(always)]
    fn to_floats(self, sums: [int32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: the token proves that the CPU has NEON.
        sums.map(|sums| unsafe { vcvtq_f32_s32(sums) })
    }
}
