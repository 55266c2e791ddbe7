//! Operands of passes: channel ranges of signal buffers, and their indices in the list that kernels
//! take.

use std::collections::HashMap;

use ondes_kernels::{BufferView, ChannelRows};

use super::signal_buffer::SignalBuffer;

/// Channels of a signal buffer from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelRange {
    pub buffer: usize,
    pub first: usize,
    pub channels: usize,
}

impl ChannelRange {
    /// Returns the view for kernels.
    pub fn view(self, buffers: &[SignalBuffer]) -> BufferView {
        let buffer = &buffers[self.buffer];
        let rows = ChannelRows {
            start: buffer.row(self.first),
            stride: buffer.stride,
            channels: self.channels,
        };
        let view = BufferView::new(rows, self.buffer);
        if buffer.ring_frames > 0 {
            view.in_ring(buffer.ring_frames, buffer.chunk)
        } else {
            view
        }
    }
}

/// Input of a convolution: a channel range at some delays.
#[derive(Clone, Debug)]
pub struct TapSource {
    pub range: ChannelRange,
    /// Delays in frames.
    pub delays: Vec<usize>,
}

/// All channel ranges that passes name, each once.
#[derive(Default)]
pub struct ViewTable {
    ranges: Vec<ChannelRange>,
    indices: HashMap<ChannelRange, usize>,
}

impl ViewTable {
    /// Returns the index of a range, which is added if it is new.
    pub fn index(&mut self, range: ChannelRange) -> usize {
        *self.indices.entry(range).or_insert_with(|| {
            self.ranges.push(range);
            self.ranges.len() - 1
        })
    }

    /// Returns the views of all ranges in the order of their indices.
    pub fn views(&self, buffers: &[SignalBuffer]) -> Vec<BufferView> {
        self.ranges
            .iter()
            .map(|range| range.view(buffers))
            .collect()
    }
}
