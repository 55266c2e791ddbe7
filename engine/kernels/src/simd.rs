//! Vectors of 16 lanes, and their implementation on each CPU.
//!
//! A *token* ([`Simd`]) stands for a set of CPU features and exists only on CPUs that have them.
//! The vector operations are its methods, so kernels are safe code. A [`Kernel`] is a computation
//! written once for any token; [`SimdLevel`] holds the token chosen at run time and calls the
//! kernel in a function compiled with the token's features. [`Int8Simd`], [`Int8Kernel`] and
//! [`Int8Level`] are the same for products in eight bits, which have more sets of features.
//!
//! `vector` and `int8` define the operations; one file per set of features implements them; `level`
//! chooses among those.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512_vnni;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx_vnni;
mod int8;
mod level;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod neon;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod neon_dot;
mod scalar;
mod vector;

pub(crate) use int8::{Int8Kernel, Int8Simd, PanelSums, QUAD, WeightQuads, ZERO_POINT};
pub(crate) use level::{Int8Level, SimdLevel};
pub(crate) use vector::{Array, Kernel, LANES, Simd};
