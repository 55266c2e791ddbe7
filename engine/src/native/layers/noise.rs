//! Noise as a value, and its filter.

use ondes_kernels::Kernels;

use crate::dsp::filtered_noise::NoiseFilter;
use crate::dsp::noise;
use crate::model::Distribution;
use crate::native::layer::{Io, Layer, LayerContext};

pub(super) struct Noise {
    channels: usize,
    distribution: Distribution,
    number: u64,
    /// `[stream]`
    sequences: Vec<NoiseSequence>,
}

/// Noise of one stream: the seed and the index of the next value.
struct NoiseSequence {
    seed: u64,
    position: u64,
}

impl Noise {
    pub fn new(context: &LayerContext<'_>, channels: usize, distribution: Distribution, number: u32) -> Self {
        let number = number.into();
        let sequence = |stream| {
            let seed = noise::stream_seed(noise::stream_seed(0, stream as u64), number);
            NoiseSequence { seed, position: 0 }
        };
        Self { channels, distribution, number, sequences: (0..context.streams).map(sequence).collect() }
    }
}

impl Layer for Noise {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let length = io.frames * self.channels;
        for (row, &stream) in io.output.chunks_exact_mut(length).zip(io.streams) {
            let NoiseSequence { seed, position } = &mut self.sequences[stream];
            match self.distribution {
                Distribution::Uniform => noise::fill(kernels, *seed, *position, row),
                Distribution::Normal => noise::fill_normal(kernels, *seed, *position, row),
            }
            *position += length as u64;
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.sequences[stream] = NoiseSequence { seed: noise::stream_seed(seed, self.number), position: 0 };
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
        Self { bands, hop, taps: vec![0.0; delays.len()], delays, matrix }
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
                *tap = row.iter().zip(magnitudes).map(|(weight, magnitude)| weight * magnitude).sum();
            }
            let (frame, channel) = (index / channels, index % channels);
            let output = &mut io.output[frame * hop * channels + channel..];
            for n in 0..hop {
                let reached = self.delays.iter().zip(&self.taps).take_while(|&(&delay, _)| delay <= n);
                output[n * channels] = reached.map(|(delay, tap)| tap * noise[n - delay]).sum();
            }
        }
    }
}
