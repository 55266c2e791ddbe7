//! Ops on single values or single frames.

use ondes_kernels::Kernels;

use super::{Build, Io, Layer};

/// An op without weights that treats all values alike.
pub(super) enum Activation {
    Tanh,
    Sigmoid,
    Relu,
    LeakyRelu(f32),
    Softplus,
    ExpSigmoid,
    Exp,
    HardTanh,
    LeakyHardTanh { bounds: [f32; 2], slopes: [f32; 2] },
    HardSwish,
    Softsign,
    Silu,
    FastTanh,
    Affine { scale: f32, offset: f32 },
}

pub(super) struct Elementwise(pub Activation);

impl Layer for Elementwise {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        match self.0 {
            Activation::Tanh => kernels.tanh(io.output),
            Activation::Sigmoid => kernels.sigmoid(io.output),
            Activation::Relu => kernels.relu(io.output),
            Activation::LeakyRelu(slope) => kernels.leaky_relu(io.output, slope),
            Activation::Softplus => kernels.softplus(io.output),
            Activation::ExpSigmoid => kernels.exp_sigmoid(io.output),
            Activation::Exp => kernels.exp(io.output),
            Activation::HardTanh => kernels.hard_tanh(io.output),
            Activation::LeakyHardTanh { bounds, slopes } => kernels.leaky_hard_tanh(io.output, bounds, slopes),
            Activation::HardSwish => kernels.hard_swish(io.output),
            Activation::Softsign => kernels.softsign(io.output),
            Activation::Silu => kernels.silu(io.output),
            Activation::FastTanh => kernels.fast_tanh(io.output),
            Activation::Affine { scale, offset } => kernels.scale_offset(io.output, scale, offset),
        }
    }
}

pub(super) struct Snake {
    alpha: Vec<f32>,
}

impl Snake {
    pub fn new(build: &Build<'_>) -> Self {
        Self { alpha: build.weight("alpha").floats().into_owned() }
    }
}

impl Layer for Snake {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.snake(io.output, &self.alpha);
    }

    fn bytes(&self) -> usize {
        size_of_val(self.alpha.as_slice())
    }
}

pub(super) struct Prelu {
    /// `[channel]`
    slopes: Vec<f32>,
}

impl Prelu {
    pub fn new(build: &Build<'_>) -> Self {
        let slopes = build.weight("weight").floats();
        Self { slopes: slopes.iter().copied().cycle().take(build.channels()).collect() }
    }
}

impl Layer for Prelu {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.prelu(io.output, &self.slopes);
    }

    fn bytes(&self) -> usize {
        size_of_val(self.slopes.as_slice())
    }
}

/// ε of [`crate::model::Op::LayerNorm`], PyTorch's default.
const LAYER_NORM_EPSILON: f32 = 1e-5;

pub(super) struct LayerNorm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl LayerNorm {
    pub fn new(build: &Build<'_>) -> Self {
        Self { gain: build.weight("weight").floats().into_owned(), bias: build.weight("bias").floats().into_owned() }
    }
}

impl Layer for LayerNorm {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        for frame in io.output.chunks_exact_mut(self.gain.len()) {
            kernels.layer_norm(frame, &self.gain, &self.bias, LAYER_NORM_EPSILON);
        }
    }

    fn bytes(&self) -> usize {
        2 * size_of_val(self.gain.as_slice())
    }
}

pub(super) struct Gate;

impl Layer for Gate {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let frames = io.input(0).chunks_exact(channels).zip(io.output.chunks_exact_mut(channels / 2));
        frames.for_each(|(x, y)| kernels.gate(x, y));
    }
}

pub(super) struct Film;

impl Layer for Film {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        let conditions = io.input(1).chunks_exact(2 * channels);
        io.output.chunks_exact_mut(channels).zip(conditions).for_each(|(x, condition)| kernels.film(x, condition));
    }
}
