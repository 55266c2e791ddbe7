//! The native executor: a method becomes a plan of layers over one arena, stepped without any allocation.
//!
//! Read [`plan`] (from nodes to layers and places in the arena), then [`executor`] (stepping it), then [`layers`]; [`timewise`]
//! runs networks at the rate of sound as a whole. Values lie in the arena as `[stream][frame][channel]`. What comes out depends
//! on nothing but what went in: not on how many blocks or streams are stepped at once, nor on the kernels in use.

pub mod executor;
mod layers;
mod plan;
mod timewise;

pub use executor::Executor;
