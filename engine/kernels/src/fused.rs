//! Convolutional networks of few channels at audio rate, with time across the lanes.
//!
//! With few channels, a vector across channels would leave most lanes empty. So here signals are
//! `[channel][frame]`, a vector holds 16 frames of one channel, and each weight is broadcast to all
//! lanes. A *tile* is O outputs by F vectors of sums, held in registers while all taps are added.
//! Each sum is one chain in the order of the weights; a convolution with a single output uses four
//! chains.
//!
//! [`Passes`] runs a sequence of passes over frames. `convolution` has the tiles, `layer_stack` the
//! faster form for runs of equal WaveNet-like layers, and `elementwise` the operations on single
//! values. `buffer_view` locates signals in memory and mirrors the ends of ring buffers; `window`
//! checks bounds and accesses the frames.
//!
//! All signals of a network share one slice. Lanes beyond the last frame are computed but never
//! read, so each row has room for whole vectors of [`FRAMES_PER_VECTOR`].

mod buffer_view;
mod convolution;
mod elementwise;
mod layer_stack;
mod passes;
#[allow(unsafe_code)]
mod window;

pub use buffer_view::{BufferView, ChannelRows, StreamSignals};
pub use convolution::{Convolution, TapWeights, Taps};
pub use elementwise::{Binary, Unary};
pub use passes::Passes;

use crate::simd::LANES;

/// Frames per vector: each row has room for the next multiple of it.
pub const FRAMES_PER_VECTOR: usize = LANES;
