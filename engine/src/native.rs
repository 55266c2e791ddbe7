//! Native executor: compiles a method to a plan of layers over one arena and steps it without
//! allocating.
//!
//! Read `plan` (from nodes to layers and their slots in the arena), then [`executor`] (running the
//! plan) and `layer`, of which each family of [ops](crate::ops) has its own; `product` and `history`
//! have the matrix products and frame histories that several share. `fused` runs convolutional
//! networks at audio rate as a whole.
//! Values in the arena are `[stream][frame][channel]`. The output depends on the input alone, not
//! on the number of blocks or streams per step nor on the kernels.

pub mod executor;
mod fused;
pub(crate) mod history;
pub(crate) mod layer;
mod plan;
pub(crate) mod product;

pub use executor::Executor;
