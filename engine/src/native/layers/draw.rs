//! Draws from distributions that a network computes.

use ondes_kernels::Kernels;

use super::noise::NoiseSequences;
use crate::dsp::noise::{fill_gumbel, fill_normal, stream_seed};
use crate::native::layer::{Io, Layer, LayerContext};

/// Stream of the noise that chooses, beside that of the values.
const CHOICE: u64 = 1;

/// Draw from a mixture of Gaussians.
pub(super) struct DrawMixture {
    sequences: NoiseSequences,
    /// Difference from the largest logit below which a component is not drawn.
    beyond: f32,
    /// `[component]`
    choice: Vec<f32>,
    /// `[channel]`
    values: Vec<f32>,
}

impl DrawMixture {
    pub fn new(context: &LayerContext<'_>, components: usize, least: f32, number: u32) -> Self {
        let channels = context.inputs[1].channels / components;
        let sequences = NoiseSequences::new(context.streams, number);
        Self {
            sequences,
            beyond: least.ln(),
            choice: vec![0.0; components],
            values: vec![0.0; channels],
        }
    }
}

impl Layer for DrawMixture {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let Self {
            sequences,
            beyond,
            choice,
            values,
        } = self;
        let (components, channels) = (choice.len(), values.len());
        let [logits, means, scales, temperatures] = [0, 1, 2, 3].map(|input| io.input(input));
        for (row, &stream) in io.streams.iter().enumerate() {
            let (seed, first) = sequences.take(stream, io.frames);
            for (frame, number) in (row * io.frames..(row + 1) * io.frames).zip(first..) {
                let temperature = temperatures[frame].max(0.0);
                fill_gumbel(
                    kernels,
                    stream_seed(seed, CHOICE),
                    number * components as u64,
                    choice,
                );
                let logits = &logits[frame * components..][..components];
                let least = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) + *beyond;
                leave_out(logits, least, choice);
                let chosen = choose(logits, temperature, choice);
                let of_chosen = (frame * components + chosen) * channels;
                fill_normal(kernels, seed, number * channels as u64, values);
                let gaussians = means[of_chosen..]
                    .iter()
                    .zip(&scales[of_chosen..])
                    .zip(&*values);
                let output = &mut io.output[frame * channels..][..channels];
                let deviation = temperature.sqrt();
                output
                    .iter_mut()
                    .zip(gaussians)
                    .for_each(|(output, ((mean, scale), value))| {
                        *output = mean + deviation * scale * value;
                    });
            }
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.sequences.seed(stream, seed);
    }
}

/// Draw of an index for each channel.
pub(super) struct DrawCategories {
    sequences: NoiseSequences,
    top: usize,
    /// `[category]`
    choice: Vec<f32>,
    sorted: Vec<f32>,
}

impl DrawCategories {
    pub fn new(context: &LayerContext<'_>, categories: usize, top: usize, number: u32) -> Self {
        let sequences = NoiseSequences::new(context.streams, number);
        Self {
            sequences,
            top,
            choice: vec![0.0; categories],
            sorted: vec![0.0; categories],
        }
    }
}

impl Layer for DrawCategories {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let Self {
            sequences,
            top,
            choice,
            sorted,
        } = self;
        let categories = choice.len();
        let channels = io.channels(0) / categories;
        let (logits, temperatures) = (io.input(0), io.input(1));
        for (row, &stream) in io.streams.iter().enumerate() {
            let (seed, first) = sequences.take(stream, io.frames);
            for (frame, number) in (row * io.frames..(row + 1) * io.frames).zip(first..) {
                for channel in 0..channels {
                    let logits = &logits[(frame * channels + channel) * categories..][..categories];
                    let position = (number * channels as u64 + channel as u64) * categories as u64;
                    fill_gumbel(kernels, stream_seed(seed, CHOICE), position, choice);
                    if *top < categories {
                        sorted.copy_from_slice(logits);
                        let (_, least, _) =
                            sorted.select_nth_unstable_by(*top - 1, |a, b| b.total_cmp(a));
                        leave_out(logits, *least, choice);
                    }
                    let chosen = choose(logits, temperatures[frame].max(0.0), choice);
                    io.output[frame * channels + channel] = chosen as f32;
                }
            }
        }
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        self.sequences.seed(stream, seed);
    }
}

/// Leaves out what has a logit below the least one.
fn leave_out(logits: &[f32], least: f32, noise: &mut [f32]) {
    let unlikely = noise
        .iter_mut()
        .zip(logits)
        .filter(|(_, logit)| **logit < least);
    unlikely.for_each(|(noise, _)| *noise = f32::NEG_INFINITY);
}

/// Returns the index of the largest logit plus `temperature` times its noise. With Gumbel noise it
/// is a draw from the categories; dividing the logits by the temperature instead would fail at 0.
fn choose(logits: &[f32], temperature: f32, noise: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (index, (logit, noise)) in logits.iter().zip(noise).enumerate() {
        // No number for a category that is left out, at temperature 0.
        let score = logit + temperature * noise;
        if score > best.1 {
            best = (index, score);
        }
    }
    best.0
}
