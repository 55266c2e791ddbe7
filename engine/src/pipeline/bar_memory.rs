//! Memory of a prior's outputs of some bars before, for its input ports that recall them.

use super::bar_positions::BarPositions;
use crate::executor::Execute;
use crate::model::bars::{BAR_BEATS, BARS, Recall, SLOWEST_REMEMBERED};
use crate::model::{Method, ModelError, limits};

/// Memory of the outputs that a prior recalls ([`BARS_BEFORE`](crate::model::bars::BARS_BEFORE)).
pub struct BarMemory {
    outputs: Vec<RecalledOutput>,
    /// Index of the input that tells the position in the bars.
    bars: usize,
}

/// Memory of an output for the input ports that recall it.
struct RecalledOutput {
    /// Index of the output.
    output: usize,
    /// Input ports, each with its number of bars.
    recalls: Vec<Recall>,
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

impl BarMemory {
    /// Creates the memory that a method needs at a sample rate in Hz.
    ///
    /// # Errors
    /// Returns [`ModelError::Limit`] if it holds too many values.
    pub fn new(method: &Method, sample_rate: u32, streams: usize) -> Result<Self, ModelError> {
        let mut values = 0_usize;
        let mut outputs = Vec::new();
        for (output, port) in method.outputs.iter().enumerate() {
            let recalls: Vec<Recall> = method
                .recalls()
                .filter(|recall| recall.output == output)
                .collect();
            let Some(bars) = recalls.iter().map(|recall| recall.bars).max() else {
                continue;
            };
            let capacity = capacity(bars, f64::from(sample_rate) / method.block as f64);
            let held = capacity.saturating_mul(port.channels);
            values = values.saturating_add(held.saturating_mul(streams));
            let name = || format!("what method {:?} remembers", method.name);
            ModelError::limit(name(), values, limits::EXECUTOR_VALUES)?;
            let stream = || Stream {
                positions: BarPositions::new(capacity),
                blocks: vec![0.0; held],
                count: 0,
            };
            outputs.push(RecalledOutput {
                output,
                recalls,
                channels: port.channels,
                capacity,
                streams: (0..streams).map(|_| stream()).collect(),
            });
        }
        Ok(Self {
            outputs,
            bars: method.input(BARS).unwrap_or_default(),
        })
    }

    /// Fills the inputs that recall for a block of these streams, whose other inputs are filled.
    pub fn begin_block(&mut self, executor: &mut dyn Execute, streams: &[usize]) {
        for memory in &mut self.outputs {
            for (bars, stream) in executor.input(self.bars).iter().zip(streams) {
                memory.streams[*stream].positions.push(*bars);
            }
            for recall in &memory.recalls {
                let rows = executor.input(recall.input);
                let rows = rows.chunks_exact_mut(Recall::channels(memory.channels));
                rows.zip(streams)
                    .for_each(|(row, stream)| memory.write(*recall, *stream, row));
            }
        }
    }

    /// Remembers the outputs of a block of these streams.
    pub fn end_block(&mut self, executor: &dyn Execute, streams: &[usize]) {
        for memory in &mut self.outputs {
            let rows = executor.output(memory.output);
            let rows = rows.chunks_exact(memory.channels);
            rows.zip(streams)
                .for_each(|(row, stream)| memory.remember(*stream, row));
        }
    }

    /// Forgets everything of a stream.
    pub fn clear(&mut self, stream: usize) {
        for memory in &mut self.outputs {
            let stream = &mut memory.streams[stream];
            stream.positions.clear();
            stream.count = 0;
        }
    }

    /// Returns the bytes of the blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let streams = self.outputs.iter().flat_map(|memory| &memory.streams);
        streams.map(|stream| size_of_val(&stream.blocks[..])).sum()
    }
}

impl RecalledOutput {
    /// Writes what an input port receives in the newest block of a stream.
    fn write(&self, recall: Recall, stream: usize, input: &mut [f32]) {
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

    fn remember(&mut self, stream: usize, output: &[f32]) {
        let Stream { blocks, count, .. } = &mut self.streams[stream];
        let slot = *count % self.capacity;
        blocks[slot * self.channels..][..self.channels].copy_from_slice(output);
        *count += 1;
    }
}

/// Returns the blocks that are remembered for some bars.
fn capacity(bars: usize, blocks_per_second: f64) -> usize {
    let seconds = bars as f64 * BAR_BEATS * 60.0 / SLOWEST_REMEMBERED;
    // The last one of them is only just being made, and the first one has ended.
    (seconds * blocks_per_second).ceil() as usize + 2
}
