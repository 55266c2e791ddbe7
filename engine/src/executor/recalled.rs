//! What an output was some bars ago.

use super::bar_positions::BarPositions;
use crate::model::graph::{BARS, Recall};
use crate::model::{Method, limits};

/// Slowest tempo at which all bars are remembered, beats a minute, and beats of a bar.
const SLOWEST: f64 = 40.0;
const BAR_BEATS: f64 = 4.0;

/// Memory of an output for an input port that recalls it.
pub(super) struct Recalled {
    pub recall: Recall,
    /// Index of the input that tells the position in the bars.
    bars: usize,
    /// Channels of the output.
    channels: usize,
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
            Self { recall, bars, channels, streams: (0..streams).map(|_| stream()).collect() }
        };
        method.recalls().map(recalled).collect()
    }

    /// Returns the index of the input that tells the position in the bars.
    pub fn bars(&self) -> usize {
        self.bars
    }

    /// Begins a block of a stream at a position in the bars, and writes what the input port receives.
    pub fn begin_block(&mut self, stream: usize, bars: f32, input: &mut [f32]) {
        let Self { recall, channels, streams, .. } = self;
        let Stream { positions, blocks, count } = &mut streams[stream];
        positions.push(bars);
        input.fill(0.0);
        let Some(moment) = positions.before(recall.bars as f64) else { return };
        let capacity = blocks.len() / *channels;
        let (recalled, told) = input.split_at_mut(2 * *channels);
        for (after, recalled) in (1..).zip(recalled.chunks_exact_mut(*channels)) {
            let slot = (*count - moment.blocks_ago + after) % capacity;
            recalled.copy_from_slice(&blocks[slot * *channels..][..*channels]);
        }
        told.copy_from_slice(&[moment.share, 1.0]);
    }

    /// Ends a block of a stream with its output.
    pub fn end_block(&mut self, stream: usize, output: &[f32]) {
        let Stream { blocks, count, .. } = &mut self.streams[stream];
        let slot = *count % (blocks.len() / self.channels);
        blocks[slot * self.channels..][..self.channels].copy_from_slice(output);
        *count += 1;
    }

    /// Forgets everything of a stream.
    pub fn clear(&mut self, stream: usize) {
        let Stream { positions, count, .. } = &mut self.streams[stream];
        positions.clear();
        *count = 0;
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.streams.iter().map(|stream| stream.blocks.len()).sum()
    }
}

/// Returns the blocks that are remembered for a recall.
fn capacity(method: &Method, sample_rate: u32, recall: Recall) -> usize {
    let seconds = recall.bars as f64 * BAR_BEATS * 60.0 / SLOWEST;
    let blocks = (seconds * f64::from(sample_rate) / method.block as f64).ceil() as usize + 2;
    let channels = method.outputs[recall.output].channels.max(1);
    blocks.min(limits::STREAM_VALUES / channels)
}
