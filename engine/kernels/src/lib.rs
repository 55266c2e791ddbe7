//! SIMD arithmetic of the Ondes engine, chosen at run time.
//!
//! A [`Kernels`] value names one variant of the arithmetic (scalar, AVX2 with FMA, AVX-512F, NEON)
//! and proves that this CPU supports it. The kernels are its methods.
//!
//! ```
//! use ondes_kernels::{Activation, Columns, Kernels, PackedMatrix};
//!
//! let kernels = Kernels::detect();
//! // y = tanh(W x + b), with the rows (1, 2) and (0, 1) of W and b = (0.5, 0).
//! let w = PackedMatrix::new(2, 1, 2, |row, _, column| [[1.0, 2.0], [0.0, 1.0]][row][column], Some(&[0.5, 0.0]));
//! let mut y = [0.0; 2];
//! kernels.matmul(&w, Columns { data: &[0.1, 0.2], count: 1, stride: 2, tap_stride: 2 }, &mut y, 2);
//! kernels.activate(Activation::Tanh, &mut y);
//! assert!((y[0] - 1.0_f32.tanh()).abs() < 1e-6 && (y[1] - 0.2_f32.tanh()).abs() < 1e-6);
//! ```
//!
//! # Bit-exact results
//!
//! Every kernel gives **the same bits in every variant, for any number of columns or frames per
//! call and for any position of an element in its slice**. So a render is the same on every
//! machine, and block by block equals all at once. Exceptions are the payload of a NaN and the
//! CPU's setting for subnormal numbers ([`FlushToZero`]). This holds because:
//!
//! - a matrix product is, per output, one sequential chain of fused multiply-adds in memory order;
//!   vectors lie *across* outputs and columns, never along the sum;
//! - a transcendental function is one polynomial of explicit fused multiply-adds in one order;
//! - a product in eight bits is a sum of integers, which is exact, times scales that are applied in
//!   one order;
//! - a reduction that has to be vectorised uses 16 partial sums and then one fixed tree;
//! - every variant works on vectors of 16 lanes (of one, two, four or no registers), and the end of
//!   a slice uses the same 16 lanes, padded.
//!
//! # Reading order
//!
//! `simd` has the trait that each variant implements and that each kernel is written against.
//! `lanewise` runs elementwise operations over slices and `elementary` has the polynomials;
//! `activation`, `channel_activation`, `arithmetic`, `conditioning`, `recurrent` and `norm` are
//! kernels made of these. `matrix` packs weights and `matmul` multiplies them; `quantize`,
//! `int8_matrix` and `int8_matmul` are the same in eight bits. `oscillator` is the harmonic
//! synthesiser, `noise` a hash, `fourier` a part of a transform and `filters` that of a resampler.
//! `cells` and `fused` are networks of few channels at audio rate: recurrent layers, and
//! convolutions with time across the lanes. Unsafe code is confined to the files per CPU in `simd`,
//! to `flush` and to `fused/window`.

#![deny(unsafe_code)]
// Registers at equal indices of several arrays of constant length belong together; iterators would
// hide that.
#![allow(clippy::needless_range_loop)]

mod activation;
mod arithmetic;
mod cells;
mod channel_activation;
mod conditioning;
mod elementary;
mod filters;
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
mod recurrent_training;
mod simd;

pub use activation::Activation;
pub use cells::{CellKind, CellWeights};
pub use filters::FilterPosition;
pub use flush::FlushToZero;
pub use fused::{
    Binary, BufferView, ChannelRows, Convolution, FRAMES_PER_VECTOR, Passes, StreamSignals,
    TapWeights, Taps, Unary,
};
pub use int8_matrix::{Int8Columns, Int8Matrix, int8_frame_width};
pub use matrix::{Columns, PackedMatrix};
pub use oscillator::HarmonicFrame;

use simd::{Int8Kernel, Int8Level, Kernel, SimdLevel};

/// One variant of the arithmetic, usable on this CPU.
///
/// Holding the value proves that the CPU has the features that the variant needs. All variants give
/// the same bits:
///
/// ```
/// use ondes_kernels::{Activation, Kernels};
///
/// let apply = |kernels: Kernels| {
///     let mut x = [-1.0, 0.25, 3.0];
///     kernels.activate(Activation::Tanh, &mut x);
///     x
/// };
/// for kernels in Kernels::available() {
///     assert_eq!(apply(kernels), apply(Kernels::scalar()), "{}", kernels.name());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    level: SimdLevel,
    int8: Int8Level,
}

impl Kernels {
    /// Returns the fastest variant of this CPU.
    pub fn detect() -> Kernels {
        Kernels::with_level(SimdLevel::detect())
    }

    /// Returns the scalar variant, the slow reference, which every CPU has.
    pub fn scalar() -> Kernels {
        Kernels::with_level(SimdLevel::SCALAR)
    }

    /// Returns all variants of this CPU, scalar first.
    pub fn available() -> Vec<Kernels> {
        SimdLevel::available()
            .into_iter()
            .map(Kernels::with_level)
            .collect()
    }

    /// Returns all variants of products in eight bits on this CPU, scalar first. There are more of
    /// them than of the other kernels.
    pub fn available_for_int8() -> Vec<Kernels> {
        Int8Level::available()
            .into_iter()
            .map(|(level, int8)| Kernels { level, int8 })
            .collect()
    }

    fn with_level(level: SimdLevel) -> Kernels {
        Kernels {
            level,
            int8: Int8Level::with_level(level),
        }
    }

    /// Returns `"scalar"`, `"avx2"`, `"avx512"` or `"neon"`.
    pub fn name(self) -> &'static str {
        self.level.name()
    }

    /// Returns the variant of products in eight bits: `"scalar"`, `"avx2"`, `"avx_vnni"`,
    /// `"avx512_vnni"`, `"neon"` or `"neon_dot"`.
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
