//! Convolutions as matrix products: past and new frames are contiguous, so taps are read in place.

use ondes_kernels::Kernels;

use super::history::{self, History};
use super::product::{ColumnLayout, Extents, Matrix, WeightRows};
use crate::native::layer::{Io, Layer, LayerContext};

/// Parameters of [`crate::model::Op::Conv1d`].
pub(super) struct ConvShape {
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub groups: usize,
}

pub(super) struct Conv1d {
    /// `[group]`
    matrices: Vec<Matrix>,
    outputs: usize,
    stride: usize,
    dilation: usize,
    histories: Vec<History>,
}

impl Conv1d {
    pub fn new(context: &LayerContext<'_>, shape: &ConvShape) -> Self {
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
        // With a stride, the newest frame that the first output reads is frame `stride − 1`.
        let reach = (shape.kernel - 1) * shape.dilation + 1 - shape.stride;
        let history = || History::new(context.channels(), reach, context.frames, rows.uses_int8());
        Self {
            matrices: matrices.collect(),
            outputs: shape.outputs,
            stride: shape.stride,
            dilation: shape.dilation,
            histories: (0..context.streams).map(|_| history()).collect(),
        }
    }
}

impl Layer for Conv1d {
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

pub(super) struct ConvTranspose1d {
    /// One row per output value of an input frame, `[frame of output][channel]`.
    matrix: Matrix,
    histories: Vec<History>,
}

impl ConvTranspose1d {
    pub fn new(context: &LayerContext<'_>, outputs: usize, kernel: usize, stride: usize) -> Self {
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

impl Layer for ConvTranspose1d {
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
