//! Runs a method of a model on whole sequences, node by node, from silence or from the state after the previous
//! sequence.

use std::collections::HashMap;
use std::ops::Range;

use ondes_engine::model::{Activation, Control, Method, ModelError, Op, graph::Shapes};
use tch::{Kind, Tensor};

use crate::TorchWeights;
use crate::checkpoint::Checkpoint;
use crate::codes;
use crate::draw;
use crate::precision::in_f32;
use crate::synthesis::{self, Noise, NoiseRow};

/// ε of [`Op::LayerNorm`].
const LAYER_NORM_EPSILON: f64 = 1e-5;
/// Fewest contiguous frames that a linear layer computes as columns.
const MIN_COLUMNS: i64 = 16;

/// A method that libtorch runs. All values are `[batch, channels, frames]`.
#[derive(Clone)]
pub struct TorchGraph {
    pub(crate) method: Method,
    pub(crate) shapes: Shapes,
    sample_rate: f64,
    /// `[port]`: constant input during the warm-up.
    defaults: Vec<f32>,
    /// Computes blocks of nodes without keeping their values for the backward pass.
    checkpoint: Option<(Checkpoint, Vec<Range<usize>>)>,
}

/// States of recurrent nodes after a sequence, by node name.
#[derive(Debug, Default)]
pub struct RecurrentState(pub(crate) HashMap<String, Vec<Tensor>>);

impl RecurrentState {
    /// Detaches the states, so that gradients end here.
    pub fn detach(&mut self) {
        self.0.values_mut().flatten().for_each(|state| *state = state.detach());
    }
}

impl TorchGraph {
    /// Checks the method's shapes. The warm-up gets silence on all inputs unless [`TorchGraph::with_defaults`] follows.
    ///
    /// # Errors
    /// Returns [`ModelError`] with the first node that does not fit.
    pub fn new(method: &Method, sample_rate: u32) -> Result<Self, ModelError> {
        let shapes = method.infer()?;
        let defaults = vec![0.0; method.inputs.len()];
        Ok(Self { method: method.clone(), shapes, sample_rate: f64::from(sample_rate), defaults, checkpoint: None })
    }

    /// Uses the controls' defaults as the input of their ports during the warm-up.
    #[must_use]
    pub fn with_defaults(mut self, controls: &[Control]) -> Self {
        for (port, default) in self.method.inputs.iter().zip(&mut self.defaults) {
            *default = controls.iter().find(|control| control.name == port.name).map_or(0.0, |control| control.default);
        }
        self
    }

