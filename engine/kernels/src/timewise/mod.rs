//! Convolutions over `[channel][frame]`, with time across the lanes.
//!
//! A network of few channels at the rate of sound would leave most lanes of a vector that holds channels empty, so here a
//! vector holds 16 frames of one channel and each weight is spread over all lanes. A *tile* is O outputs by F vectors of
//! sums, held in registers while all taps are walked through once; each sum is one chain in the order of the weights, but where there
//! is one output alone, four.
//!
//! `convolve` has the sums, `each` what happens at each frame alone, `layer` both where channels are few, and `step` runs them.
//! `places` says where a signal lies and makes its ring whole, and `window` looks at it.
//!
//! All signals of a network lie in one slice. What lies in the lanes beyond the last frame is computed along and never
//! looked at, so a row has room for whole vectors ([`FRAMES_OF_A_VECTOR`]).

mod convolve;
mod each;
mod layer;
mod places;
mod step;
#[allow(unsafe_code)]
mod window;

pub use convolve::{Convolution, TapWeights, Taps};
pub use each::{Binary, Unary};
pub use places::{Place, Rows};
pub use step::{Step, Steps};

use crate::simd::LANES;

/// Frames are computed in whole vectors of so many: a row has to have room for the next multiple of it.
pub const FRAMES_OF_A_VECTOR: usize = LANES;
