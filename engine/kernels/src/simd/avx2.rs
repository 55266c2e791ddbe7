//! AVX2 with FMA and F16C: a vector is two registers.

use std::arch::x86_64::*;

use half::f16;

use super::int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads, ZERO_POINT};
use super::vector::{
    Array, EXPONENT_SHIFT, Kernel, LANES, PARITY_MAGIC, POW2_MAGIC, SIGN_SHIFT, Simd,
};

/// Proof of AVX2, FMA and F16C, which all CPUs with AVX2 and FMA have: [`Avx2::detect`] is the only
/// way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Avx2> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        all.then_some(Avx2(()))
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn with_features<K: Kernel>(token: Avx2, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }

    #[inline]
    pub(crate) fn run_int8<K: Int8Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn with_features<K: Int8Kernel>(token: Avx2, kernel: K) {
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
            // SAFETY: the token proves that the CPU has AVX2 and FMA, and no operation here touches
            // memory.
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
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two
        // unaligned loads read.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    #[inline(always)]
    fn store(self, v: [__m256; 2], to: &mut Array) {
        let to = to.as_mut_ptr();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two
        // unaligned stores write.
        unsafe {
            _mm256_storeu_ps(to, v[0]);
            _mm256_storeu_ps(to.add(8), v[1]);
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> [__m256; 2] {
        let from = from.as_ptr().cast::<__m128i>();
        // SAFETY: the token proves that the CPU has F16C, and the array is the 32 bytes the two
        // unaligned loads read.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from)),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(1))),
            ]
        }
    }

    #[inline(always)]
    fn store_bytes(self, v: [__m256; 2], to: &mut [u8; LANES]) {
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 16 bytes the
        // unaligned store writes.
        unsafe {
            let [low, high] = v.map(|v| {
                _mm256_cvtps_epi32(_mm256_add_ps(v, _mm256_set1_ps(f32::from(ZERO_POINT))))
            });
            // Packing works within 128-bit halves.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
            let bytes = _mm_packus_epi16(
                _mm256_castsi256_si128(words),
                _mm256_extracti128_si256::<1>(words),
            );
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
        }
    }

    #[inline(always)]
    fn reverse_pairs(self, [low, high]: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: the token proves that the CPU has AVX2, and nothing here touches memory.
        let reverse = |a| unsafe {
            _mm256_castpd_ps(_mm256_permute4x64_pd::<0b00_01_10_11>(_mm256_castps_pd(a)))
        };
        [reverse(high), reverse(low)]
    }

    #[inline(always)]
    fn high_half(self, [_, high]: [__m256; 2]) -> [__m256; 2] {
        [high; 2]
    }

    /// Transposes squares of eight.
    #[inline(always)]
    fn transpose(self, rows: [[__m256; 2]; LANES]) -> [[__m256; 2]; LANES] {
        let mut columns = rows;
        for (down, across) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // SAFETY: the token proves that the CPU has AVX2, and nothing here touches memory.
            unsafe {
                let mut quads = [[_mm256_setzero_ps(); 4]; 2];
                for quad in 0..2 {
                    let row = |k: usize| rows[8 * down + 4 * quad + k][across];
                    let (ab, cd) = (
                        _mm256_unpacklo_ps(row(0), row(1)),
                        _mm256_unpacklo_ps(row(2), row(3)),
                    );
                    let (a_b, c_d) = (
                        _mm256_unpackhi_ps(row(0), row(1)),
                        _mm256_unpackhi_ps(row(2), row(3)),
                    );
                    quads[quad] = [
                        _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                        _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
                        _mm256_shuffle_ps::<0b01_00_01_00>(a_b, c_d),
                        _mm256_shuffle_ps::<0b11_10_11_10>(a_b, c_d),
                    ];
                }
                for k in 0..4 {
                    let (upper, lower) = (quads[0][k], quads[1][k]);
                    columns[8 * across + k][down] = _mm256_permute2f128_ps::<0x20>(upper, lower);
                    columns[8 * across + 4 + k][down] =
                        _mm256_permute2f128_ps::<0x31>(upper, lower);
                }
            }
        }
        columns
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

/// There is no instruction for four products, so pairs of products are added in 16 bits: magnitudes
/// of the values times weights with the signs of the values. Two products of at most 127² fit;
/// those of unsigned values would not.
impl Int8Simd for Avx2 {
    type Float = Avx2;
    type SumVector = [__m256i; 2];
    type WeightVector = [__m256i; 2];
    /// Magnitudes, and values with their signs.
    type ValueVector = [__m256i; 2];

    #[inline(always)]
    fn float(self) -> Avx2 {
        self
    }

    #[inline(always)]
    fn initial_sums(self, _: &PanelSums) -> [__m256i; 2] {
        // SAFETY: the token proves that the CPU has AVX2.
        [unsafe { _mm256_setzero_si256() }; 2]
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> [__m256i; 2] {
        let from = from.0.as_ptr().cast::<__m256i>();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two
        // unaligned loads read.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> [__m256i; 2] {
        // SAFETY: the token proves that the CPU has AVX2.
        unsafe {
            let offset = _mm256_set1_epi32(i32::from_le_bytes(values));
            // Subtracting 128 flips the highest bit.
            let signed = _mm256_xor_si256(offset, _mm256_set1_epi8(ZERO_POINT as i8));
            [_mm256_abs_epi8(signed), signed]
        }
    }

    #[inline(always)]
    fn dot(
        self,
        sums: [__m256i; 2],
        weights: [__m256i; 2],
        [magnitudes, signed]: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the token proves that the CPU has AVX2, and nothing here touches memory.
        let add = |sums, weights| unsafe {
            let pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(weights, signed));
            _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        };
        [add(sums[0], weights[0]), add(sums[1], weights[1])]
    }

    #[inline(always)]
    fn to_floats(self, sums: [__m256i; 2]) -> [__m256; 2] {
        // SAFETY: the token proves that the CPU has AVX2.
        sums.map(|sums| unsafe { _mm256_cvtepi32_ps(sums) })
    }
}