    /// Computes the nodes in blocks by `checkpoint`, which keeps only their inputs and computes them again in the backward
    /// pass: less memory for a second forward pass.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some((checkpoint, self.blocks()));
        self
    }

    /// Computes all output ports from all input ports, each `[batch, channels, frames]`; the seed of `noise` is
    /// that of the native executor. Ports that are fed back are inputs like others: they say what came before each block.
    ///
    /// # Panics
    /// Panics if the number of inputs differs from that of the ports, or libtorch refuses their shapes.
    #[must_use]
    pub fn run(&self, weights: &TorchWeights, inputs: &[Tensor], noise: impl Into<Noise>) -> Vec<Tensor> {
        self.run_with_state(weights, inputs, noise, &mut RecurrentState::default())
    }

    /// Computes as [`TorchGraph::run`] does, with recurrent nodes starting from `state` and storing their final state
    /// there. Other nodes keep no state, so a sequence continues seamlessly only if they see just the current frame.
    ///
    /// # Panics
    /// Panics as [`TorchGraph::run`] does.
    #[must_use]
    pub fn run_with_state(
        &self,
        weights: &TorchWeights,
        inputs: &[Tensor],
        noise: impl Into<Noise>,
        state: &mut RecurrentState,
    ) -> Vec<Tensor> {
        assert_eq!(inputs.len(), self.method.inputs.len(), "one tensor for each input port");
        let noise = noise.into();
        // The warm-up is prepended to the inputs and removed from the outputs.
        let frames = |ratio: usize| (self.method.warm_up_blocks() * self.method.block / ratio) as i64;
        let with_warm_up =
            inputs.iter().zip(&self.method.inputs).zip(&self.defaults).map(|((input, port), &default)| {
                if self.method.warm_up == 0 {
                    return input.shallow_clone();
                }
                let (batch, channels, _) = input.size3().expect("[batch, channels, frames]");
                let shape = [batch, channels, frames(port.ratio)];
                Tensor::cat(
                    &[Tensor::full(shape, f64::from(default), (input.kind(), input.device())), input.shallow_clone()],
                    2,
                )
            });
        let mut values: Vec<Option<Tensor>> = with_warm_up.map(Some).collect();
        match &self.checkpoint {
            None => {
                let kept = self.last_reads(0..self.method.nodes.len());
                self.run_nodes(0..self.method.nodes.len(), weights, &mut values, &kept, noise, state);
            }
            Some((checkpoint, blocks)) => {
                for nodes in blocks {
                    self.run_block(nodes.clone(), *checkpoint, weights, &mut values, noise, state);
                }
            }
        }
        let outputs = self.shapes.shown.iter().zip(&self.method.outputs).map(|(&value, port)| {
            let all = values[value].as_ref().expect("outputs are kept");
            all.narrow(2, frames(port.ratio), all.size()[2] - frames(port.ratio))
        });
        outputs.collect()
    }

    /// Returns for each value the last of the nodes `nodes` that reads it, if nothing after them does.
    pub(crate) fn last_reads(&self, nodes: Range<usize>) -> Vec<Option<usize>> {
        let count = self.method.inputs.len() + self.method.nodes.len();
        let mut last = vec![None; count];
        for node in nodes.clone() {
            self.shapes.reads[node].iter().for_each(|&value| last[value] = Some(node));
        }
        let later = self.shapes.reads[nodes.end..].iter().flatten().chain(&self.shapes.shown);
        later.for_each(|&value| last[value] = None);
        last
    }

    /// Computes some nodes. Values that nothing reads any more are freed.
    pub(crate) fn run_nodes(
        &self,
        nodes: Range<usize>,
        weights: &TorchWeights,
        values: &mut Vec<Option<Tensor>>,
        last_reads: &[Option<usize>],
        noise: Noise,
        state: &mut RecurrentState,
    ) {
        for index in nodes {
            let (node, reads) = (&self.method.nodes[index], &self.shapes.reads[index]);
            let read: Vec<&Tensor> = reads.iter().map(|&value| values[value].as_ref().expect("in order")).collect();
            let hop = self.shapes.values[reads[0]].ratio;
            let weight = |parameter: &str| weights.get(&node.name, parameter);
            let value = match node.op {
                Op::Gru { .. } | Op::Lstm { .. } => {
                    let before = state.0.remove(&node.name);
                    let (value, after) = recurrent(&node.op, read[0], &weight, before);
                    state.0.insert(node.name.clone(), after);
                    value
                }
                _ => self.node(&node.op, &read, hop, &weight, &noise.rows(read[0].size()[0])),
            };
            let place = self.method.inputs.len() + index;
            values.resize_with(values.len().max(place + 1), || None);
            values[place] = Some(value);
            for &read in reads.iter().filter(|&&read| last_reads[read] == Some(index)) {
                values[read] = None;
            }
        }
    }

    /// Returns the shapes of all values.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Computes a node on whole sequences that start from silence; `rows` is the noise of each row of the batch.
    pub(crate) fn node<'w>(
        &self,
        op: &Op,
        inputs: &[&Tensor],
        hop: usize,
        weight: &impl Fn(&str) -> &'w Tensor,
        rows: &[NoiseRow],
    ) -> Tensor {
        let x = inputs[0];
        let channels_last = || x.transpose(1, 2);
        match *op {
            Op::Linear { .. } => linear(x, weight("weight"), weight("bias")),
            Op::Conv1d { kernel, stride, dilation, groups, .. } => {
                let reach = (kernel - 1) * dilation + 1 - stride;
                x.constant_pad_nd([reach as i64, 0]).conv1d(
                    weight("weight"),
                    Some(weight("bias")),
                    [stride as i64],
                    [0],
                    [dilation as i64],
                    groups as i64,
                )
            }
            Op::ConvTranspose1d { stride, .. } => {
                let frames = x.size()[2] * stride as i64;
                x.conv_transpose1d(weight("weight"), Some(weight("bias")), [stride as i64], [0], [0], 1, [1])
                    .narrow(2, 0, frames)
            }
            Op::Gru { .. } | Op::Lstm { .. } => recurrent(op, x, weight, None).0,
            Op::LayerNorm => {
                let (gain, bias) = (weight("weight"), weight("bias"));
                channels_last()
                    .layer_norm(gain.size(), Some(gain), Some(bias), LAYER_NORM_EPSILON, false)
                    .transpose(1, 2)
            }
            Op::Softmax => in_f32([x], |[x]| x.softmax(1, Kind::Float)),
            Op::Activation(activation) => activate(activation, x),
            Op::Prelu { .. } => {
                x.maximum(&x.zeros_like()) + weight("weight").view([1, -1, 1]) * x.minimum(&x.zeros_like())
            }
            Op::Snake => in_f32([x, &weight("alpha").view([1, -1, 1])], |[x, alpha]| {
                &x + (&alpha * &x).sin().square() / (alpha + 1e-9)
            }),
            Op::Gate => {
                let halves = x.chunk(2, 1);
                halves[0].tanh() * halves[1].sigmoid()
            }
            Op::Film => {
                let halves = inputs[1].chunk(2, 1);
                x * &halves[0] + &halves[1]
            }
            Op::Add => inputs[1..].iter().fold(x.shallow_clone(), |sum, other| sum + *other),
            Op::Multiply => x * inputs[1],
            Op::Concat => Tensor::cat(inputs, 1),
            Op::Split { start, channels } => x.narrow(1, start as i64, channels as i64),
            Op::Affine { scale, offset } => x * f64::from(scale) + f64::from(offset),
            Op::Delay { frames } => {
                let kept = (x.size()[2] - frames as i64).max(0);
                x.narrow(2, 0, kept).constant_pad_nd([x.size()[2] - kept, 0])
            }
            Op::Latency { .. } => x.shallow_clone(),
            Op::Interleave { factor } => {
                let (batch, channels, frames) = x.size3().expect("[batch, channels, frames]");
                let (factor, left) = (factor as i64, channels / factor as i64);
                let parts = x.view([batch, factor, left, frames]).permute([0, 2, 3, 1]);
                parts.reshape([batch, left, frames * factor])
            }
            Op::FlipOddBands => flip_odd_bands(x),
            Op::Noise { channels, distribution, number } => synthesis::noise(x, channels, distribution, number, rows),
            Op::DrawMixture { number, .. } => {
                in_f32([x, inputs[1], inputs[2], inputs[3]], |inputs| draw::mixture(inputs, number, rows))
            }
            Op::DrawCategories { categories, top, number } => {
                in_f32([x, inputs[1]], |inputs| draw::categories(inputs, categories, top, number, rows))
            }
            Op::ShapedNoise { bands, hop } => {
                in_f32([x, inputs[1]], |[x, noise]| synthesis::shaped_noise(&x, &noise, bands, hop))
            }
            Op::NearestCodes { .. } => {
                in_f32([x, weight("codebook")], |[x, codebook]| codes::nearest_codes(&x, &codebook))
            }
            Op::CodeSum { .. } => in_f32([x, weight("codebook")], |[x, codebook]| codes::code_sum(&x, &codebook)),
            Op::Harmonic => synthesis::harmonic(x, inputs[1], inputs[2], hop, self.sample_rate),
            Op::FilteredNoise => synthesis::filtered_noise(x, hop, rows),
            Op::Convolve { .. } => in_f32([x, weight("impulse")], |[x, impulse]| synthesis::convolve(&x, &impulse)),
        }
    }
}

