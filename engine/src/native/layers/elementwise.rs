//! Ops on single values or single frames.

use ondes_kernels::{Activation, Kernels};

use crate::native::layer::{Io, Layer, LayerContext};

/// Activation without weights.
pub(super) struct Pointwise(pub Activation);

impl Layer for Pointwise {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.activate(self.0, io.output);
    }
}

/// `scale · x + offset`.
pub(super) struct Affine {
    pub scale: f32,
    pub offset: f32,
}

impl Layer for Affine {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.scale_offset(io.output, self.scale, self.offset);
    }
}

/// Activation with a learnt frequency per channel.
pub(super) struct Snake {
    /// `[channel]`
    alpha: Vec<f32>,
}

impl Snake {
    pub fn new(context: &LayerContext<'_>) -> Self {
        Self {
            alpha: context.weight("alpha").floats().into_owned(),
        }
    }
}

impl Layer for Snake {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.snake(io.output, &self.alpha);
    }

    fn bytes(&self) -> usize {
        size_of_val(self.alpha.as_slice())
    }
}

/// Leaky ReLU with a learnt slope per channel.
pub(super) struct Prelu {
    /// `[channel]`
    slopes: Vec<f32>,
}

impl Prelu {
    pub fn new(context: &LayerContext<'_>) -> Self {
        let slopes = context.weight("weight").floats();
        Self {
            slopes: slopes
                .iter()
                .copied()
                .cycle()
                .take(context.channels())
                .collect(),
        }
    }
}

impl Layer for Prelu {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.prelu(io.output, &self.slopes);
    }

    fn bytes(&self) -> usize {
        size_of_val(self.slopes.as_slice())
    }
}

/// ε of [`crate::model::Op::LayerNorm`], as PyTorch's default.
const LAYER_NORM_EPSILON: f32 = 1e-5;

/// Normalisation of each frame over its channels.
pub(super) struct LayerNorm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl LayerNorm {
    pub fn new(context: &LayerContext<'_>) -> Self {
        Self {
            gain: context.weight("weight").floats().into_owned(),
            bias: context.weight("bias").floats().into_owned(),
        }
    }
}

impl Layer for LayerNorm {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        for frame in io.output.chunks_exact_mut(self.gain.len()) {
            kernels.layer_norm(frame, &self.gain, &self.bias, LAYER_NORM_EPSILON);
        }
    }

    fn bytes(&self) -> usize {
        2 * size_of_val(self.gain.as_slice())
    }
}

/// `e^x` of each channel divided by their sum.
pub(super) struct Softmax {
    channels: usize,
}

impl Softmax {
    pub fn new(context: &LayerContext<'_>) -> Self {
        Self {
            channels: context.channels(),
        }
    }
}

impl Layer for Softmax {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        io.output
            .chunks_exact_mut(self.channels)
            .for_each(|frame| kernels.softmax(frame));
    }
}

/// `tanh` of the first half of the channels times `sigmoid` of the second.
pub(super) struct Gate;

impl Layer for Gate {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let frames = io
            .input(0)
            .chunks_exact(channels)
            .zip(io.output.chunks_exact_mut(channels / 2));
        frames.for_each(|(x, y)| kernels.gate(x, y));
    }
}

/// Feature-wise linear modulation.
pub(super) struct Film;

impl Layer for Film {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let conditions = io.input(1).chunks_exact(2 * channels);
        io.output
            .chunks_exact_mut(channels)
            .zip(conditions)
            .for_each(|(x, condition)| kernels.film(x, condition));
    }
}
