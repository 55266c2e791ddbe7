//! Memory of an output, for ports that receive its values of some bars ago.

use super::bar_positions::BarPositions;
use crate::model::Method;
use crate::model::graph::{BAR_BEATS, BARS, Recall, SLOWEST_REMEMBERED};

/// Memory of an output for the input ports that recall it.
pub(super) struct Recalled {
    /// Index of the output.
    pub output: usize,
    /// Input ports, each with its number of bars.
    pub recalls: Vec<Recall>,
    /// Index of the input that tells the position in the bars.
    pub bars: usize,
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
        let recalled = |(output, recalls): (usize, Vec<Recall>)| {
            let channels = method.outputs[output].channels;
            let capacity = capacity(method, sample_rate, &recalls);
            let stream = || Stream {
                positions: BarPositions::new(capacity),
                blocks: vec![0.0; capacity * channels],
                count: 0,
            };
            let bars = method.input(BARS).expect("a method that recalls has bars");
            Self {
                output,
                recalls,
                bars,
                channels,
                capacity,
                streams: (0..streams).map(|_| stream()).collect(),
            }
        };
        by_output(method).map(recalled).collect()
    }

    /// Begins a block of a stream at a position in the bars.
    pub fn begin_block(&mut self, stream: usize, bars: f32) {
        self.streams[stream].positions.push(bars);
    }

    /// Writes what an input port receives in this block of a stream.
    pub fn write(&self, recall: Recall, stream: usize, input: &mut [f32]) {
        let Stream {
            positions,
            blocks,
            count,
        } = &self.streams[stream];
        input.fill(0.0);
        let Some(moment) = positions.before(recall.bars as f64) else {
            return;
        };
        let (recalled, told) = input.split_at_mut(2 * self.channels);
        for (after, recalled) in (1..).zip(recalled.chunks_exact_mut(self.channels)) {
            let slot = (count - moment.blocks_ago + after) % self.capacity;
            recalled.copy_from_slice(&blocks[slot * self.channels..][..self.channels]);
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
        let Stream {
            positions, count, ..
        } = &mut self.streams[stream];
        positions.clear();
        *count = 0;
    }
}

/// Returns the outputs that are recalled, each with what recalls it.
fn by_output(method: &Method) -> impl Iterator<Item = (usize, Vec<Recall>)> {
    let recalls = |output: usize| {
        method
            .recalls()
            .filter(|recall| recall.output == output)
            .collect::<Vec<_>>()
    };
    (0..method.outputs.len())
        .map(move |output| (output, recalls(output)))
        .filter(|(_, recalls)| !recalls.is_empty())
}

/// Returns the number of values that the memories of a method hold for a stream.
pub(super) fn values(method: &Method, sample_rate: u32) -> usize {
    let values = |(output, recalls): (usize, Vec<Recall>)| {
        capacity(method, sample_rate, &recalls).saturating_mul(method.outputs[output].channels)
    };
    by_output(method).map(values).fold(0, usize::saturating_add)
}

/// Returns the blocks that are remembered for some recalls.
fn capacity(method: &Method, sample_rate: u32, recalls: &[Recall]) -> usize {
    let bars = recalls.iter().map(|recall| recall.bars).max().unwrap_or(0);
    let seconds = bars as f64 * BAR_BEATS * 60.0 / SLOWEST_REMEMBERED;
    // The last one of them is only just being made, and the first one has ended.
    (seconds * f64::from(sample_rate) / method.block as f64).ceil() as usize + 2
}
