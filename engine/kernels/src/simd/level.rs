//! Choice of the variant at run time, for `f32` and for products in eight bits.

use super::int8::Int8Kernel;
#[cfg(target_arch = "x86_64")]
use super::int8::Int8Simd;
use super::scalar::Scalar;
use super::vector::Kernel;
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni::AvxVnni, avx2::Avx2, avx512::Avx512, avx512_vnni::Avx512Vnni};
#[cfg(target_arch = "aarch64")]
use super::{neon::Neon, neon_dot::NeonDot};

/// Token of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimdLevel {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl SimdLevel {
    pub(crate) const SCALAR: SimdLevel = SimdLevel::Scalar(Scalar);

    pub(crate) fn available() -> Vec<SimdLevel> {
        let mut levels = vec![SimdLevel::SCALAR];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(Avx2::detect().map(SimdLevel::Avx2));
            levels.extend(Avx512::detect().map(SimdLevel::Avx512));
        }
        #[cfg(target_arch = "aarch64")]
        levels.extend(Neon::detect().map(SimdLevel::Neon));
        levels
    }

    pub(crate) fn detect() -> SimdLevel {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(token) = Avx512::detect() {
                return SimdLevel::Avx512(token);
            }
            if let Some(token) = Avx2::detect() {
                return SimdLevel::Avx2(token);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(token) = Neon::detect() {
            return SimdLevel::Neon(token);
        }
        SimdLevel::SCALAR
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            SimdLevel::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon(_) => "neon",
        }
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        match self {
            SimdLevel::Scalar(token) => kernel.run(token),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2(token) => token.run(kernel),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512(token) => token.run(kernel),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon(token) => token.run(kernel),
        }
    }
}

/// Token of a variant of products in eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Int8Level {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    #[cfg(target_arch = "aarch64")]
    NeonDot(NeonDot),
}

impl Int8Level {
    /// Returns the variants of this CPU, each with its `f32` level, the slowest first.
    pub(crate) fn available() -> Vec<(SimdLevel, Int8Level)> {
        let mut levels = vec![(SimdLevel::SCALAR, Int8Level::Scalar(Scalar))];
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(token) = Avx2::detect() {
                levels.push((SimdLevel::Avx2(token), Int8Level::Avx2(token)));
                levels.extend(
                    AvxVnni::detect()
                        .map(|vnni| (SimdLevel::Avx2(token), Int8Level::AvxVnni(vnni))),
                );
            }
            levels.extend(
                Avx512Vnni::detect()
                    .map(|vnni| (SimdLevel::Avx512(vnni.float()), Int8Level::Avx512Vnni(vnni))),
            );
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(token) = Neon::detect() {
            levels.push((SimdLevel::Neon(token), Int8Level::Neon(token)));
            let dot = NeonDot::detect();
            levels.extend(dot.map(|dot| (SimdLevel::Neon(token), Int8Level::NeonDot(dot))));
        }
        levels
    }

    /// Returns the fastest variant of an `f32` level; the fastest of all if the level has none, as
    /// AVX-512 without VNNI.
    pub(crate) fn with_level(level: SimdLevel) -> Int8Level {
        let mut all = Int8Level::available();
        let own = all
            .iter()
            .rposition(|(floats, _)| *floats == level)
            .unwrap_or(all.len() - 1);
        all.swap_remove(own).1
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Int8Level::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Int8Level::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Int8Level::AvxVnni(_) => "avx_vnni",
            #[cfg(target_arch = "x86_64")]
            Int8Level::Avx512Vnni(_) => "avx512_vnni",
            #[cfg(target_arch = "aarch64")]
            Int8Level::Neon(_) => "neon",
            #[cfg(target_arch = "aarch64")]
            Int8Level::NeonDot(_) => "neon_dot",
        }
    }

    #[inline]
    pub(crate) fn run<K: Int8Kernel>(self, kernel: K) {
        match self {
            Int8Level::Scalar(token) => kernel.run(token),
            #[cfg(target_arch = "x86_64")]
            Int8Level::Avx2(token) => token.run_int8(kernel),
            #[cfg(target_arch = "x86_64")]
            Int8Level::AvxVnni(token) => token.run_int8(kernel),
            #[cfg(target_arch = "x86_64")]
            Int8Level::Avx512Vnni(token) => token.run_int8(kernel),
            #[cfg(target_arch = "aarch64")]
            Int8Level::Neon(token) => token.run_int8(kernel),
            #[cfg(target_arch = "aarch64")]
            Int8Level::NeonDot(token) => token.run_int8(kernel),
        }
    }
}
