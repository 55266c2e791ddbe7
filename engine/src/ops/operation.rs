//! What the engine and its users ask of an op.

use std::ops::RangeInclusive;

use ondes_kernels::Unary;

use crate::model::export::node_line::NodeLine;
use crate::model::{ModelError, Shape};
use crate::native::layer::{Layer, LayerContext};

/// All that the engine knows of an op. The answers that are given here are those of ops without
/// weights that compute each frame from the same frame of their inputs.
pub(crate) trait Operation {
    /// Returns the numbers of inputs that are accepted.
    fn arity(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// Returns the shape of the output, or the reason why the inputs do not fit. The inputs are as
    /// many as [`arity`](Self::arity) says, and of one ratio; `block` is in samples.
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        Ok(inputs[0])
    }

    /// Returns an error for parameters beyond the limits of a model file.
    fn check_limits(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// Returns the weights, given the shapes of the inputs.
    fn weights(&self, _inputs: &[Shape]) -> Vec<WeightSpec> {
        Vec::new()
    }

    /// Returns the latency in samples.
    fn latency_samples(&self, _inputs: &[Shape]) -> usize {
        0
    }

    /// Returns the tail in samples: how long an input frame is audible after its own frame.
    /// Recurrent layers, which never quite forget, count as half a second.
    fn tail_samples(&self, _inputs: &[Shape], _sample_rate: u32) -> usize {
        0
    }

    /// Returns the multiply-adds per frame of output, counting those proportional to weights,
    /// harmonics or taps.
    fn multiply_adds(&self, _inputs: &[Shape], output: Shape) -> usize {
        output.channels
    }

    /// Returns the frames of its first input that the native layer holds, besides the block.
    fn held_frames(&self) -> usize {
        1
    }

    /// Returns what a stream keeps from one step to the next.
    fn memory(&self) -> Memory {
        Memory::Nothing
    }

    /// Returns how many frames of the inputs before a frame the same frame of the output depends
    /// on; `None` if on all of them, or on the frame's place in the sequence.
    fn earlier_frames(&self) -> Option<usize> {
        (self.memory() == Memory::Nothing).then_some(0)
    }

    /// Returns whether silence brings the op into a state from which a stream can begin.
    fn can_warm_up(&self) -> bool {
        !matches!(self.memory(), Memory::Sound | Memory::Attended(_))
    }

    /// Returns how the channels of inputs and output belong together.
    fn channel_links(&self) -> ChannelLinks;

    /// Adapts the parameters to the channels that are kept.
    fn narrow(&mut self, _cut: &ChannelCut<'_>) {}

    /// Builds the layer of the native executor.
    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer>;

    /// Returns the pass over rows of frames that computes the op in a fused network, if there is
    /// one.
    fn row_pass(&self) -> Option<RowPass> {
        None
    }

    /// Returns the expression in TorchScript.
    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String;
}

/// Weight that an op needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSpec {
    /// Name of the parameter, such as `weight`.
    pub name: &'static str,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Meaning of each dimension.
    pub axes: &'static [WeightAxis],
}

impl WeightSpec {
    pub(super) fn new(name: &'static str, axes: &'static [WeightAxis], shape: &[usize]) -> Self {
        Self {
            name,
            shape: shape.to_vec(),
            axes,
        }
    }

    /// Returns `bias [outputs]`.
    pub(super) fn bias(outputs: usize) -> Self {
        Self::new("bias", &[WeightAxis::Outputs], &[outputs])
    }
}

/// Meaning of a dimension of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightAxis {
    /// One value per channel of the first input.
    Inputs,
    /// One value per channel of the output.
    Outputs,
    /// Gates of a recurrent layer: all output channels of a gate, then those of the next.
    GatedOutputs,
    /// Independent of channels that may be pruned: taps, a shared slope, the inputs of a group.
    Fixed,
}

/// What a stream keeps from one step to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    Nothing,
    /// Frames of the first input, at least one.
    Frames(usize),
    /// States of a recurrent layer.
    States {
        /// Number of tensors: `h0` and, of two, `c0`.
        count: usize,
        /// Values of each.
        hidden: usize,
    },
    /// Frames of keys and of values.
    Attended(usize),
    /// Phases or tails of generated sound, or sound that is analysed.
    Sound,
}

impl Memory {
    pub(super) fn frames(frames: usize) -> Self {
        if frames > 0 {
            Self::Frames(frames)
        } else {
            Self::Nothing
        }
    }
}

/// How the channels of an op's inputs and output belong together: which must be removed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelLinks {
    /// Weights lie between them: each can be removed alone.
    Independent,
    /// Groups of a convolution, each of which is removed as a whole with all that it reads.
    Groups(usize),
    /// Channel `c` of the output depends on channel `c` of each input.
    Same,
    /// On channel `c` of the first half of the input, and of the second.
    Halves,
    /// On channel `c` of the first input, and of both halves of the second.
    Modulated,
    /// On channel `c` of the first input, and of the second or its only one, which is kept.
    Product,
    /// The channels of the inputs follow each other.
    Concatenated,
    /// The output is a range of the input's channels.
    Range {
        /// First channel.
        start: usize,
    },
    /// All are kept: a channel's place or number has a meaning.
    Fixed,
}

/// Channels of a node that are kept.
#[derive(Clone, Copy, Debug)]
pub struct ChannelCut<'a> {
    /// Channels of the first input that are kept, ascending.
    pub inputs: &'a [usize],
    /// Channels of the output that are kept, ascending.
    pub outputs: &'a [usize],
    /// Channels of the first input before.
    pub inputs_before: usize,
    /// Channels of the output before.
    pub outputs_before: usize,
}

/// Pass over rows of frames.
pub(crate) enum RowPass {
    /// Convolution, which becomes a part of the sum that reads it.
    Convolution {
        kernel: usize,
        dilation: usize,
        groups: usize,
    },
    Sum,
    /// Product of values with equal numbers of channels.
    Product,
    Unary(Unary),
    /// Nothing is computed: the output is a range of the input's channels.
    Range {
        start: usize,
    },
}

/// Returns the reason as an error unless the condition holds.
pub(super) fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(reason()) }
}

pub(super) fn require_positive(parameters: &[usize]) -> Result<(), String> {
    require(!parameters.contains(&0), || {
        "has a parameter of 0; all must be at least 1".to_owned()
    })
}
