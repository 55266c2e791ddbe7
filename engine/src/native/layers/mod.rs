//! The layers of the native executor: one file for each family of ops; [`product`] and [`history`] are what those with matrices
//! share.

mod cells;
mod conv;
mod elementwise;
mod history;
mod join;
mod matrix;
mod noise;
mod product;
mod recurrent;
mod synthesis;
mod time;

use ondes_kernels::{Cell, Kernels};

use super::plan::Place;
use crate::model::{Op, Shape, Tensor, Weights};

/// One node at work. Its state is held per stream; all of its memory is taken when it is built.
pub(super) trait Layer: Send {
    /// Computes one step for the streams named in `io`.
    fn run(&mut self, kernels: Kernels, io: Io<'_>);
    /// Forgets what a stream has heard.
    fn reset(&mut self, _stream: usize) {}
    /// From now on every stream starts from the state that stream 0 is in.
    fn settle(&mut self) {}
    /// Takes another seed for a stream, where there is chance in it.
    fn seed(&mut self, _stream: usize, _seed: u64) {}
    /// Whether some of its products are computed on bytes.
    fn in_bytes(&self) -> bool {
        false
    }
    /// Bytes of weights and states.
    fn bytes(&self) -> usize {
        0
    }
}

/// What a layer reads and makes in one step. Ops that update their first input find a copy of it in `output`.
pub(super) struct Io<'a> {
    pub arena: &'a [f32],
    pub reads: &'a [Place],
    /// `[stream][frame][channel]`
    pub output: &'a mut [f32],
    /// The streams of this step: row `i` of every value belongs to stream `streams[i]`.
    pub streams: &'a [usize],
    /// Blocks of the method in this step.
    pub blocks: usize,
    /// Frames of the first input in this step, per stream.
    pub frames: usize,
}

impl<'a> Io<'a> {
    /// The values of an input, `[stream][frame][channel]`.
    pub fn input(&self, index: usize) -> &'a [f32] {
        let place = self.reads[index];
        &self.arena[place.offset..][..place.block_values() * self.blocks * self.streams.len()]
    }

    /// Channels of an input.
    pub fn channels(&self, index: usize) -> usize {
        self.reads[index].channels
    }
}

/// What a layer is built from.
pub(super) struct Build<'a> {
    pub kernels: Kernels,
    pub weights: &'a Weights,
    pub node: &'a str,
    pub inputs: &'a [Shape],
    /// Samples per block.
    pub block: usize,
    /// Hz.
    pub sample_rate: u32,
    /// Streams to hold a state for.
    pub streams: usize,
    /// Most frames of the first input in a step.
    pub frames: usize,
}

impl<'a> Build<'a> {
    pub fn weight(&self, parameter: &str) -> &'a Tensor {
        self.weights.get(self.node, parameter)
    }

    /// Channels of the first input.
    pub fn channels(&self) -> usize {
        self.inputs[0].channels
    }
}

/// The layer of an op.
pub(super) fn build(op: &Op, build: &Build<'_>) -> Box<dyn Layer> {
    match *op {
        Op::Linear { .. } => Box::new(matrix::Linear::new(build)),
        Op::Conv1d { outputs, kernel, stride, dilation, groups } => {
            Box::new(conv::Conv1d::new(build, &conv::ConvShape { outputs, kernel, stride, dilation, groups }))
        }
        Op::ConvTranspose1d { outputs, kernel, stride } => {
            Box::new(conv::ConvTranspose1d::new(build, outputs, kernel, stride))
        }
        // At the rate of sound a step has many frames and few streams; at that of control it is the other way round.
        Op::Gru { hidden, initial_state } if build.inputs[0].ratio == 1 => {
            Box::new(cells::Cells::new(build, Cell::Gru, hidden, initial_state))
        }
        Op::Lstm { hidden, initial_state } if build.inputs[0].ratio == 1 => {
            Box::new(cells::Cells::new(build, Cell::Lstm, hidden, initial_state))
        }
        Op::Gru { hidden, initial_state } => Box::new(recurrent::Gru::new(build, hidden, initial_state)),
        Op::Lstm { hidden, initial_state } => Box::new(recurrent::Lstm::new(build, hidden, initial_state)),
        Op::LayerNorm => Box::new(elementwise::LayerNorm::new(build)),
        Op::Activation(activation) => Box::new(elementwise::Pointwise(activation)),
        Op::Affine { scale, offset } => Box::new(elementwise::Affine { scale, offset }),
        Op::Prelu { .. } => Box::new(elementwise::Prelu::new(build)),
        Op::Snake => Box::new(elementwise::Snake::new(build)),
        Op::Gate => Box::new(elementwise::Gate),
        Op::Film => Box::new(elementwise::Film),
        Op::Add => Box::new(join::Add),
        Op::Multiply => Box::new(join::Multiply),
        Op::Concat => Box::new(join::Concat),
        Op::Split { start, channels } => Box::new(join::Split { start, channels }),
        Op::Delay { frames } => Box::new(time::Delay::new(build, frames)),
        // Frames lie one after another, and so do the parts of one.
        Op::Latency { .. } | Op::Interleave { .. } => Box::new(time::Identity),
        Op::FlipOddBands => Box::new(time::FlipOddBands),
        Op::Noise { channels, distribution, number } => {
            Box::new(noise::Noise::new(build, channels, distribution, number))
        }
        Op::ShapedNoise { bands, hop } => Box::new(noise::ShapedNoise::new(bands, hop)),
        Op::Harmonic => Box::new(synthesis::Harmonic::new(build)),
        Op::FilteredNoise => Box::new(synthesis::FilteredNoise::new(build)),
        Op::Convolve { .. } => Box::new(synthesis::Convolve::new(build)),
    }
}
