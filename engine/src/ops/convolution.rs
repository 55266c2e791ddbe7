//! Causal convolutions.

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::WeightAxis::{Fixed, Inputs, Outputs};
use super::operation::{
    ChannelCut, ChannelLinks, Memory, Operation, RowPass, WeightAxis, WeightSpec, require,
    require_positive,
};
use crate::model::Shape;
use crate::model::export::node_line::NodeLine;
use crate::native::history::{self, History};
use crate::native::layer::{Io, Layer, LayerContext};
use crate::native::product::{ColumnLayout, Extents, Matrix, WeightRows};

/// Causal convolution: `y[t] = b + Σ_k W_k x[(t + 1) · stride − 1 − (kernel − 1 − k) · dilation]`,
/// `weight [outputs][inputs / groups][kernel]`, `bias [outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conv1d {
    /// Channels of the output.
    pub outputs: usize,
    /// Taps.
    pub kernel: usize,
    /// Frames of input per frame of output.
    #[serde(default = "one")]
    pub stride: usize,
    /// Frames between taps.
    #[serde(default = "one")]
    pub dilation: usize,
    /// Independent groups of channels.
    #[serde(default = "one")]
    pub groups: usize,
}

fn one() -> usize {
    1
}

impl Conv1d {
    /// Returns a convolution without stride, dilation and groups.
    #[must_use]
    pub const fn new(outputs: usize, kernel: usize) -> Self {
        Self {
            outputs,
            kernel,
            stride: 1,
            dilation: 1,
            groups: 1,
        }
    }

    /// Returns it with `stride` frames of input per frame of output.
    #[must_use]
    pub const fn strided(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Returns it with `dilation` frames between taps.
    #[must_use]
    pub const fn dilated(self, dilation: usize) -> Self {
        Self { dilation, ..self }
    }

    /// Returns it with independent groups of channels.
    #[must_use]
    pub const fn grouped(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// Returns the frames of earlier steps that it reads.
    fn past(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1 - self.stride
    }
}

impl Operation for Conv1d {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self {
            outputs,
            kernel,
            stride,
            dilation,
            groups,
        } = *self;
        let Shape { channels, ratio } = inputs[0];
        require_positive(&[outputs, kernel, stride, dilation, groups])?;
        require(
            channels.is_multiple_of(groups) && outputs.is_multiple_of(groups),
            || {
                format!(
                    "has {groups} groups, which must divide {channels} inputs and {outputs} outputs"
                )
            },
        )?;
        let frames = (kernel - 1)
            .checked_mul(dilation)
            .and_then(|reach| reach.checked_add(1));
        let frames = frames.ok_or("has too large a kernel and dilation")?;
        require(frames >= stride, || {
            format!("has a stride of {stride}, which is longer than its {frames} frames of input")
        })?;
        Ok(Shape {
            channels: outputs,
            ratio: ratio.checked_mul(stride).ok_or("has too large a ratio")?,
        })
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let axes: &[WeightAxis] = if self.groups == 1 {
            &[Outputs, Inputs, Fixed]
        } else {
            &[Outputs, Fixed, Fixed]
        };
        let channels = Shape::channels_of_first(inputs) / self.groups;
        vec![
            WeightSpec::new("weight", axes, &[self.outputs, channels, self.kernel]),
            WeightSpec::bias(self.outputs),
        ]
    }

    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        (self.kernel - 1) * self.dilation * inputs[0].ratio
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        self.outputs * (inputs[0].channels / self.groups) * self.kernel
    }

    fn held_frames(&self) -> usize {
        (self.kernel - 1)
            .saturating_mul(self.dilation)
            .saturating_mul(2)
    }

    fn memory(&self) -> Memory {
        Memory::frames(self.past())
    }

    fn earlier_frames(&self) -> Option<usize> {
        (self.stride == 1).then(|| self.past())
    }

