//! Runs a method of a model on whole sequences, node by node, from silence or from the state after
//! the previous sequence.

use std::collections::HashMap;
use std::ops::Range;

use ondes_engine::model::{Activation, Control, Method, ModelError, Op, graph::Shapes};
use ondes_engine::ops::{
    self, Affine, Attention, Conv1d, ConvTranspose1d, Delay, DrawCategories, DrawMixture, Gru,
    Interleave, Lstm, ShapedNoise, Split,
};
use tch::{Kind, Tensor};

use crate::TorchWeights;
use crate::attention::attention_in_blocks;
use crate::checkpoint::Checkpoint;
use crate::codes;
use crate::draw;
use crate::precision::in_f32;
use crate::recurrence;
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
    /// Samples at the end that are output; `None` for all.
    end: Option<usize>,
    /// `[value]`: frames at its end that are computed; `None` for all.
    needs: Vec<Option<i64>>,
}

/// States of recurrent nodes after a sequence, by node name.
#[derive(Debug, Default)]
pub struct RecurrentState(pub(crate) HashMap<String, Vec<Tensor>>);

impl RecurrentState {
    /// Detaches the states, so that gradients end here.
    pub fn detach(&mut self) {
        self.0
            .values_mut()
            .flatten()
            .for_each(|state| *state = state.detach());
    }
}

impl TorchGraph {
    /// Checks the method's shapes. The warm-up gets silence on all inputs unless
    /// [`TorchGraph::with_defaults`] follows.
    ///
    /// # Errors
    /// Returns [`ModelError`] with the first node that does not fit.
    pub fn new(method: &Method, sample_rate: u32) -> Result<Self, ModelError> {
        let shapes = method.infer()?;
        let defaults = vec![0.0; method.inputs.len()];
        let needs = vec![None; shapes.values.len()];
        let sample_rate = f64::from(sample_rate);
        Ok(Self {
            method: method.clone(),
            shapes,
            sample_rate,
            defaults,
            checkpoint: None,
            end: None,
            needs,
        })
    }

    /// Outputs only the last `samples` samples of each sequence, which must be at least as long,
    /// and computes no more than they depend on: what convolutions make of the samples before them
    /// is left out.
    #[must_use]
    pub fn with_end(mut self, samples: usize) -> Self {
        self.needs = self.needs(samples);
        self.end = Some(samples);
        self
    }

    /// Uses the controls' defaults as the input of their ports during the warm-up.
    #[must_use]
    pub fn with_defaults(mut self, controls: &[Control]) -> Self {
        for (port, default) in self.method.inputs.iter().zip(&mut self.defaults) {
            *default = controls
                .iter()
                .find(|control| control.name == port.name)
                .map_or(0.0, |control| control.default);
        }
        self
    }

