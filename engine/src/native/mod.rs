//! The native executor: a method becomes a plan of layers over one arena, stepped without any allocation.
//!
//! Read [`plan`] (from nodes to layers and places in the arena), then [`executor`] (stepping it), then [`layers`].
//! Values lie in the arena as `[stream][frame][channel]`. What comes out depends on nothing but what went in: not on how many
//! blocks or streams are stepped at once, nor on the kernels in use.

pub mod executor;
mod layers;
mod plan;

pub use executor::Executor;
