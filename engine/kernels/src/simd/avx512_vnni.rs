//! AVX-512 VNNI: the sum of four products in eight bits in one instruction, in one register.

use std::arch::x86_64::*;

use super::avx512::Avx512;
use super::int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads};

/// Proof of AVX-512F and AVX-512 VNNI: [`Avx512Vnni::detect`] is the only way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512Vnni {
    float: Avx512,
}

impl Avx512Vnni {
    pub(crate) fn detect() -> Option<Avx512Vnni> {
        let float = Avx512::detect()?;
        is_x86_feature_detected!("avx512vnni").then_some(Avx512Vnni { float })
    }

    #[inline]
    pub(crate) fn run_int8<K: Int8Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx512f,avx512vnni")]
        fn with_features<K: Int8Kernel>(token: Avx512Vnni, kernel: K) {
            kernel.run(token);
        }
        // SAFETY: the token proves that the CPU has the features.
        unsafe { with_features(self, kernel) }
    }
}

impl Int8Simd for Avx512Vnni {
    type Float = Avx512;
    type SumVector = __m512i;
    type WeightVector = __m512i;
    type ValueVector = __m512i;

    #[inline(always)]
    fn float(self) -> Avx512 {
        self.float
    }

    #[inline(always)]
    fn initial_sums(self, offsets: &PanelSums) -> __m512i {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 64 bytes an
        // unaligned load reads.
        unsafe { _mm512_loadu_si512(offsets.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn load(self, from: &WeightQuads) -> __m512i {
        // SAFETY: the token proves that the CPU has AVX-512F, and the array is the 64 bytes an
        // unaligned load reads.
        unsafe { _mm512_loadu_si512(from.0.as_ptr().cast()) }
    }

    #[inline(always)]
    fn splat(self, values: [u8; QUAD]) -> __m512i {
        // SAFETY: the token proves that the CPU has AVX-512F.
        unsafe { _mm512_set1_epi32(i32::from_le_bytes(values)) }
    }

    #[inline(always)]
    fn dot(self, sums: __m512i, weights: __m512i, values: __m512i) -> __m512i {
        // SAFETY: the token proves that the CPU has AVX-512 VNNI, and nothing here touches memory.
        unsafe { _mm512_dpbusd_epi32(sums, values, weights) }
    }

    #[inline(always)]
    fn to_floats(self, sums: __m512i) -> __m512 {
        // SAFETY: the token proves that the CPU has AVX-512F.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }
}
