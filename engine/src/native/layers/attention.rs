//! Attention over the last frames, whose keys and values stay in a ring.

use ondes_kernels::Kernels;

use crate::native::layer::{Io, Layer, LayerContext};

pub(super) struct Attention {
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

impl Attention {
    pub fn new(context: &LayerContext<'_>, heads: usize, window: usize) -> Self {
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

impl Layer for Attention {
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
