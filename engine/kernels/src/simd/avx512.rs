//! AVX-512F: a vector is one register.

use std::arch::asm;
use std::arch::x86_64::*;

use half::f16;

use super::int8::ZERO_POINT;
use super::vector::{
    Array, EXPONENT_SHIFT, Kernel, LANES, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd,
};

/// Proof of AVX-512F: [`Avx512::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Avx512> {
        is_x86_feature_detected!("avx512f").then_some(Avx512(()))
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx512f")]
        fn with_features<K: Kernel>(token: Avx512, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the feature.
        unsafe { with_features(self, kernel) }
    }
}

/// Returns the mask of the first `count` lanes.
#[inline(always)]
fn first_lanes(count: usize) -> __mmask16 {
    assert!(count <= LANES, "more values than a vector has lanes");
    ((1_u32 << count) - 1) as __mmask16
}

/// Permutes lanes. Inline assembly, since the compiler turns the intrinsic into two instructions if
/// the lanes are constant.
#[target_feature(enable = "avx512f")]
#[inline]
fn permute(v: __m512, lanes: __m512i) -> __m512 {
    let out;
    // SAFETY: the function's feature is what the instruction needs; it changes nothing but its
    // first register.
    unsafe {
        asm!(
            "vpermps {out}, {lanes}, {v}",
            out = lateout(zmm_reg) out,
            lanes = in(zmm_reg) lanes,
            v = in(zmm_reg) v,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    out
}

/// Permutes lanes within quarters. Inline assembly, since the compiler turns the intrinsic after a
/// load into a second load.
#[target_feature(enable = "avx512f")]
#[inline]
fn permute_quarters<const LANES: i32>(v: __m512) -> __m512 {
    let out;
    // SAFETY: the function's feature is what the instruction needs; it changes nothing but its
    // first register.
    unsafe {
        asm!(
            "vpermilps {out}, {v}, {lanes}",
            out = lateout(zmm_reg) out,
            v = in(zmm_reg) v,
            lanes = const LANES,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    out
}

/// Executes nothing; the compiler keeps the order of these calls.
#[target_feature(enable = "avx512f")]
#[inline]
fn keep_order(mut v: __m512) -> __m512 {
    // SAFETY: nothing is executed, and the register keeps its value.
    unsafe {
        asm!("/* {v} */", v = inout(zmm_reg) v, options(nomem, nostack, preserves_flags));
    }
    v
}

macro_rules! operations {
    ($($name:ident($($argument:ident),*) => $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: __m512),*) -> __m512 {
            // SAFETY: the token proves that the CPU has AVX-512F, and no operation here touches
            // memory.
            unsafe { $body }
        }
    )*};
}

impl Simd for Avx512 {
    type V = __m512;

    const MANY_REGISTERS: bool = true;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx512f")]
        #[inline(never)]
        fn apart<K: Kernel>(token: Avx512, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the feature.
        unsafe { apart(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &Array) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 64 bytes an
        // unaligned load reads.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, to: &mut Array) {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 64 bytes an
        // unaligned store writes.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 32 bytes an
        // unaligned load reads.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn broadcast(self, v: __m512, lane: usize) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F.
        unsafe { permute(v, _mm512_set1_epi32(lane as i32)) }
    }

    /// One load for all four, since loads are the bottleneck where weights are loaded as well.
    #[inline(always)]
    fn spread(self, from: &[f32; 4]) -> [__m512; 4] {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 16 bytes an
        // unaligned load reads.
        unsafe {
            let all = _mm512_broadcast_f32x4(_mm_loadu_ps(from.as_ptr()));
            [
                permute_quarters::<0b00_00_00_00>(all),
                permute_quarters::<0b01_01_01_01>(all),
                permute_quarters::<0b10_10_10_10>(all),
                permute_quarters::<0b11_11_11_11>(all),
            ]
        }
    }

    #[inline(always)]
    fn in_turn(self, v: __m512) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F.
        unsafe { keep_order(v) }
    }

    #[inline(always)]
    fn load_padded(self, from: &[f32], padding: f32) -> __m512 {
        let lanes = first_lanes(from.len());
        // SAFETY: the token proves that the CPU has AVX-512F, and lanes beyond the slice are not
        // read.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(padding), lanes, from.as_ptr()) }
    }

    #[inline(always)]
    fn store_partial(self, v: __m512, to: &mut [f32]) {
        let lanes = first_lanes(to.len());
        // SAFETY: the token proves that the CPU has AVX-512F, and lanes beyond the slice are not
        // written.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), lanes, v) }
    }

    #[inline(always)]
    fn store_bytes(self, v: __m512, to: &mut [u8; LANES]) {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 16 bytes the
        // unaligned store writes.
        unsafe {
            let words = _mm512_cvtps_epi32(_mm512_add_ps(v, _mm512_set1_ps(f32::from(ZERO_POINT))));
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(words));
        }
    }

    /// Transposes within quarters of registers, then the quarters.
    #[inline(always)]
    fn transpose(self, rows: [__m512; LANES]) -> [__m512; LANES] {
        let mut columns = rows;
        // SAFETY: the token proves that the CPU has AVX-512F, and nothing here touches memory.
        unsafe {
            let mut quads = [[_mm512_setzero_ps(); 4]; 4];
            for quad in 0..4 {
                let row = |k: usize| rows[4 * quad + k];
                let pairs = |low| _mm512_castps_pd(low);
                let (ab, cd) = (
                    _mm512_unpacklo_ps(row(0), row(1)),
                    _mm512_unpacklo_ps(row(2), row(3)),
                );
                let (a_b, c_d) = (
                    _mm512_unpackhi_ps(row(0), row(1)),
                    _mm512_unpackhi_ps(row(2), row(3)),
                );
                quads[quad] = [
                    _mm512_unpacklo_pd(pairs(ab), pairs(cd)),
                    _mm512_unpackhi_pd(pairs(ab), pairs(cd)),
                    _mm512_unpacklo_pd(pairs(a_b), pairs(c_d)),
                    _mm512_unpackhi_pd(pairs(a_b), pairs(c_d)),
                ]
                .map(|quad| _mm512_castpd_ps(quad));
            }
            const EVEN: i32 = 0b10_00_10_00;
            const ODD: i32 = 0b11_01_11_01;
            for k in 0..4 {
                let [a, b, c, d] = [quads[0][k], quads[1][k], quads[2][k], quads[3][k]];
                let (ab, cd) = (
                    _mm512_shuffle_f32x4::<EVEN>(a, b),
                    _mm512_shuffle_f32x4::<EVEN>(c, d),
                );
                let (a_b, c_d) = (
                    _mm512_shuffle_f32x4::<ODD>(a, b),
                    _mm512_shuffle_f32x4::<ODD>(c, d),
                );
                columns[k] = _mm512_shuffle_f32x4::<EVEN>(ab, cd);
                columns[4 + k] = _mm512_shuffle_f32x4::<EVEN>(a_b, c_d);
                columns[8 + k] = _mm512_shuffle_f32x4::<ODD>(ab, cd);
                columns[12 + k] = _mm512_shuffle_f32x4::<ODD>(a_b, c_d);
            }
        }
        columns
    }

    operations! {
        add(a, b) => _mm512_add_ps(a, b);
        sub(a, b) => _mm512_sub_ps(a, b);
        mul(a, b) => _mm512_mul_ps(a, b);
        div(a, b) => _mm512_div_ps(a, b);
        fma(a, b, c) => _mm512_fmadd_ps(a, b, c);
        min(a, b) => _mm512_min_ps(a, b);
        max(a, b) => _mm512_max_ps(a, b);
        round(a) => _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        abs(a) => _mm512_abs_ps(a);
        copysign(a, sign) => {
            let sign_bit = _mm512_set1_epi32(i32::MIN);
            // Bitwise `sign_bit ? sign : a`.
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0b1100_1010>(
                sign_bit,
                _mm512_castps_si512(sign),
                _mm512_castps_si512(a),
            ))
        };
        select_less(a, b, yes, no) => _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes);
        pow2(n) => {
            let biased = _mm512_castps_si512(_mm512_add_ps(n, _mm512_set1_ps(POW2_MAGIC)));
            _mm512_castsi512_ps(_mm512_slli_epi32::<EXPONENT_SHIFT>(biased))
        };
        scale(a, n) => _mm512_scalef_ps(a, n);
        negate_if_odd(a, n) => {
            let parity = _mm512_castps_si512(_mm512_add_ps(n, _mm512_set1_ps(PARITY_MAGIC)));
            let sign = _mm512_slli_epi32::<SIGN_SHIFT>(parity);
            _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), sign))
        };
        duplicate_even(a) => _mm512_moveldup_ps(a);
        duplicate_odd(a) => _mm512_movehdup_ps(a);
        swap_pairs(a) => _mm512_permute_ps::<0b10_11_00_01>(a);
        high_half(a) => _mm512_shuffle_f32x4::<0b11_10_11_10>(a, a);
        reverse_pairs(a) => {
            let order = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
            _mm512_castpd_ps(_mm512_permutexvar_pd(order, _mm512_castps_pd(a)))
        };
    }
}
