//! Native executor: compiles a method to a plan of layers over one arena and steps it without
//! allocating.
//!
//! Read `plan` (from nodes to layers and their slots in the arena), then [`executor`] (running the
//! plan), then `layer` and `layers`; `fused` runs convolutional networks at audio rate as a whole.
//! Values in the arena are `[stream][frame][channel]`. The output depends on the input alone, not
//! on the number of blocks or streams per step nor on the kernels.

pub mod executor;
mod fused;
mod layer;
mod layers;
mod plan;

pub use executor::Executor;