    fn channel_links(&self) -> ChannelLinks {
        match self.groups {
            1 => ChannelLinks::Independent,
            groups => ChannelLinks::Groups(groups),
        }
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        let length = cut.inputs_before / self.groups;
        let mut groups: Vec<usize> = cut.inputs.iter().map(|channel| channel / length).collect();
        groups.dedup();
        (self.outputs, self.groups) = (cut.outputs.len(), groups.len());
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Conv1dLayer::new(context, self))
    }

    fn row_pass(&self) -> Option<RowPass> {
        (self.stride == 1).then_some(RowPass::Convolution {
            kernel: self.kernel,
            dilation: self.dilation,
            groups: self.groups,
        })
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let whole = line.with_past(self.past());
        let [weight, bias] = line.parameters(["weight", "bias"]);
        let Self {
            stride,
            dilation,
            groups,
            ..
        } = self;
        format!("torch.conv1d({whole}, {weight}, {bias}, [{stride}], [0], [{dilation}], {groups})")
    }
}

/// Causal transposed convolution: frame `t` adds `W_k x[t]` to `y[t · stride + k]`,
/// `weight [inputs][outputs][kernel]`, `bias [outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvTranspose1d {
    /// Channels of the output.
    pub outputs: usize,
    /// Taps, a multiple of the stride.
    pub kernel: usize,
    /// Frames of output per frame of input.
    pub stride: usize,
}

impl ConvTranspose1d {
    /// Returns the frames of earlier steps that it reads.
    fn past(&self) -> usize {
        self.kernel / self.stride - 1
    }
}

impl Operation for ConvTranspose1d {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self {
            outputs,
            kernel,
            stride,
        } = *self;
        require_positive(&[outputs, kernel, stride])?;
        let ratio = inputs[0].ratio;
        require(
            kernel.is_multiple_of(stride) && ratio.is_multiple_of(stride),
            || {
                format!(
                    "has a stride of {stride}, which must divide its kernel of {kernel} and a ratio of {ratio}"
                )
            },
        )?;
        Ok(Shape {
            channels: outputs,
            ratio: ratio / stride,
        })
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let shape = [Shape::channels_of_first(inputs), self.outputs, self.kernel];
        vec![
            WeightSpec::new("weight", &[Inputs, Outputs, Fixed], &shape),
            WeightSpec::bias(self.outputs),
        ]
    }

    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        self.past() * inputs[0].ratio
    }

    /// Each input frame is multiplied by every weight once; its cost is spread over its output
    /// frames.
    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        inputs[0].channels * self.outputs * self.kernel / self.stride
    }

    fn held_frames(&self) -> usize {
        2 * (self.kernel / self.stride)
    }

    fn memory(&self) -> Memory {
        Memory::frames(self.past())
    }

    fn earlier_frames(&self) -> Option<usize> {
        None
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Independent
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        self.outputs = cut.outputs.len();
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(ConvTranspose1dLayer::new(context, self))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let (past, stride) = (self.past(), self.stride);
        let whole = line.with_past(past);
        let [weight, bias] = line.parameters(["weight", "bias"]);
        let whole = line.variable("in", &whole);
        let all = line.variable(
            "out",
            &format!(
                "torch.conv_transpose1d({whole}, {weight}, {bias}, [{stride}], [0], [0], 1, [1])"
            ),
        );
        format!(
            "torch.slice({all}, 2, {}, {stride} * torch.size({whole}, 2))",
            past * stride
        )
    }
}

/// Convolution as matrix products: past and new frames are contiguous, so taps are read in place.
struct Conv1dLayer {
    /// `[group]`
    matrices: Vec<Matrix>,
    outputs: usize,
    stride: usize,
    dilation: usize,
    histories: Vec<History>,
}

