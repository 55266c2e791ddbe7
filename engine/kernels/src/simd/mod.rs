//! Vectors of 16 lanes, and what each CPU makes of them.
//!
//! A *token* ([`Simd`]) stands for a set of CPU features and can only be had where the CPU has them; the operations are
//! its methods, so kernels are safe code. A [`Kernel`] is a computation written once for any token; [`SimdLevel`] picks the
//! token at run time and compiles the kernel into a function with the token's features. `bytes` has the same for products
//! of bytes, for which there are more sets of features.

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
