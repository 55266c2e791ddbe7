//! Noise as a value, and its filter.

use ondes_kernels::Kernels;

use crate::dsp::filtered_noise::NoiseFilter;
use crate::dsp::noise;
use crate::model::Distribution;
use crate::native::layer::{Io, Layer, LayerContext};

pub(super) struct Noise {
    channels: usize,
    distribution: Distribution,
    sequences: NoiseSequences,
}

impl Noise {
    pub fn new(
        context: &LayerContext<'_>,
        channels: usize,
        distribution: Distribution,
        number: u32,
    ) -> Self {
        Self {
            channels,
            distribution,
            sequences: NoiseSequences::new(context.streams, number),
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

impl Layer for Noise {
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

pub(super) struct ShapedNoise {
    bands: usize,
    hop: usize,
    /// Delays of the taps in samples, ascending.
    delays: Vec<usize>,
    /// `[tap][band]`
    matrix: Vec<f32>,
    /// `[tap]`
    taps: Vec<f32>,
}

impl ShapedNoise {
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

impl Layer for ShapedNoise {
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
