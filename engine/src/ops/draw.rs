//! Draws from distributions that a network computes.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::noise::NoiseSequences;
use super::operation::{ChannelLinks, Operation, require};
use crate::dsp::noise::{fill_gumbel, fill_normal, stream_seed};
use crate::model::Shape;
use crate::model::export::node_line::NodeLine;
use crate::native::layer::{Io, Layer, LayerContext};

/// Draws from a mixture of Gaussians with diagonal covariances. Inputs: `logits [K]` of the
/// components, `means [K · C]` and standard deviations `scales [K · C]`, all channels of a
/// component, then those of the next, and `temperature [1]`. Output `[C]`; seeded per stream.
///
/// The temperature T, 0 or above, divides the logits and multiplies the variances: 1 draws from the
/// mixture, 0 takes the mean of the likeliest component (Ha & Eck, ICLR 2018).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawMixture {
    /// Components, K.
    pub components: usize,
    /// Share of the likeliest component's probability, 0 to 1, below which one is never drawn
    /// (min-p sampling, Nguyen et al., arXiv:2407.01082); 0 draws from all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least: f32,
    /// Selects the noise, as of [`Noise`](super::Noise).
    pub number: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &f32) -> bool {
    *number == 0.0
}

impl Operation for DrawMixture {
    fn arity(&self) -> RangeInclusive<usize> {
        4..=4
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self {
            components, least, ..
        } = *self;
        require((0.0..=1.0).contains(&least), || {
            format!("has a least share of {least}; allowed: 0 to 1")
        })?;
        let [logits, means, scales] = [0, 1, 2].map(|index| inputs[index].channels);
        require(components > 0 && logits == components, || {
            format!(
                "has {logits} logits for {components} components; one for each of at least 1 is needed"
            )
        })?;
        require(means.is_multiple_of(components) && means == scales, || {
            format!(
                "has {means} means and {scales} scales; equal multiples of {components} components are needed"
            )
        })?;
        require_temperature(inputs[3])?;
        Ok(inputs[0].with_channels(means / components))
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
        Box::new(DrawMixtureLayer::new(context, self))
    }

    fn torchscript(&self, _line: &mut NodeLine<'_, '_>) -> String {
        unreachable!("methods that draw are refused")
    }
}

/// Draws an index for each of C channels from categories. Inputs: `logits [C · K]`, all categories
/// of a channel, then those of the next, and `temperature [1]`, 0 or above, which divides the
/// logits. Output `[C]`; seeded per stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawCategories {
    /// Categories, K.
    pub categories: usize,
    /// Draws among so many of the likeliest categories only.
    pub top: usize,
    /// Selects the noise, as of [`Noise`](super::Noise).
    pub number: u32,
}

impl Operation for DrawCategories {
    fn arity(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self {
            categories, top, ..
        } = *self;
        let channels = inputs[0].channels;
        require((1..=categories).contains(&top), || {
            format!("draws among {top} of {categories} categories; allowed: 1 to {categories}")
        })?;
        require(channels.is_multiple_of(categories), || {
            format!("has {channels} logits, which is no multiple of {categories} categories")
        })?;
        require_temperature(inputs[1])?;
        Ok(inputs[0].with_channels(channels / categories))
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
        Box::new(DrawCategoriesLayer::new(context, self))
    }

    fn torchscript(&self, _line: &mut NodeLine<'_, '_>) -> String {
        unreachable!("methods that draw are refused")
    }
}

fn require_temperature(input: Shape) -> Result<(), String> {
    require(input.channels == 1, || {
        format!(
            "has a temperature of {} channels; 1 is needed",
            input.channels
        )
    })
}

/// Stream of the noise that chooses, beside that of the values.
const CHOICE: u64 = 1;

struct DrawMixtureLayer {
    sequences: NoiseSequences,
    /// Difference from the largest logit below which a component is not drawn.
    beyond: f32,
    /// `[component]`
    choice: Vec<f32>,
    /// `[channel]`
    values: Vec<f32>,
}

impl DrawMixtureLayer {
    fn new(context: &LayerContext<'_>, op: &DrawMixture) -> Self {
        let components = op.components;
        let channels = context.inputs[1].channels / components;
        let sequences = NoiseSequences::new(context.streams, op.number);
        Self {
            sequences,
            beyond: op.least.ln(),
            choice: vec![0.0; components],
            values: vec![0.0; channels],
        }
    }
}

impl Layer for DrawMixtureLayer {
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

struct DrawCategoriesLayer {
    sequences: NoiseSequences,
    top: usize,
    /// `[category]`
    choice: Vec<f32>,
    sorted: Vec<f32>,
}

impl DrawCategoriesLayer {
    fn new(context: &LayerContext<'_>, op: &DrawCategories) -> Self {
        Self {
            sequences: NoiseSequences::new(context.streams, op.number),
            top: op.top,
            choice: vec![0.0; op.categories],
            sorted: vec![0.0; op.categories],
        }
    }
}

impl Layer for DrawCategoriesLayer {
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
