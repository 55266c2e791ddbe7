//! Noise as a value, and its filter.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::{ChannelLinks, Operation, require, require_positive};
use crate::dsp::filtered_noise::NoiseFilter;
use crate::dsp::noise;
use crate::model::export::node_line::{Function, NodeLine};
use crate::model::{Shape, limits};
use crate::native::layer::{Io, Layer, LayerContext};

/// White noise at the rate of the input, whose values are ignored; seeded per stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Channels of the output.
    pub channels: usize,
    /// Distribution of the values.
    pub distribution: Distribution,
    /// Selects the noise: nodes of different numbers are independent.
    pub number: u32,
}

/// Distribution of the values of [`Noise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Uniform in [−1, 1).
    Uniform,
    /// Normal, with mean 0 and variance 1.
    Normal,
}

impl Operation for Noise {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require_positive(&[self.channels])?;
        Ok(inputs[0].with_channels(self.channels))
    }

    fn earlier_frames(&self) -> Option<usize> {
        None
    }

    fn can_warm_up(&self) -> bool {
        false
    }

    /// The noise belongs to its channels.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(NoiseLayer::new(context, self))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let (x, channels) = (line.x(), self.channels);
        let empty =
            format!("torch.new_empty({x}, [torch.size({x}, 0), {channels}, torch.size({x}, 2)])");
        match self.distribution {
            Distribution::Uniform => format!("torch.uniform_({empty}, -1., 1.)"),
            Distribution::Normal => format!("torch.normal_({empty})"),
        }
    }
}

/// Noise through a filter that changes each frame, without tails into the next one. Inputs:
/// `magnitudes [C · bands]`, per channel from 0 Hz to half the rate of the output, and
/// `noise [C · hop]`, per channel the `hop` frames to be filtered. Output: `[C]`, `hop` frames per
/// input frame. The impulse response is the inverse Fourier transform of the magnitudes under a
/// Hann window, cut to `hop` frames if it is longer; its first half wraps to the end of the frame
/// (RAVE's `NoiseGenerator`; Caillon & Esling, arXiv:2111.05011).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapedNoise {
    /// Magnitudes per channel.
    pub bands: usize,
    /// Frames of output per frame of input.
    pub hop: usize,
}

impl Operation for ShapedNoise {
    fn arity(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self { bands, hop } = *self;
        let (Shape { channels, ratio }, noise) = (inputs[0], inputs[1].channels);
        require(
            hop > 0 && (2..=limits::NOISE_BANDS).contains(&bands),
            || {
                format!(
                    "has {bands} bands in {hop} frames; allowed: 2 to {} bands in 1 frame or more",
                    limits::NOISE_BANDS
                )
            },
        )?;
        require(channels.is_multiple_of(bands), || {
            format!("has {channels} magnitudes, which is no multiple of {bands} bands")
        })?;
        let filtered = channels / bands;
        require(filtered.checked_mul(hop) == Some(noise), || {
            format!("has {noise} channels of noise; {filtered} times {hop} are needed")
        })?;
        require(ratio.is_multiple_of(hop), || {
            format!("has a hop of {hop}, which must divide a ratio of {ratio}")
        })?;
        Ok(Shape {
            channels: filtered,
            ratio: ratio / hop,
        })
    }

    fn multiply_adds(&self, _inputs: &[Shape], output: Shape) -> usize {
        2 * self.bands * output.channels
    }

    fn earlier_frames(&self) -> Option<usize> {
        None
    }

    /// The number of a magnitude is its frequency.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(ShapedNoiseLayer::new(self.bands, self.hop))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let Self { bands, hop } = *self;
        // As a dense matrix `[delay][band]`.
        let (delays, taps) = NoiseFilter { bands, hop }.taps_in_frame();
        let mut matrix = vec![0.0; hop * bands];
        for (delay, row) in delays.into_iter().zip(taps.chunks_exact(bands)) {
            matrix[delay * bands..][..bands].copy_from_slice(row);
        }
        let taps = line.tensor("taps", || (vec![hop, bands], matrix));
        let [magnitudes, noise] = [line.x(), line.values[1]];
        line.call(SHAPED_NOISE, &[magnitudes, noise, &taps])
    }
}