    /// Computes the nodes in blocks by `checkpoint`, which keeps only their inputs and computes
    /// them again in the backward pass: less memory for a second forward pass.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some((checkpoint, self.blocks()));
        self
    }

    /// Computes all output ports from all input ports, each `[batch, channels, frames]`; the seed
    /// of `noise` is that of the native executor. Ports that are fed back are inputs like others:
    /// they say what came before each block.
    ///
    /// # Panics
    /// Panics if the number of inputs differs from that of the ports, or libtorch refuses their
    /// shapes.
    #[must_use]
    pub fn run(
        &self,
        weights: &TorchWeights,
        inputs: &[Tensor],
        noise: impl Into<Noise>,
    ) -> Vec<Tensor> {
        self.run_with_state(weights, inputs, noise, &mut RecurrentState::default())
    }

    /// Computes as [`TorchGraph::run`] does, with recurrent nodes starting from `state` and storing
    /// their final state there. Other nodes keep no state, so a sequence continues seamlessly only
    /// if they see just the current frame.
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
        assert_eq!(
            inputs.len(),
            self.method.inputs.len(),
            "one tensor for each input port"
        );
        let noise = noise.into();
        // The warm-up is prepended to the inputs and removed from the outputs.
        let frames =
            |ratio: usize| (self.method.warm_up_blocks() * self.method.block / ratio) as i64;
        let with_warm_up = inputs
            .iter()
            .zip(&self.method.inputs)
            .zip(&self.defaults)
            .map(|((input, port), &default)| {
                if self.method.warm_up == 0 {
                    return input.shallow_clone();
                }
                let (batch, channels, _) = input.size3().expect("[batch, channels, frames]");
                let shape = [batch, channels, frames(port.ratio)];
                Tensor::cat(
                    &[
                        Tensor::full(shape, f64::from(default), (input.kind(), input.device())),
                        input.shallow_clone(),
                    ],
                    2,
                )
            });
        let mut values: Vec<Option<Tensor>> = with_warm_up.map(Some).collect();
        match &self.checkpoint {
            None => {
                let kept = self.last_reads(0..self.method.nodes.len());
                self.run_nodes(
                    0..self.method.nodes.len(),
                    weights,
                    &mut values,
                    &kept,
                    noise,
                    state,
                );
            }
            Some((checkpoint, blocks)) => {
                for nodes in blocks {
                    self.run_block(
                        nodes.clone(),
                        *checkpoint,
                        weights,
                        &mut values,
                        noise,
                        state,
                    );
                }
            }
        }
        let outputs = self
            .shapes
            .shown
            .iter()
            .zip(&self.method.outputs)
            .map(|(&value, port)| {
                let all = values[value].as_ref().expect("outputs are kept");
                match self.end {
                    Some(samples) => end(all, (samples / port.ratio) as i64),
                    None => all.narrow(2, frames(port.ratio), all.size()[2] - frames(port.ratio)),
                }
            });
        outputs.collect()
    }

    /// Returns for each value the last of the nodes `nodes` that reads it, if nothing after them
    /// does.
    pub(crate) fn last_reads(&self, nodes: Range<usize>) -> Vec<Option<usize>> {
        let count = self.method.inputs.len() + self.method.nodes.len();
        let mut last = vec![None; count];
        for node in nodes.clone() {
            self.shapes.reads[node]
                .iter()
                .for_each(|&value| last[value] = Some(node));
        }
        let later = self.shapes.reads[nodes.end..]
            .iter()
            .flatten()
            .chain(&self.shapes.shown);
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
            let place = self.method.inputs.len() + index;
            let read: Vec<&Tensor> = reads
                .iter()
                .map(|&value| values[value].as_ref().expect("in order"))
                .collect();
            let hop = self.shapes.values[reads[0]].ratio;
            let weight = |parameter: &str| weights.get(&node.name, parameter);
            let value = match node.op {
                Op::Gru(_) | Op::Lstm(_) => {
                    let before = state.0.remove(&node.name);
                    let (value, after) = recurrent(&node.op, read[0], &weight, before);
                    state.0.insert(node.name.clone(), after);
                    value
                }
                Op::Conv1d(_) => convolution(
                    &node.op,
                    read[0],
                    weight("weight"),
                    weight("bias"),
                    self.needs[place],
                ),
                _ => {
                    let rows = noise.rows(read[0].size()[0]);
                    match self.needs[place] {
                        None => self.node(&node.op, &read, hop, &weight, &rows),
                        Some(frames) => {
                            let ends: Vec<Tensor> =
                                read.iter().map(|value| end(value, frames)).collect();
                            self.node(
                                &node.op,
                                &ends.iter().collect::<Vec<_>>(),
                                hop,
                                &weight,
                                &rows,
                            )
                        }
                    }
                }
            };
            values.resize_with(values.len().max(place + 1), || None);
            values[place] = Some(value);
            for &read in reads
                .iter()
                .filter(|&&read| last_reads[read] == Some(index))
            {
                values[read] = None;
            }
        }
    }

    /// Returns the shapes of all values.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Computes a node on whole sequences that start from silence; `rows` is the noise of each row
    /// of the batch.
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
            Op::Linear(_) => linear(x, weight("weight"), weight("bias")),
            Op::Conv1d(_) => convolution(op, x, weight("weight"), weight("bias"), None),
            Op::ConvTranspose1d(ConvTranspose1d { stride, .. }) => {
                let frames = x.size()[2] * stride as i64;
                x.conv_transpose1d(
                    weight("weight"),
                    Some(weight("bias")),
                    [stride as i64],
                    [0],
                    [0],
                    1,
                    [1],
                )
                .narrow(2, 0, frames)
            }
            Op::Gru(_) | Op::Lstm(_) => recurrent(op, x, weight, None).0,
            Op::Attention(Attention { window, .. }) => {
                let before = |x: &Tensor| x.constant_pad_nd([window as i64 - 1, 0]);
                attention_in_blocks(
                    x,
                    &before(inputs[1]),
                    &before(inputs[2]),
                    weight("position"),
                )
            }
            Op::LayerNorm => {
                let (gain, bias) = (weight("weight"), weight("bias"));
                channels_last()
                    .layer_norm(
                        gain.size(),
                        Some(gain),
                        Some(bias),
                        LAYER_NORM_EPSILON,
                        false,
                    )
                    .transpose(1, 2)
            }
            Op::Softmax => in_f32([x], |[x]| x.softmax(1, Kind::Float)),
            Op::Activation(activation) => activate(activation, x),
            Op::Prelu(_) => {
                x.maximum(&x.zeros_like())
                    + weight("weight").view([1, -1, 1]) * x.minimum(&x.zeros_like())
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
            Op::Add => inputs[1..]
                .iter()
                .fold(x.shallow_clone(), |sum, other| sum + *other),
            Op::Multiply => x * inputs[1],
            Op::Concat => Tensor::cat(inputs, 1),
            Op::Split(Split { start, channels }) => x.narrow(1, start as i64, channels as i64),
            Op::Affine(Affine { scale, offset }) => x * f64::from(scale) + f64::from(offset),
            Op::Delay(Delay { frames }) => {
                let kept = (x.size()[2] - frames as i64).max(0);
                x.narrow(2, 0, kept)
                    .constant_pad_nd([x.size()[2] - kept, 0])
            }
            Op::Latency(_) => x.shallow_clone(),
            Op::Interleave(Interleave { factor }) => {
                let (batch, channels, frames) = x.size3().expect("[batch, channels, frames]");
                let (factor, left) = (factor as i64, channels / factor as i64);
                let parts = x.view([batch, factor, left, frames]).permute([0, 2, 3, 1]);
                parts.reshape([batch, left, frames * factor])
            }
            Op::FlipOddBands => flip_odd_bands(x),
            Op::Noise(ops::Noise {
                channels,
                distribution,
                number,
            }) => synthesis::noise(x, channels, distribution, number, rows),
            Op::DrawMixture(DrawMixture { least, number, .. }) => {
                in_f32([x, inputs[1], inputs[2], inputs[3]], |inputs| {
                    draw::mixture(inputs, least, number, rows)
                })
            }
            Op::DrawCategories(DrawCategories {
                categories,
                top,
                number,
            }) => in_f32([x, inputs[1]], |inputs| {
                draw::categories(inputs, categories, top, number, rows)
            }),
            Op::ShapedNoise(ShapedNoise { bands, hop }) => in_f32([x, inputs[1]], |[x, noise]| {
                synthesis::shaped_noise(&x, &noise, bands, hop)
            }),
            Op::NearestCodes(_) => in_f32([x, weight("codebook")], |[x, codebook]| {
                codes::nearest_codes(&x, &codebook)
            }),
            Op::CodeSum(_) => in_f32([x, weight("codebook")], |[x, codebook]| {
                codes::code_sum(&x, &codebook)
            }),
            Op::Harmonic => synthesis::harmonic(x, inputs[1], inputs[2], hop, self.sample_rate),
            Op::FilteredNoise => synthesis::filtered_noise(x, hop, rows),
            Op::Convolve(_) => in_f32([x, weight("impulse")], |[x, impulse]| {
                synthesis::convolve(&x, &impulse)
            }),
        }
    }
}

