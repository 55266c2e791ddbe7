//! Memory of an output, for ports that receive its values of some bars ago.

use super::bar_positions::BarPositions;
use crate::model::Method;
use crate::model::graph::{BAR_BEATS, BARS, Recall, SLOWEST_REMEMBERED};

/// Memory of an output for an input port that recalls it.
pub(super) struct Recalled {
    pub recall: Recall,
    /// Index of the input that tells the position in the bars.
    bars: usize,
    /// Channels of the output.
    channels: usize,
    /// Blocks that are remembered.
    capacity: usize,
    /// `[stream]`
    streams: Vec<Stream>,
}

struct Stream {
    positions: BarPositions,
    /// Ring of blocks, `[block][channel]`.
    blocks: Vec<f32>,
    /// Blocks since the start.
    count: usize,
}

impl Recalled {
    /// Returns the memories that a method needs.
    pub fn all(method: &Method, sample_rate: u32, streams: usize) -> Vec<Self> {
        let recalled = |recall: Recall| {
            let channels = method.outputs[recall.output].channels;
            let capacity = capacity(method, sample_rate, recall);
            let stream =
                || Stream { positions: BarPositions::new(capacity), blocks: vec![0.0; capacity * channels], count: 0 };
            let bars = method.input(BARS).expect("a method that recalls has bars");
            Self { recall, bars, channels, capacity, streams: (0..streams).map(|_| stream()).collect() }
        };
        method.recalls().map(recalled).collect()
    }

    /// Returns the index of the input that tells the position in the bars.
    pub fn bars(&self) -> usize {
        self.bars
    }

    /// Begins a block of a stream at a position in the bars, and writes what the input port receives.
    pub fn begin_block(&mut self, stream: usize, bars: f32, input: &mut [f32]) {
        let Self { recall, channels, capacity, streams, .. } = self;
        let Stream { positions, blocks, count } = &mut streams[stream];
        positions.push(bars);
        input.fill(0.0);
        let Some(moment) = positions.before(recall.bars as f64) else { return };
        let (recalled, told) = input.split_at_mut(2 * *channels);
        for (after, recalled) in (1..).zip(recalled.chunks_exact_mut(*channels)) {
            let slot = (*count - moment.blocks_ago + after) % *capacity;
            recalled.copy_from_slice(&blocks[slot * *channels..][..*channels]);
        }
        told.copy_from_slice(&[moment.share, 1.0]);
    }

    /// Ends a block of a stream with its output.
    pub fn end_block(&mut self, stream: usize, output: &[f32]) {
        let Stream { blocks, count, .. } = &mut self.streams[stream];
        let slot = *count % self.capacity;
        blocks[slot * self.channels..][..self.channels].copy_from_slice(output);
        *count += 1;
    }

    /// Forgets everything of a stream.
    pub fn clear(&mut self, stream: usize) {
        let Stream { positions, count, .. } = &mut self.streams[stream];
        positions.clear();
        *count = 0;
    }
}

/// Returns the number of values that the memories of a method hold for a stream.
pub(super) fn values(method: &Method, sample_rate: u32) -> usize {
    let values =
        |recall: Recall| capacity(method, sample_rate, recall).saturating_mul(method.outputs[recall.output].channels);
    method.recalls().map(values).fold(0, usize::saturating_add)
}

/// Returns the blocks that are remembered for a recall.
fn capacity(method: &Method, sample_rate: u32, recall: Recall) -> usize {
    let seconds = recall.bars as f64 * BAR_BEATS * 60.0 / SLOWEST_REMEMBERED;
    // The last one of them is only just being made, and the first one has ended.
    (seconds * f64::from(sample_rate) / method.block as f64).ceil() as usize + 2
}