/// [`ShapedNoise`]. `taps` is `[delay][band]`.
pub(super) const SHAPED_NOISE: Function = Function {
    signature: "shaped_noise(magnitudes: Tensor, noise: Tensor, taps: Tensor) -> Tensor",
    body: "\
hop = torch.size(taps, 0)
batch = torch.size(noise, 0)
frames = torch.size(noise, 2)
bands = torch.reshape(torch.transpose(magnitudes, 1, 2), [batch, frames, -1, torch.size(taps, 1)])
white = torch.reshape(torch.transpose(noise, 1, 2), [batch, frames, -1, hop])
response = torch.fft_rfft(torch.matmul(bands, torch.t(taps)), 2 * hop)
sound = torch.slice(torch.fft_irfft(response * torch.fft_rfft(white, 2 * hop), 2 * hop), 3, 0, hop)
return torch.reshape(torch.permute(sound, [0, 2, 1, 3]), [batch, -1, frames * hop])",
};

struct NoiseLayer {
    channels: usize,
    distribution: Distribution,
    sequences: NoiseSequences,
}

impl NoiseLayer {
    fn new(context: &LayerContext<'_>, op: &Noise) -> Self {
        Self {
            channels: op.channels,
            distribution: op.distribution,
            sequences: NoiseSequences::new(context.streams, op.number),
        }
    }
}

/// Noise of a node for all streams.
pub(super) struct NoiseSequences {
    number: u64,
    /// `[stream]`: seed, and number of frames that were taken.
    streams: Vec<(u64, u64)>,
}

impl NoiseSequences {
    pub fn new(streams: usize, number: u32) -> Self {
        let number = number.into();
        let stream = |stream| {
            (
                noise::stream_seed(noise::stream_seed(0, stream as u64), number),
                0,
            )
        };
        Self {
            number,
            streams: (0..streams).map(stream).collect(),
        }
    }

    /// Takes the next frames of a stream; returns their seed and the index of the first.
    pub fn take(&mut self, stream: usize, frames: usize) -> (u64, u64) {
        let (seed, taken) = &mut self.streams[stream];
        let first = *taken;
        *taken += frames as u64;
        (*seed, first)
    }

    pub fn seed(&mut self, stream: usize, seed: u64) {
        self.streams[stream] = (noise::stream_seed(seed, self.number), 0);
    }
}

impl Layer for NoiseLayer {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let length = io.frames * self.channels;
        for (row, &stream) in io.output.chunks_exact_mut(length).zip(io.streams) {
            let (seed, first) = self.sequences.take(stream, io.frames);
            let position = first * self.channels as u64;
            match self.distribution {
                Distribution::Uniform => noise::fill(kernels, seed, position, row),
                Distribution::Normal => noise::fill_normal(kernels, seed, position, row),
            }
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.sequences.seed(stream, seed);
    }
}

struct ShapedNoiseLayer {
    bands: usize,
    hop: usize,
    /// Delays of the taps in samples, ascending.
    delays: Vec<usize>,
    /// `[tap][band]`
    matrix: Vec<f32>,
    /// `[tap]`
    taps: Vec<f32>,
}

impl ShapedNoiseLayer {
    pub fn new(bands: usize, hop: usize) -> Self {
        let (delays, matrix) = NoiseFilter { bands, hop }.taps_in_frame();
        Self {
            bands,
            hop,
            taps: vec![0.0; delays.len()],
            delays,
            matrix,
        }
    }
}

impl Layer for ShapedNoiseLayer {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let (bands, hop) = (self.bands, self.hop);
        let channels = io.channels(0) / bands;
        let magnitudes = io.input(0).chunks_exact(bands);
        let frames = magnitudes.zip(io.input(1).chunks_exact(hop));
        for (index, (magnitudes, noise)) in frames.enumerate() {
            for (tap, row) in self.taps.iter_mut().zip(self.matrix.chunks_exact(bands)) {
                *tap = row
                    .iter()
                    .zip(magnitudes)
                    .map(|(weight, magnitude)| weight * magnitude)
                    .sum();
            }
            let (frame, channel) = (index / channels, index % channels);
            let output = &mut io.output[frame * hop * channels + channel..];
            for n in 0..hop {
                let reached = self
                    .delays
                    .iter()
                    .zip(&self.taps)
                    .take_while(|&(&delay, _)| delay <= n);
                output[n * channels] = reached.map(|(delay, tap)| tap * noise[n - delay]).sum();
            }
        }
    }
}
