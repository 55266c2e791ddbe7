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
    streams: Vec<Stream>,
}

/// Where a stream's noise is.
struct Stream {
    seed: u64,
    position: u64,
}

impl Noise {
    pub fn new(context: &LayerContext<'_>, channels: usize, distribution: Distribution, number: u32) -> Self {
        let number = number.into();
        let stream = |stream| {
            let seed = noise::stream_seed(noise::stream_seed(0, stream as u64), number);
            Stream { seed, position: 0 }
        };
        Self { channels, distribution, number, streams: (0..context.streams).map(stream).collect() }
    }
}

impl Layer for Noise {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let length = io.frames * self.channels;
        for (row, &stream) in io.output.chunks_exact_mut(length).zip(io.streams) {
            let Stream { seed, position } = &mut self.streams[stream];
            match self.distribution {
                Distribution::Uniform => noise::fill(kernels, *seed, *position, row),
                Distribution::Normal => noise::fill_normal(kernels, *seed, *position, row),
            }
            *position += length as u64;
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.streams[stream] = Stream { seed: noise::stream_seed(seed, self.number), position: 0 };
    }
}

pub(super) struct ShapedNoise {
    bands: usize,
    hop: usize,
    /// `[tap][band]`: the half of the response that lies behind its middle, the middle included.
    response: Vec<f32>,
    /// `[tap]`
    taps: Vec<f32>,
}

impl ShapedNoise {
    pub fn new(bands: usize, hop: usize) -> Self {
        let response = NoiseFilter { bands, hop }.half_response();
        Self { bands, hop, taps: vec![0.0; response.len() / bands], response }
    }
}

impl Layer for ShapedNoise {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let (bands, hop) = (self.bands, self.hop);
        let channels = io.channels(0) / bands;
        let magnitudes = io.input(0).chunks_exact(bands);
        let sounds = magnitudes.zip(io.input(1).chunks_exact(hop));
        for (index, (magnitudes, noise)) in sounds.enumerate() {
            for (tap, row) in self.taps.iter_mut().zip(self.response.chunks_exact(bands)) {
                *tap = row.iter().zip(magnitudes).map(|(weight, magnitude)| weight * magnitude).sum();
            }
            let (frame, channel) = (index / channels, index % channels);
            let output = &mut io.output[frame * hop * channels + channel..];
            for n in 0..hop {
                let behind: f32 = self.taps.iter().zip(noise[..=n].iter().rev()).map(|(tap, x)| tap * x).sum();
                // What lies before the middle comes round at the end of the frame.
                let round = self.taps.iter().skip(hop - n).zip(noise);
                let before: f32 = round.map(|(tap, x)| tap * x).sum();
                output[n * channels] = behind + before;
            }
        }
    }
}
