//! AVX2 with FMA: a vector is two registers.

use std::arch::x86_64::*;

use super::{Array, EXPONENT_SHIFT, Kernel, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd};

/// Proof of AVX2 and FMA: [`Avx2::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx2,fma")]
        fn with_features<K: Kernel>(token: Avx2, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }
}

macro_rules! operations {
    ($($name:ident($($argument:ident),*) => $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: [__m256; 2]),*) -> [__m256; 2] {
            // SAFETY: the token proves that the CPU has AVX2 and FMA, and no operation here touches memory.
            unsafe { [
                { $(let $argument = $argument[0];)* $body },
                { $(let $argument = $argument[1];)* $body },
            ] }
        }
    )*};
}

impl Simd for Avx2 {
    type V = [__m256; 2];

    const MANY_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> [__m256; 2] {
        // SAFETY: the token proves that the CPU has AVX2.
        [unsafe { _mm256_set1_ps(x) }; 2]
    }

    #[inline(always)]
    fn load(self, from: &Array) -> [__m256; 2] {
        let from = from.as_ptr();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two unaligned loads read.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    #[inline(always)]
    fn store(self, v: [__m256; 2], to: &mut Array) {
        let to = to.as_mut_ptr();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two unaligned stores write.
        unsafe {
            _mm256_storeu_ps(to, v[0]);
            _mm256_storeu_ps(to.add(8), v[1]);
        }
    }

    #[inline(always)]
    fn reverse_pairs(self, [low, high]: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: the token proves that the CPU has AVX2, and nothing here touches memory.
        let reverse = |a| unsafe { _mm256_castpd_ps(_mm256_permute4x64_pd::<0b00_01_10_11>(_mm256_castps_pd(a))) };
        [reverse(high), reverse(low)]
    }

    #[inline(always)]
    fn high_half(self, [_, high]: [__m256; 2]) -> [__m256; 2] {
        [high; 2]
    }

    operations! {
        add(a, b) => _mm256_add_ps(a, b);
        sub(a, b) => _mm256_sub_ps(a, b);
        mul(a, b) => _mm256_mul_ps(a, b);
        div(a, b) => _mm256_div_ps(a, b);
        fma(a, b, c) => _mm256_fmadd_ps(a, b, c);
        min(a, b) => _mm256_min_ps(a, b);
        max(a, b) => _mm256_max_ps(a, b);
        round(a) => _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        abs(a) => _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
        copysign(a, sign) => {
            let sign_bit = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(sign_bit, a), _mm256_and_ps(sign_bit, sign))
        };
        select_less(a, b, yes, no) => _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b));
        pow2(n) => {
            let biased = _mm256_castps_si256(_mm256_add_ps(n, _mm256_set1_ps(POW2_MAGIC)));
            _mm256_castsi256_ps(_mm256_slli_epi32::<{ EXPONENT_SHIFT as i32 }>(biased))
        };
        negate_if_odd(a, n) => {
            let parity = _mm256_castps_si256(_mm256_add_ps(n, _mm256_set1_ps(PARITY_MAGIC)));
            _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32::<{ SIGN_SHIFT as i32 }>(parity)))
        };
        duplicate_even(a) => _mm256_moveldup_ps(a);
        duplicate_odd(a) => _mm256_movehdup_ps(a);
        swap_pairs(a) => _mm256_permute_ps::<0b10_11_00_01>(a);
    }
}