impl Conv1dLayer {
    fn new(context: &LayerContext<'_>, shape: &Conv1d) -> Self {
        let bias = context.weight("bias").floats();
        let (inputs, outputs) = (
            context.channels() / shape.groups,
            shape.outputs / shape.groups,
        );
        let extents = Extents {
            outputs,
            taps: shape.kernel,
            inputs,
        };
        let rows = WeightRows::new(context.weight("weight"), 0, shape.groups, extents);
        let matrices = (0..shape.groups).map(|group| {
            let first = group * outputs;
            let at =
                |o: usize, tap: usize, i: usize| ((first + o) * inputs + i) * shape.kernel + tap;
            rows.pack(extents, first, at, &bias[first..][..outputs])
        });
        let history = || {
            History::new(
                context.channels(),
                shape.past(),
                context.frames,
                rows.uses_int8(),
            )
        };
        Self {
            matrices: matrices.collect(),
            outputs: shape.outputs,
            stride: shape.stride,
            dilation: shape.dilation,
            histories: (0..context.streams).map(|_| history()).collect(),
        }
    }
}

impl Layer for Conv1dLayer {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let count = io.frames / self.stride;
        let rows = io
            .input(0)
            .chunks_exact(io.frames * channels)
            .zip(io.output.chunks_exact_mut(count * self.outputs));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let frames = self.histories[stream].push(kernels, input);
            for (group, matrix) in self.matrices.iter().enumerate() {
                let first = group * matrix.inputs();
                let columns = ColumnLayout {
                    channels,
                    first,
                    count,
                    stride: self.stride,
                    dilation: self.dilation,
                };
                matrix.multiply(
                    kernels,
                    frames,
                    columns,
                    &mut output[group * matrix.outputs()..],
                    self.outputs,
                );
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn capture_initial_state(&mut self) {
        history::capture_initial_state(&mut self.histories);
    }

    fn uses_int8(&self) -> bool {
        matches!(self.matrices[0], Matrix::Int8(_))
    }

    fn bytes(&self) -> usize {
        bytes(&self.matrices, &self.histories)
    }
}

fn bytes(matrices: &[Matrix], histories: &[History]) -> usize {
    matrices
        .iter()
        .map(Matrix::bytes)
        .chain(histories.iter().map(History::bytes))
        .sum()
}

struct ConvTranspose1dLayer {
    /// One row per output value of an input frame, `[frame of output][channel]`.
    matrix: Matrix,
    histories: Vec<History>,
}

impl ConvTranspose1dLayer {
    fn new(context: &LayerContext<'_>, shape: &ConvTranspose1d) -> Self {
        let ConvTranspose1d {
            outputs,
            kernel,
            stride,
        } = *shape;
        let taps = kernel / stride;
        let extents = Extents {
            outputs: stride * outputs,
            taps,
            inputs: context.channels(),
        };
        let rows = WeightRows::new(context.weight("weight"), 1, 1, extents);
        // Output t · stride + phase reads input t − j with tap j · stride + phase; the oldest input
        // comes first.
        let at = |row: usize, tap: usize, i: usize| {
            let (phase, o) = (row / outputs, row % outputs);
            (i * outputs + o) * kernel + (taps - 1 - tap) * stride + phase
        };
        let matrix = rows.pack(
            extents,
            0,
            at,
            &context.weight("bias").floats().repeat(stride),
        );
        let history = || {
            History::new(
                context.channels(),
                taps - 1,
                context.frames,
                rows.uses_int8(),
            )
        };
        Self {
            matrix,
            histories: (0..context.streams).map(|_| history()).collect(),
        }
    }
}

impl Layer for ConvTranspose1dLayer {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let width = self.matrix.outputs();
        let rows = io
            .input(0)
            .chunks_exact(io.frames * channels)
            .zip(io.output.chunks_exact_mut(io.frames * width));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let frames = self.histories[stream].push(kernels, input);
            let columns = ColumnLayout {
                channels,
                first: 0,
                count: io.frames,
                stride: 1,
                dilation: 1,
            };
            self.matrix
                .multiply(kernels, frames, columns, output, width);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn capture_initial_state(&mut self) {
        history::capture_initial_state(&mut self.histories);
    }

    fn uses_int8(&self) -> bool {
        matches!(self.matrix, Matrix::Int8(_))
    }

    fn bytes(&self) -> usize {
        bytes(std::slice::from_ref(&self.matrix), &self.histories)
    }
}
