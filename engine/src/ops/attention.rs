//! Attention over the last frames.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::WeightAxis::Fixed;
use super::operation::{ChannelLinks, Memory, Operation, WeightSpec, require, require_positive};
use crate::model::Shape;
use crate::model::export::node_line::{Function, NodeLine};
use crate::native::layer::{Io, Layer, LayerContext};

/// Causal attention over the last `window` frames, the present one among them. Inputs: `query`,
/// `key` and `value`, each `[C]`, in which the channels of a head follow each other. For each head
/// `h`, `y[t] = Σ_d s_d value[t − d]` with
/// `s = softmax_d(query[t] · key[t − d] / √(C / heads) + position[h][d])` and `d` from 0 to
/// `window − 1`, `position [heads][window]` (Vaswani et al., arXiv:1706.03762; a bias for each
/// distance as Raffel et al., arXiv:1910.10683). Keys and values before the first frame are zeros,
/// and take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// Heads, which divide the channels.
    pub heads: usize,
    /// Frames.
    pub window: usize,
}

impl Operation for Attention {
    fn arity(&self) -> RangeInclusive<usize> {
        3..=3
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self { heads, window } = *self;
        require_positive(&[heads, window])?;
        let [channels, key, value] = [0, 1, 2].map(|index| inputs[index].channels);
        require(channels.is_multiple_of(heads), || {
            format!("has {heads} heads, which must divide {channels} channels")
        })?;
        require([key, value] == [channels; 2], || {
            format!(
                "has queries of {channels}, keys of {key} and values of {value} channels; equal ones are needed"
            )
        })?;
        Ok(inputs[0])
    }

    fn weights(&self, _inputs: &[Shape]) -> Vec<WeightSpec> {
        let shape = [self.heads, self.window];
        vec![WeightSpec::new("position", &[Fixed, Fixed], &shape)]
    }

    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        (self.window - 1) * inputs[0].ratio
    }

    /// With all keys, and with all values.
    fn multiply_adds(&self, _inputs: &[Shape], output: Shape) -> usize {
        2 * self.window * output.channels
    }

    fn held_frames(&self) -> usize {
        self.window.saturating_mul(2)
    }

    fn memory(&self) -> Memory {
        Memory::Attended(self.window - 1)
    }

    /// Heads have equal numbers of channels.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(AttentionLayer::new(context, self))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [keys, values] = [(1, "keys"), (2, "values")]
            .map(|(input, state)| line.with_past_of(input, state, self.window - 1));
        let [position] = line.parameters(["position"]);
        let x = line.x();
        line.call(ATTENTION, &[x, &keys, &values, &position])
    }
}

/// [`Attention`]; `keys` and `values` begin with the frames
/// before.
pub(super) const ATTENTION: Function = Function {
    signature: "attention(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor",
    body: "\
batch = torch.size(query, 0)
frames = torch.size(query, 2)
all = torch.size(keys, 2)
heads = torch.size(position, 0)
window = torch.size(position, 1)
width = torch.floordiv(torch.size(query, 1), heads)
queries = torch.transpose(torch.reshape(query, [batch, heads, width, frames]), 2, 3)
scores = torch.matmul(queries, torch.reshape(keys, [batch, heads, width, all])) * torch.pow(width, -0.5)
frame = torch.cumsum(torch.new_ones(query, [frames, 1]), 0)
distance = frame - torch.cumsum(torch.new_ones(query, [1, all]), 1) + (window - 1.)
index = torch.to(torch.clamp(distance, 0., window - 1.), 4)
bias = torch.reshape(torch.index_select(position, 1, torch.reshape(index, [-1])), [heads, frames, all])
outside = torch.logical_or(torch.lt(distance, 0.), torch.ge(distance, window))
shares = torch.softmax(torch.masked_fill(scores + bias, outside, -1e+30), -1)
sums = torch.matmul(torch.reshape(values, [batch, heads, width, all]), torch.transpose(shares, 2, 3))
return torch.reshape(sums, [batch, -1, frames])",
};