/// Computes [`Op::Linear`]. Frames that are contiguous are the columns of one product per row of the batch, which needs no
/// transposition: twice as fast for few channels at the sample rate.
fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
    let (batch, _, frames) = x.size3().expect("[batch, channels, frames]");
    if frames < MIN_COLUMNS || x.stride()[2] != 1 {
        return x.transpose(1, 2).linear(weight, Some(bias)).transpose(1, 2);
    }
    let weights = weight.unsqueeze(0).expand([batch, -1, -1], false);
    bias.view([1, -1, 1]).baddbmm(&weights, x, 1, 1)
}

/// Computes [`Op::FlipOddBands`].
fn flip_odd_bands(x: &Tensor) -> Tensor {
    let (_, channels, frames) = x.size3().expect("[batch, channels, frames]");
    // In f32: f16 and bf16 cannot represent such large integers.
    let parity = |length: i64| Tensor::arange(length, (Kind::Float, x.device())).remainder(2.0).to_kind(x.kind());
    let (odd, second) = (parity(channels).view([1, -1, 1]), parity(frames));
    x * (1.0 - 2.0 * odd * (1.0 - second))
}

/// Applies an activation to each value.
fn activate(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => x.sigmoid(),
        Activation::Relu => x.relu(),
        // One operation, and one in the backward pass.
        Activation::LeakyRelu { slope } => x.prelu(&Tensor::from(slope).to_kind(x.kind()).to_device(x.device())),
        Activation::HardTanh => x.hardtanh(),
        Activation::LeakyHardTanh { min, max, min_slope, max_slope } => {
            let [min, max, min_slope, max_slope] = [min, max, min_slope, max_slope].map(f64::from);
            x.clamp(min, max) + min_slope * (x - min).clamp_max(0.0) + max_slope * (x - max).clamp_min(0.0)
        }
        Activation::HardSwish => x.hardswish(),
        Activation::Softsign => x / (x.abs() + 1.0),
        Activation::Silu => x.silu(),
        // In f32: polynomials of large values, and a divisor that may be small.
        Activation::FastTanh => in_f32([x], |[x]| fast_tanh(&x)),
        Activation::Softplus => x.softplus(),
        Activation::Exp => x.exp(),
        Activation::ExpSigmoid => 2.0 * (std::f64::consts::LN_10 * x.log_sigmoid()).exp() + 1e-7,
    }
}

