//! Ops on single frames: learnt activations, normalisations, gates and modulation.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::WeightAxis::{Fixed, Outputs};
use super::operation::{ChannelCut, ChannelLinks, Operation, WeightSpec, require};
use crate::model::Shape;
use crate::model::export::node_line::NodeLine;
use crate::native::layer::{Io, Layer, LayerContext};

/// `x` above zero, `weight · x` below, `weight [slopes]` (He et al., ICCV 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prelu {
    /// 1 for a slope shared by all channels, else the number of channels.
    pub slopes: usize,
}

impl Operation for Prelu {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let (slopes, channels) = (self.slopes, inputs[0].channels);
        require([1, channels].contains(&slopes), || {
            format!("has {slopes} slopes; allowed: 1 or one per channel, {channels}")
        })?;
        Ok(inputs[0])
    }

    fn weights(&self, _inputs: &[Shape]) -> Vec<WeightSpec> {
        let axes: &[_] = if self.slopes == 1 {
            &[Fixed]
        } else {
            &[Outputs]
        };
        vec![WeightSpec::new("weight", axes, &[self.slopes])]
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        if self.slopes == cut.outputs_before {
            self.slopes = cut.outputs.len();
        }
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(PreluLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [weight] = line.parameters(["weight"]);
        format!("torch.prelu({}, {weight})", line.x())
    }
}

struct PreluLayer {
    /// `[channel]`
    slopes: Vec<f32>,
}

impl PreluLayer {
    fn new(context: &LayerContext<'_>) -> Self {
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

impl Layer for PreluLayer {
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

/// `x + sin²(α x) / α` with `alpha [channels]` (Ziyin et al., NeurIPS 2020).
pub(super) struct Snake;

impl Operation for Snake {
    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let channels = Shape::channels_of_first(inputs);
        vec![WeightSpec::new("alpha", &[Outputs], &[channels])]
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(SnakeLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [alpha] = line.parameters(["alpha"]);
        let x = line.x();
        let alpha = line.variable("alpha", &format!("torch.unsqueeze({alpha}, 1)"));
        format!("{x} + torch.square(torch.sin({alpha} * {x})) / ({alpha} + 1e-09)")
    }
}

struct SnakeLayer {
    /// `[channel]`
    alpha: Vec<f32>,
}

impl SnakeLayer {
    fn new(context: &LayerContext<'_>) -> Self {
        Self {
            alpha: context.weight("alpha").floats().into_owned(),
        }
    }
}

impl Layer for SnakeLayer {
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

/// ε of [`LayerNorm`], as PyTorch's default.
const LAYER_NORM_EPSILON: f32 = 1e-5;

/// Normalisation of each frame over its channels, `weight [channels]`, `bias [channels]`, ε = 1e-5
/// (Ba et al., 2016).
pub(super) struct LayerNorm;

impl Operation for LayerNorm {
    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let channels = Shape::channels_of_first(inputs);
        vec![
            WeightSpec::new("weight", &[Outputs], &[channels]),
            WeightSpec::bias(channels),
        ]
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(LayerNormLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [gain, bias] = line.parameters(["weight", "bias"]);
        let frames = format!("torch.transpose({}, 1, 2)", line.x());
        let channels = line.shapes[0].channels;
        format!(
            "torch.transpose(torch.layer_norm({frames}, [{channels}], {gain}, {bias}, 1e-05), 1, 2)"
        )
    }
}

struct LayerNormLayer {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl LayerNormLayer {
    fn new(context: &LayerContext<'_>) -> Self {
        Self {
            gain: context.weight("weight").floats().into_owned(),
            bias: context.weight("bias").floats().into_owned(),
        }
    }
}

impl Layer for LayerNormLayer {
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

/// `e^x` of each channel divided by the sum over all channels of the frame.
pub(super) struct Softmax;

impl Operation for Softmax {
    /// The sum is over all channels.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        format!("torch.softmax({}, 1)", line.x())
    }
}

impl Layer for Softmax {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        io.output
            .chunks_exact_mut(channels)
            .for_each(|frame| kernels.softmax(frame));
    }
}

/// `tanh` of the first half of the channels times `sigmoid` of the second half (van den Oord et
/// al., 2016).
pub(super) struct Gate;

impl Operation for Gate {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let channels = inputs[0].channels;
        require(channels.is_multiple_of(2), || {
            format!("has an odd number of channels, {channels}")
        })?;
        Ok(inputs[0].with_channels(channels / 2))
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Halves
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [first, second] = halves(line.x(), line.shapes[0].channels / 2);
        format!("torch.tanh({first}) * torch.sigmoid({second})")
    }
}

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

/// Feature-wise modulation of `x [C]` by `condition [2C]`: `x · condition[..C] + condition[C..]`
/// (Perez et al., AAAI 2018).
pub(super) struct Film;

impl Operation for Film {
    fn arity(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let [channels, condition] = [0, 1].map(|index| inputs[index].channels);
        require(channels.checked_mul(2) == Some(condition), || {
            format!("has a condition of {condition} channels; twice {channels} are needed")
        })?;
        Ok(inputs[0])
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Modulated
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [scale, shift] = halves(line.values[1], line.shapes[0].channels);
        format!("{} * {scale} + {shift}", line.x())
    }
}

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

/// Returns both halves of a value of `2 · channels` channels in TorchScript.
fn halves(value: &str, channels: usize) -> [String; 2] {
    [(0, channels), (channels, 2 * channels)]
        .map(|(start, end)| format!("torch.slice({value}, 1, {start}, {end})"))
}