/// Computes [`Op::Linear`]. Frames that are contiguous are the columns of one product per row of
/// the batch, which needs no transposition: twice as fast for few channels at the sample rate. One
/// channel is an elementwise product, which autocast keeps in f32: positions and pitches become
/// angles of hundreds of radians there, too large for bf16.
fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
    let (batch, channels, frames) = x.size3().expect("[batch, channels, frames]");
    if channels == 1 {
        return bias.view([1, -1, 1]) + x * weight.view([1, -1, 1]);
    }
    if frames < MIN_COLUMNS || x.stride()[2] != 1 {
        return x.transpose(1, 2).linear(weight, Some(bias)).transpose(1, 2);
    }
    let weights = weight.unsqueeze(0).expand([batch, -1, -1], false);
    bias.view([1, -1, 1]).baddbmm(&weights, x, 1, 1)
}

/// Computes [`Op::Conv1d`] from silence; `frames` at its end, `None` for all.
fn convolution(op: &Op, x: &Tensor, weight: &Tensor, bias: &Tensor, frames: Option<i64>) -> Tensor {
    let Op::Conv1d(Conv1d {
        kernel,
        stride,
        dilation,
        groups,
        ..
    }) = *op
    else {
        unreachable!("not a convolution")
    };
    let earlier = ((kernel - 1) * dilation + 1 - stride) as i64;
    let length = x.size()[2];
    let read = end(x, frames.map_or(length, |frames| frames + earlier));
    let missing = earlier - frames.map_or(0, |frames| (length - frames).clamp(0, earlier));
    let padded = if missing > 0 {
        read.constant_pad_nd([missing, 0])
    } else {
        read
    };
    padded.conv1d(
        weight,
        Some(bias),
        [stride as i64],
        [0],
        [dilation as i64],
        groups as i64,
    )
}

