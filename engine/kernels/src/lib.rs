//! SIMD arithmetic of the Ondes engine, chosen at run time.
//!
//! A [`Kernels`] value names one variant of the arithmetic (scalar, AVX2+FMA, AVX-512F, NEON) and proves that this CPU
//! has what the variant needs; the kernels are its methods.
//!
//! # The promise: one result, to the bit
//!
//! Every kernel gives **the same bits in every variant, however many columns or frames one call holds and wherever an
//! element lies in its slice**. What is rendered on one machine is what is heard on another, and what is computed in
//! blocks of any size is what is computed in one go. Left open are only the payload of a NaN and what the CPU is set to do
//! with subnormal numbers. That holds because:
//!
//! - a matrix product is, per output, one sequential chain of fused multiply-adds in memory order; vectors lie *across*
//!   outputs and columns, never along the sum;
//! - a transcendental is one polynomial, written with explicit fused multiply-adds, evaluated in one order;
//! - a product of bytes is a sum of whole numbers, which is exact, times scales that are applied in one order;
//! - a reduction that has to be vectorised runs in 16 partial sums and then one fixed tree, in every variant;
//! - every variant works on vectors of 16 lanes (of one, two, four or no registers), and the end of a slice goes through
//!   the same 16 lanes, padded.
//!
//! # Reading order
//!
//! `simd` has the trait each variant implements and each kernel is written against, once. `lanewise` runs an
//! elementwise operation over slices; `elementary` has the polynomials; `activation`, `arithmetic`, `conditioning`,
//! `recurrent` and `norm` are kernels made of these. `matrix` packs weights, `matmul` multiplies with them; `quantize`,
//! `int8_matrix` and `int8_matmul` do so with values and weights of eight bits. `oscillator`
//! is the harmonic synthesiser, `noise` a hash and `fourier` a part of a transform. `timewise` is for networks of few
//! channels at the rate of sound: there vectors lie along time. Unsafe code exists only in the per-CPU files of `simd`, in
//! `flush` and in `timewise/window`.

#![deny(unsafe_code)]
// Registers are indexed alike across several arrays of constant length; iterators would hide which belong together.
#![allow(clippy::needless_range_loop)]

mod activation;
mod arithmetic;
mod cells;
mod channel_activation;
mod conditioning;
mod elementary;
mod flush;
mod fourier;
mod fused;
mod int8_matmul;
mod int8_matrix;
mod lanewise;
mod matmul;
mod matrix;
mod noise;
mod norm;
mod oscillator;
mod peak;
mod quantize;
mod recurrent;
mod simd;

pub use activation::Activation;
pub use cells::{Cell, CellWeights};
pub use flush::FlushToZero;
pub use fused::{Binary, BufferView, ChannelRows, Convolution, FRAMES_PER_VECTOR, Passes, TapWeights, Taps, Unary};
pub use int8_matrix::{Int8Columns, Int8Matrix, int8_frame_width};
pub use matrix::{Columns, PackedMatrix};
pub use oscillator::HarmonicFrame;

use simd::{Int8Kernel, Int8Level, Kernel, SimdLevel};

/// One variant of the arithmetic, usable on this CPU.
///
/// Holding the value proves that the CPU has the features the variant needs. All variants give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    level: SimdLevel,
    int8: Int8Level,
}

impl Kernels {
    /// The fastest variant this CPU has.
    pub fn detect() -> Kernels {
        Kernels::of(SimdLevel::detect())
    }

    /// The variant every CPU has: the reference for the others, and slow.
    pub fn scalar() -> Kernels {
        Kernels::of(SimdLevel::SCALAR)
    }

    /// All variants usable on this CPU, scalar first.
    pub fn available() -> Vec<Kernels> {
        SimdLevel::available().into_iter().map(Kernels::of).collect()
    }

    /// All ways to compute products of bytes on this CPU, scalar first: more than there are of other kernels.
    pub fn available_for_int8() -> Vec<Kernels> {
        Int8Level::available().into_iter().map(|(level, int8)| Kernels { level, int8 }).collect()
    }

    fn of(level: SimdLevel) -> Kernels {
        Kernels { level, int8: Int8Level::of(level) }
    }

    /// `"scalar"`, `"avx2"`, `"avx512"` or `"neon"`.
    pub fn name(self) -> &'static str {
        self.level.name()
    }

    /// What computes products of bytes: `"scalar"`, `"avx2"`, `"avx_vnni"`, `"avx512_vnni"`, `"neon"` or `"neon_dot"`.
    pub fn int8_name(self) -> &'static str {
        self.int8.name()
    }

    #[inline]
    fn run<K: Kernel>(self, kernel: K) {
        self.level.run(kernel);
    }

    #[inline]
    fn run_int8<K: Int8Kernel>(self, kernel: K) {
        self.int8.run(kernel);
    }
}