/// Attention whose keys and values stay in a ring.
struct AttentionLayer {
    heads: usize,
    window: usize,
    channels: usize,
    /// `[head][2 · window − 1]`: from `window − 1 − slot` on, the bias of each slot when the newest
    /// frame is in `slot`.
    biases: Vec<f32>,
    rings: Vec<Ring>,
    /// `[slot]`
    scores: Vec<f32>,
}

/// Keys and values of one stream.
struct Ring {
    /// Slot of the next frame. It follows from the number of frames alone, so that sums have the
    /// same order in any blocks.
    next: usize,
    /// `[channel][slot]`, so that the scores of all slots are computed together.
    keys: Vec<f32>,
    /// `[slot][channel]`
    values: Vec<f32>,
}

impl AttentionLayer {
    fn new(context: &LayerContext<'_>, op: &Attention) -> Self {
        let Attention { heads, window } = *op;
        let channels = context.channels();
        let position = context.weight("position").floats();
        let biases = position.chunks_exact(window).flat_map(|distances| {
            // The slot before the newest frame's is one frame old, the slot after it the oldest.
            (0..2 * window - 1).map(|index| distances[(2 * window - 1 - index) % window])
        });
        let values = window * channels;
        let ring = || Ring {
            next: 0,
            keys: vec![0.0; values],
            values: vec![0.0; values],
        };
        Self {
            heads,
            window,
            channels,
            biases: biases.collect(),
            rings: (0..context.streams).map(|_| ring()).collect(),
            scores: vec![0.0; window],
        }
    }
}

impl Layer for AttentionLayer {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let Self {
            heads,
            window,
            channels,
            biases,
            rings,
            scores,
        } = self;
        let (window, channels) = (*window, *channels);
        let width = channels / *heads;
        let scale = 1.0 / (width as f32).sqrt();
        let [queries, keys, values] = [0, 1, 2].map(|input| io.input(input));
        for (row, &stream) in io.streams.iter().enumerate() {
            let ring = &mut rings[stream];
            for frame in row * io.frames..(row + 1) * io.frames {
                let of_frame = frame * channels..(frame + 1) * channels;
                let slot = ring.next;
                ring.next = (slot + 1) % window;
                for (channel, key) in keys[of_frame.clone()].iter().enumerate() {
                    ring.keys[channel * window + slot] = *key;
                }
                ring.values[slot * channels..][..channels]
                    .copy_from_slice(&values[of_frame.clone()]);
                let heads_output = io.output[of_frame.clone()].chunks_exact_mut(width);
                let of_heads = queries[of_frame]
                    .chunks_exact(width)
                    .zip(heads_output)
                    .zip(biases.chunks(2 * window - 1));
                for (head, ((query, output), biases)) in of_heads.enumerate() {
                    scores.copy_from_slice(&biases[window - 1 - slot..][..window]);
                    let keys = ring.keys[head * width * window..].chunks_exact(window);
                    for (query, keys) in query.iter().zip(keys) {
                        kernels.multiply_add(scores, keys, scale * query);
                    }
                    kernels.softmax(scores);
                    output.fill(0.0);
                    for (share, values) in scores.iter().zip(ring.values.chunks_exact(channels)) {
                        kernels.multiply_add(output, &values[head * width..][..width], *share);
                    }
                }
            }
        }
    }

    fn reset(&mut self, stream: usize) {
        let Ring { next, keys, values } = &mut self.rings[stream];
        *next = 0;
        keys.fill(0.0);
        values.fill(0.0);
    }

    fn bytes(&self) -> usize {
        let of_streams: usize = self
            .rings
            .iter()
            .map(|ring| ring.keys.len() + ring.values.len())
            .sum();
        (of_streams + self.biases.len() + self.scores.len()) * size_of::<f32>()
    }
}