/// Returns the last frames of a value, or all if there are no more.
fn end(value: &Tensor, frames: i64) -> Tensor {
    let length = value.size()[2];
    if length <= frames {
        value.shallow_clone()
    } else {
        value.narrow(2, length - frames, frames)
    }
}

/// Computes [`Op::FlipOddBands`].
fn flip_odd_bands(x: &Tensor) -> Tensor {
    let (_, channels, frames) = x.size3().expect("[batch, channels, frames]");
    // In f32: f16 and bf16 cannot represent such large integers.
    let parity = |length: i64| {
        Tensor::arange(length, (Kind::Float, x.device()))
            .remainder(2.0)
            .to_kind(x.kind())
    };
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
        Activation::LeakyRelu { slope } => {
            x.prelu(&Tensor::from(slope).to_kind(x.kind()).to_device(x.device()))
        }
        Activation::HardTanh => x.hardtanh(),
        Activation::LeakyHardTanh {
            min,
            max,
            min_slope,
            max_slope,
        } => {
            let [min, max, min_slope, max_slope] = [min, max, min_slope, max_slope].map(f64::from);
            x.clamp(min, max)
                + min_slope * (x - min).clamp_max(0.0)
                + max_slope * (x - max).clamp_min(0.0)
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
    let numerator = x
        * (2.455_507_507_029_56 * (&a + 1.0)
            + (0.821_226_666_969_744 * &a + 0.893_229_853_513_558) * &square);
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
    let initial = |names: &[&str], hidden: usize, given: bool| -> Vec<Tensor> {
        names
            .iter()
            .map(|name| state(x, hidden, given.then(|| weight(name))))
            .collect()
    };
    let states = before.unwrap_or_else(|| match *op {
        Op::Lstm(Lstm {
            hidden,
            initial_state,
        }) => initial(&["h0", "c0"], hidden, initial_state),
        Op::Gru(Gru {
            hidden,
            initial_state,
        }) => initial(&["h0"], hidden, initial_state),
        _ => unreachable!("not a recurrent layer"),
    });
    if recurrence::serves(weight("weight_hh")) {
        return by_kernels(x, weight, &states);
    }
    let parameters = recurrent_parameters(weight);
    let frames = x.transpose(1, 2);
    match *op {
        Op::Lstm(_) => {
            let (value, h, c) = frames.lstm(&states, &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h, c])
        }
        _ => {
            let (value, h) = frames.gru(&states[0], &parameters, true, 1, 0.0, false, false, true);
            (value.transpose(1, 2), vec![h])
        }
    }
}

/// Computes a recurrent layer by [`recurrence`](recurrence::recurrence).
fn by_kernels<'w>(
    x: &Tensor,
    weight: &impl Fn(&str) -> &'w Tensor,
    states: &[Tensor],
) -> (Tensor, Vec<Tensor>) {
    let is_lstm = states.len() == 2;
    let (of_input, of_state) = (weight("bias_ih"), weight("bias_hh"));
    let gates = match is_lstm {
        true => x
            .permute([2, 0, 1])
            .linear(weight("weight_ih"), Some(of_input + of_state)),
        false => x
            .permute([2, 0, 1])
            .linear(weight("weight_ih"), Some(of_input)),
    };
    let states: Vec<Tensor> = states.iter().map(|state| state.squeeze_dim(0)).collect();
    let bias = (!is_lstm).then_some(of_state);
    let mut all = recurrence::recurrence(gates, weight("weight_hh"), bias, &states).into_iter();
    let value = all
        .next()
        .expect("all states")
        .permute([1, 2, 0])
        .to_kind(x.kind());
    (
        value,
        all.map(|state| state.unsqueeze(0).to_kind(x.kind()))
            .collect(),
    )
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
    ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        .iter()
        .map(|name| weight(name).shallow_clone())
        .collect()
}
