//! Products of bytes, and what each CPU makes of them.
//!
//! Values are unsigned bytes with an offset of 128, weights signed bytes from −127 to 127. All sums are whole numbers below
//! 2³¹, so the order in which they are added makes no difference.

use super::{Level, Simd};

/// What a value of 0 is as a byte.
pub(crate) const ZERO: u8 = 128;

/// Inputs that meet their weights at a time.
pub(crate) const QUAD: usize = 4;

/// Weights of 16 outputs by 4 inputs, `[output][input]`, on one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Quads(pub [i8; 64]);

/// Sums of 16 outputs.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Sums(pub [i32; 16]);

/// Proof of a set of CPU features, and the products of bytes that they give.
pub(crate) trait Bytes: Copy {
    /// What computes with `f32` beside it.
    type Floats: Simd;
    /// 16 sums.
    type I: Copy;
    /// Weights, ready to be used more than once.
    type W: Copy;
    /// Four values for all outputs.
    type X: Copy;

    fn floats(self) -> Self::Floats;
    /// Sums to begin with; `offsets` are −128 times the sums of the weights, for who takes the values as they are.
    fn begin(self, offsets: &Sums) -> Self::I;
    fn load(self, from: &Quads) -> Self::W;
    fn splat(self, values: [u8; QUAD]) -> Self::X;
    /// Adds to each output the four products of its weights with the values.
    fn dot(self, sums: Self::I, weights: Self::W, values: Self::X) -> Self::I;
    /// To the nearest float, halves to even.
    fn to_floats(self, sums: Self::I) -> <Self::Floats as Simd>::V;
}

/// A computation with bytes, written once for any token.
pub(crate) trait ByteKernel {
    /// Has to be `#[inline(always)]`, as [`super::Kernel::run`].
    fn run<B: Bytes>(self, b: B);
}

/// The token of one variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteLevel {
    Scalar(super::scalar::Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(super::avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(super::avx_vnni::AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(super::avx512_vnni::Avx512Vnni),
    #[cfg(target_arch = "aarch64")]
    Neon(super::neon::Neon),
    #[cfg(target_arch = "aarch64")]
    NeonDot(super::neon_dot::NeonDot),
}

impl ByteLevel {
    /// Each with the floats that go with it, the slowest first.
    pub(crate) fn available() -> Vec<(Level, ByteLevel)> {
        let mut levels = vec![(Level::SCALAR, ByteLevel::Scalar(super::scalar::Scalar))];
        #[cfg(target_arch = "x86_64")]
        {
            use super::{avx_vnni::AvxVnni, avx2::Avx2, avx512_vnni::Avx512Vnni};
            if let Some(token) = Avx2::detect() {
                levels.push((Level::Avx2(token), ByteLevel::Avx2(token)));
                levels.extend(AvxVnni::detect().map(|vnni| (Level::Avx2(token), ByteLevel::AvxVnni(vnni))));
            }
            levels.extend(Avx512Vnni::detect().map(|vnni| (Level::Avx512(vnni.floats()), ByteLevel::Avx512Vnni(vnni))));
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(token) = super::neon::Neon::detect() {
            levels.push((Level::Neon(token), ByteLevel::Neon(token)));
            let dot = super::neon_dot::NeonDot::detect();
            levels.extend(dot.map(|dot| (Level::Neon(token), ByteLevel::NeonDot(dot))));
        }
        levels
    }

    /// The fastest that goes with a level; where none does, as with AVX-512 without products of bytes, the fastest there is.
    pub(crate) fn of(level: Level) -> ByteLevel {
        let mut all = ByteLevel::available();
        let own = all.iter().rposition(|(floats, _)| *floats == level).unwrap_or(all.len() - 1);
        all.swap_remove(own).1
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ByteLevel::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            ByteLevel::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            ByteLevel::AvxVnni(_) => "avx_vnni",
            #[cfg(target_arch = "x86_64")]
            ByteLevel::Avx512Vnni(_) => "avx512_vnni",
            #[cfg(target_arch = "aarch64")]
            ByteLevel::Neon(_) => "neon",
            #[cfg(target_arch = "aarch64")]
            ByteLevel::NeonDot(_) => "neon_dot",
        }
    }

    #[inline]
    pub(crate) fn run<K: ByteKernel>(self, kernel: K) {
        match self {
            ByteLevel::Scalar(token) => kernel.run(token),
            #[cfg(target_arch = "x86_64")]
            ByteLevel::Avx2(token) => token.run_bytes(kernel),
            #[cfg(target_arch = "x86_64")]
            ByteLevel::AvxVnni(token) => token.run_bytes(kernel),
            #[cfg(target_arch = "x86_64")]
            ByteLevel::Avx512Vnni(token) => token.run_bytes(kernel),
            #[cfg(target_arch = "aarch64")]
            ByteLevel::Neon(token) => token.run_bytes(kernel),
            #[cfg(target_arch = "aarch64")]
            ByteLevel::NeonDot(token) => token.run_bytes(kernel),
        }
    }
}