/// Computes [`Activation::FastTanh`].
fn fast_tanh(x: &Tensor) -> Tensor {
    let a = x.abs();
    let square = &a * &a;
    let numerator =
        x * (2.455_507_507_029_56 * (&a + 1.0) + (0.821_226_666_969_744 * &a + 0.893_229_853_513_558) * &square);
    let stretched = &a + 0.814_642_734_961_073 * &square;
    numerator / ((square + 2.445_066_346_522_99) * stretched + 2.445_066_346_522_99)
}

/// Computes a recurrent layer on a sequence; returns the output and the final state.
pub(crate) fn recurrent<'w>(
    op: &Op,
    x: &Tensor,
    weight: &impl Fn(&str) -> &'w Tensor,
    before: Option<Vec<Tensor>>,
) -> (Tensor, Vec<Tensor>) {
    let parameters = recurrent_parameters(weight);
    let frames = x.transpose(1, 2);
    match *op {
        Op::Lstm { hidden, initial_state } => {
            let initial = || ["h0", "c0"].map(|name| state(x, hidden, initial_state.then(|| weight(name)))).into();
            let states: Vec<Tensor> = before.unwrap_or_else(initial);
            let (value, h, c) = frames.lstm(&states, &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h, c])
        }
        Op::Gru { hidden, initial_state } => {
            let initial = || vec![state(x, hidden, initial_state.then(|| weight("h0")))];
            let states = before.unwrap_or_else(initial);
            let (value, h) = frames.gru(&states[0], &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h])
        }
        _ => unreachable!("not a recurrent layer"),
    }
}

/// Returns the initial state of a recurrent layer, `[1, batch, hidden]`.
fn state(x: &Tensor, hidden: usize, initial: Option<&Tensor>) -> Tensor {
    let shape = [1, x.size()[0], hidden as i64];
    match initial {
        Some(initial) => initial.view([1, 1, -1]).expand(shape, false).contiguous(),
        None => Tensor::zeros(shape, (x.kind(), x.device())),
    }
}

fn recurrent_parameters<'w>(weight: &impl Fn(&str) -> &'w Tensor) -> Vec<Tensor> {
    ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].iter().map(|name| weight(name).shallow_clone()).collect()
}
