//! The input of a session, of which each instance takes the channels that it processes.

use std::sync::Arc;

use super::history::{InputHistory, InputHistoryWriter};
use crate::pipeline::InputChannels;

/// The last seconds of a session's input, left and right; a mono input is on both sides.
#[derive(Clone)]
pub(super) struct SessionHistory([Arc<InputHistory>; 2]);

impl SessionHistory {
    /// Creates histories for at least the last `samples` samples.
    pub fn new(samples: usize) -> Self {
        Self([(); 2].map(|()| Arc::new(InputHistory::new(samples))))
    }

    /// Returns the writers to the first caller, `None` to others.
    pub fn writers(&self) -> Option<[InputHistoryWriter; 2]> {
        let [left, right] = &self.0;
        Some([left.writer()?, right.writer()?])
    }

    /// Reads the samples from position `from` on into `sides`, which are equally long: the channels
    /// that an instance processes. The right side is overwritten in any case. Samples that are no
    /// longer kept count as silence.
    pub fn read(
        &self,
        channels: InputChannels,
        from: u64,
        sides: &mut [Vec<f32>; 2],
        count: usize,
    ) {
        let [left, right] = sides;
        let (left, right) = (&mut left[..count], &mut right[..count]);
        self.0[0].read(from, left);
        if channels == InputChannels::Left {
            return;
        }
        self.0[1].read(from, right);
        if channels == InputChannels::Mono {
            mix(left, right);
        }
    }
}

/// A block of input, from the host.
pub(super) struct BlockInput<'a> {
    pub left: &'a [f32],
    pub right: &'a [f32],
    /// Mean of both sides.
    pub mono: &'a [f32],
}

impl BlockInput<'_> {
    /// Returns the channels that an instance processes.
    pub fn channels(&self, channels: InputChannels) -> [&[f32]; 2] {
        match channels {
            InputChannels::Mono => [self.mono, &[]],
            InputChannels::Left => [self.left, &[]],
            InputChannels::Stereo => [self.left, self.right],
        }
    }
}

/// Replaces the left side by the mean of both.
pub(super) fn mix(left: &mut [f32], right: &[f32]) {
    for (left, right) in left.iter_mut().zip(right) {
        *left = 0.5 * *left + 0.5 * right;
    }
}

/// Returns the first `count` samples of both sides.
pub(super) fn first_samples(sides: &mut [Vec<f32>; 2], count: usize) -> [&mut [f32]; 2] {
    let [left, right] = sides;
    [&mut left[..count], &mut right[..count]]
}
