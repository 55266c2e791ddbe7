//! The interface of layers: one node, or one fused network, as the plan runs it.

use ondes_kernels::Kernels;

use crate::model::{Shape, Tensor, Weights};

/// Location of a value in the arena. Offsets are laid out for the largest step, so they never
/// change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorSlot {
    pub offset: usize,
    pub channels: usize,
    /// Frames per block of the method.
    pub frames: usize,
}

impl TensorSlot {
    /// Returns the number of values of one block of one stream.
    pub fn block_values(self) -> usize {
        self.channels * self.frames
    }
}

/// Executable graph node with per-stream state; allocates only on construction.
pub(crate) trait Layer: Send {
    /// Returns whether the layer updates its first input, of which it then finds a copy in its
    /// output.
    fn updates_first_input(&self) -> bool {
        false
    }
    /// Computes one step for the streams named in `io`.
    fn run(&mut self, kernels: Kernels, io: Io<'_>);
    /// Returns a stream to its initial state.
    fn reset(&mut self, _stream: usize) {}
    /// Makes the current state of stream 0 the initial state of all streams, and resets them to it.
    fn capture_initial_state(&mut self) {}
    /// Sets the phase of a stream's oscillator in cycles, if the layer has one.
    fn set_phase(&mut self, _stream: usize, _cycles: f64) {}
    /// Sets the seed of a stream's noise, if the layer has any.
    fn seed(&mut self, _stream: usize, _seed: u64) {}
    /// Returns whether some products are computed in eight bits.
    fn uses_int8(&self) -> bool {
        false
    }
    /// Returns the memory of weights and states in bytes.
    fn bytes(&self) -> usize {
        0
    }
}

/// Inputs and output of a layer in one step.
pub(crate) struct Io<'a> {
    pub arena: &'a [f32],
    pub inputs: &'a [TensorSlot],
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
    /// Returns the values of an input, `[stream][frame][channel]`.
    pub fn input(&self, index: usize) -> &'a [f32] {
        let slot = self.inputs[index];
        &self.arena[slot.offset..][..slot.block_values() * self.blocks * self.streams.len()]
    }

    /// Returns the channels of an input.
    pub fn channels(&self, index: usize) -> usize {
        self.inputs[index].channels
    }
}

/// Arguments of a layer's constructor.
pub(crate) struct LayerContext<'a> {
    pub kernels: Kernels,
    pub weights: &'a Weights,
    /// Name of the node.
    pub node: &'a str,
    /// Shapes of the inputs.
    pub inputs: &'a [Shape],
    /// Samples per block.
    pub block: usize,
    /// Sample rate in Hz.
    pub sample_rate: u32,
    /// Number of streams that need a state.
    pub streams: usize,
    /// Maximum number of frames of the first input in a step.
    pub frames: usize,
}

impl<'a> LayerContext<'a> {
    /// Returns a weight of the node.
    pub fn weight(&self, parameter: &str) -> &'a Tensor {
        self.weights.get(self.node, parameter)
    }

    /// Returns the channels of the first input.
    pub fn channels(&self) -> usize {
        self.inputs[0].channels
    }
}
