//! Convolutions: taps are read where the frames lie, one after another, so a convolution is a matrix product.

use ondes_kernels::{Columns, Kernels, PackedMatrix};

use super::{Build, Io, Layer};

/// The frames a stream's convolution can still see, followed by those of this step.
struct History {
    channels: usize,
    /// Frames before the newest that are still needed.
    reach: usize,
    /// `[frame][channel]`
    frames: Vec<f32>,
    /// The past of a stream that begins, `[frame][channel]`; empty for silence.
    settled: Vec<f32>,
    /// Where the next frame goes; the `reach` frames before it are the past.
    end: usize,
}

impl History {
    fn new(channels: usize, reach: usize, step: usize) -> Self {
        // Twice the reach, so that the past is moved to the front once in `reach` frames and not at each step.
        let capacity = 2 * reach + step;
        Self { channels, reach, frames: vec![0.0; capacity * channels], settled: Vec::new(), end: reach }
    }

    /// Appends frames; gives the past followed by them.
    fn push(&mut self, frames: &[f32]) -> &[f32] {
        let (channels, count) = (self.channels, frames.len() / self.channels);
        if (self.end + count) * channels > self.frames.len() {
            self.frames.copy_within((self.end - self.reach) * channels..self.end * channels, 0);
            self.end = self.reach;
        }
        let start = self.end - self.reach;
        self.frames[self.end * channels..][..frames.len()].copy_from_slice(frames);
        self.end += count;
        &self.frames[start * channels..self.end * channels]
    }

    /// What it can see now, but for the frames to come.
    fn past(&self) -> &[f32] {
        &self.frames[(self.end - self.reach) * self.channels..self.end * self.channels]
    }

    fn reset(&mut self) {
        let past = &mut self.frames[..self.reach * self.channels];
        if self.settled.is_empty() {
            past.fill(0.0)
        } else {
            past.copy_from_slice(&self.settled)
        }
        self.end = self.reach;
    }
}

/// From now on all begin as the first one stands.
fn settle(histories: &mut [History]) {
    let past = histories[0].past().to_vec();
    for history in histories {
        history.settled.clone_from(&past);
        history.reset();
    }
}

fn history_bytes(histories: &[History]) -> usize {
    let values = histories.iter().map(|history| history.frames.len() + history.settled.len());
    values.sum::<usize>() * size_of::<f32>()
}

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
    matrices: Vec<PackedMatrix>,
    outputs: usize,
    stride: usize,
    dilation: usize,
    histories: Vec<History>,
}

impl Conv1d {
    pub fn new(build: &Build<'_>, shape: &ConvShape) -> Self {
        let (weight, bias) = (&build.weight("weight").data, &build.weight("bias").data);
        let (inputs, outputs) = (build.channels() / shape.groups, shape.outputs / shape.groups);
        let matrices = (0..shape.groups).map(|group| {
            let row = |o: usize| (group * outputs + o) * inputs;
            let value = |o: usize, tap: usize, i: usize| weight[(row(o) + i) * shape.kernel + tap];
            PackedMatrix::new(outputs, shape.kernel, inputs, value, Some(&bias[group * outputs..][..outputs]))
        });
        // With a stride the newest frame of the first output is frame `stride − 1`.
        let reach = (shape.kernel - 1) * shape.dilation + 1 - shape.stride;
        Self {
            matrices: matrices.collect(),
            outputs: shape.outputs,
            stride: shape.stride,
            dilation: shape.dilation,
            histories: (0..build.streams).map(|_| History::new(build.channels(), reach, build.frames)).collect(),
        }
    }
}

impl Layer for Conv1d {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let count = io.frames / self.stride;
        let rows = io.input(0).chunks_exact(io.frames * channels).zip(io.output.chunks_exact_mut(count * self.outputs));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let seen = self.histories[stream].push(input);
            for (group, matrix) in self.matrices.iter().enumerate() {
                let x = Columns {
                    data: &seen[group * matrix.inputs_per_tap()..],
                    count,
                    stride: self.stride * channels,
                    tap_stride: self.dilation * channels,
                };
                kernels.matmul(matrix, x, &mut output[group * matrix.outputs()..], self.outputs);
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn settle(&mut self) {
        settle(&mut self.histories);
    }

    fn bytes(&self) -> usize {
        self.matrices.iter().map(PackedMatrix::bytes).sum::<usize>() + history_bytes(&self.histories)
    }
}

pub(super) struct ConvTranspose1d {
    /// One per frame of output that a frame of input begins.
    phases: Vec<PackedMatrix>,
    outputs: usize,
    histories: Vec<History>,
}

impl ConvTranspose1d {
    pub fn new(build: &Build<'_>, outputs: usize, kernel: usize, stride: usize) -> Self {
        let (weight, bias) = (&build.weight("weight").data, &build.weight("bias").data);
        let taps = kernel / stride;
        // Output t · stride + phase hears input t − j through tap j · stride + phase; the oldest input lies first.
        let phases = (0..stride).map(|phase| {
            let value =
                |o: usize, tap: usize, i: usize| weight[(i * outputs + o) * kernel + (taps - 1 - tap) * stride + phase];
            PackedMatrix::new(outputs, taps, build.channels(), value, Some(bias))
        });
        Self {
            phases: phases.collect(),
            outputs,
            histories: (0..build.streams).map(|_| History::new(build.channels(), taps - 1, build.frames)).collect(),
        }
    }
}

impl Layer for ConvTranspose1d {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let width = self.outputs * self.phases.len();
        let rows = io.input(0).chunks_exact(io.frames * channels).zip(io.output.chunks_exact_mut(io.frames * width));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let data = self.histories[stream].push(input);
            for (phase, matrix) in self.phases.iter().enumerate() {
                let x = Columns { data, count: io.frames, stride: channels, tap_stride: channels };
                kernels.matmul(matrix, x, &mut output[phase * self.outputs..], width);
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn settle(&mut self) {
        settle(&mut self.histories);
    }

    fn bytes(&self) -> usize {
        self.phases.iter().map(PackedMatrix::bytes).sum::<usize>() + history_bytes(&self.histories)
    }
}
