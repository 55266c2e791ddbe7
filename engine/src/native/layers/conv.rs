//! Convolutions: taps are read where the frames lie, one after another, so a convolution is a matrix product.

use ondes_kernels::Kernels;

use super::history::{self, History};
use super::product::{Extents, Matrix, Rows, Window};
use super::{Build, Io, Layer};

/// Parameters of [`crate::model::Op::Conv1d`].
pub(super) struct ConvShape {
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub groups: usize,
}

pub(super) struct Conv1d {
    /// One per group.
    matrices: Vec<Matrix>,
    outputs: usize,
    stride: usize,
    dilation: usize,
    histories: Vec<History>,
}

impl Conv1d {
    pub fn new(build: &Build<'_>, shape: &ConvShape) -> Self {
        let bias = build.weight("bias").floats();
        let (inputs, outputs) = (build.channels() / shape.groups, shape.outputs / shape.groups);
        let extents = Extents { outputs, taps: shape.kernel, inputs };
        let rows = Rows::new(build.weight("weight"), 0, shape.groups, extents);
        let matrices = (0..shape.groups).map(|group| {
            let first = group * outputs;
            let at = |o: usize, tap: usize, i: usize| ((first + o) * inputs + i) * shape.kernel + tap;
            rows.pack(extents, first, at, &bias[first..][..outputs])
        });
        // With a stride the newest frame of the first output is frame `stride − 1`.
        let reach = (shape.kernel - 1) * shape.dilation + 1 - shape.stride;
        let history = || History::new(build.channels(), reach, build.frames, rows.in_bytes());
        Self {
            matrices: matrices.collect(),
            outputs: shape.outputs,
            stride: shape.stride,
            dilation: shape.dilation,
            histories: (0..build.streams).map(|_| history()).collect(),
        }
    }
}

impl Layer for Conv1d {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let count = io.frames / self.stride;
        let rows = io.input(0).chunks_exact(io.frames * channels).zip(io.output.chunks_exact_mut(count * self.outputs));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let seen = self.histories[stream].push(kernels, input);
            for (group, matrix) in self.matrices.iter().enumerate() {
                let first = group * matrix.inputs();
                let window = Window { channels, first, count, stride: self.stride, dilation: self.dilation };
                matrix.multiply(kernels, seen, window, &mut output[group * matrix.outputs()..], self.outputs);
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn settle(&mut self) {
        history::settle(&mut self.histories);
    }

    fn in_bytes(&self) -> bool {
        matches!(self.matrices[0], Matrix::Bytes(_))
    }

    fn bytes(&self) -> usize {
        bytes(&self.matrices, &self.histories)
    }
}

fn bytes(matrices: &[Matrix], histories: &[History]) -> usize {
    matrices.iter().map(Matrix::bytes).chain(histories.iter().map(History::bytes)).sum()
}

pub(super) struct ConvTranspose1d {
    /// A row for each value that a frame of input begins, `[frame of output][channel]`.
    matrix: Matrix,
    histories: Vec<History>,
}

impl ConvTranspose1d {
    pub fn new(build: &Build<'_>, outputs: usize, kernel: usize, stride: usize) -> Self {
        let taps = kernel / stride;
        let extents = Extents { outputs: stride * outputs, taps, inputs: build.channels() };
        let rows = Rows::new(build.weight("weight"), 1, 1, extents);
        // Output t · stride + phase hears input t − j through tap j · stride + phase; the oldest input lies first.
        let at = |row: usize, tap: usize, i: usize| {
            let (phase, o) = (row / outputs, row % outputs);
            (i * outputs + o) * kernel + (taps - 1 - tap) * stride + phase
        };
        let matrix = rows.pack(extents, 0, at, &build.weight("bias").floats().repeat(stride));
        let history = || History::new(build.channels(), taps - 1, build.frames, rows.in_bytes());
        Self { matrix, histories: (0..build.streams).map(|_| history()).collect() }
    }
}

impl Layer for ConvTranspose1d {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let width = self.matrix.outputs();
        let rows = io.input(0).chunks_exact(io.frames * channels).zip(io.output.chunks_exact_mut(io.frames * width));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let seen = self.histories[stream].push(kernels, input);
            let window = Window { channels, first: 0, count: io.frames, stride: 1, dilation: 1 };
            self.matrix.multiply(kernels, seen, window, output, width);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn settle(&mut self) {
        history::settle(&mut self.histories);
    }

    fn in_bytes(&self) -> bool {
        matches!(self.matrix, Matrix::Bytes(_))
    }

    fn bytes(&self) -> usize {
        bytes(std::slice::from_ref(&self.matrix), &self.histories)
    }
}
