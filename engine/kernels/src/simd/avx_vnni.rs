//! AVX-VNNI with AVX2: the sum of four products in eight bits in one instruction, in two registers.

use std::arch::x86_64::*;

use super::avx2::Avx2;
use super::int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads};

/// Proof of AVX-VNNI, AVX2 and FMA: [`AvxVnni::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AvxVnni {
    float: Avx2,
}

impl AvxVnni {
    pub(crate) fn detect() -> Option<AvxVnni> {
        let float = Avx2::detect()?;
        is_x86_feature_detected!("avxvnni").then_some(AvxVnni { float })
    }

    #[inline]
    pub(crate) fn run_int8<K: Int8Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
        fn with_features<K: Int8Kernel>(token: AvxVnni, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }
}

impl Int8Simd for AvxVnni {
    type Float = Avx2;
    type SumVector = [__m256i; 2];
    type WeightVector = [__m256i; 2];
    type ValueVector = __m256i;

    #[inline(always)]
    fn float(self) -> Avx2 {
        self.float
    }

    #[inline(always)]
    fn initial_sums(self, offsets: &PanelSums) -> [__m256i; 2] {
        let from = offsets.0.as_ptr().cast::<__m256i>();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two
        // unaligned loads read.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> [__m256i; 2] {
        let from = from.0.as_ptr().cast::<__m256i>();
        // SAFETY: the token proves that the CPU has AVX2, and the array is the 64 bytes the two
        // unaligned loads read.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> __m256i {
        // SAFETY: the token proves that the CPU has AVX2.
        unsafe { _mm256_set1_epi32(i32::from_le_bytes(values)) }
    }

    #[inline(always)]
    fn dot(self, sums: [__m256i; 2], weights: [__m256i; 2], values: __m256i) -> [__m256i; 2] {
        // SAFETY: the token proves that the CPU has AVX-VNNI, and nothing here touches memory.
        unsafe {
            [
                _mm256_dpbusd_avx_epi32(sums[0], values, weights[0]),
                _mm256_dpbusd_avx_epi32(sums[1], values, weights[1]),
            ]
        }
    }

    #[inline(always)]
    fn to_floats(self, sums: [__m256i; 2]) -> [__m256; 2] {
        // SAFETY: the token proves that the CPU has AVX2.
        sums.map(|sums| unsafe { _mm256_cvtepi32_ps(sums) })
    }
}
