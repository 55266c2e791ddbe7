//! Initial weights of a prior.

use std::f32::consts::PI;

use ondes_engine::model::{Method, Op, Tensor};
use ondes_engine::ops::{Attention, Gru};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::conditions::Spread;
use super::inspect::components;
use super::names::*;

/// Cycles per bar of the positional encoding.
pub(super) const CYCLES_PER_BAR: [f32; 10] = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Input of a softplus whose output is about 1.
const UNIT_SCALE: f32 = 0.46;

/// Draws initial weights: matrices are uniform within `1 / √inputs`, as in PyTorch; the Gaussians
/// have deviation 1 and random means.
pub(super) fn initial_weights(
    prior: &Method,
    latents: &[Spread],
    seed: u64,
) -> anyhow::Result<Vec<(String, Tensor)>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let shapes = prior.infer()?;
    let mut weights = Vec::new();
    for (node, inputs) in prior.nodes.iter().zip(shapes.node_inputs()) {
        for spec in node.op.weights(&inputs) {
            let count = latents.len();
            let fan_in = match node.op {
                Op::Gru(Gru { hidden, .. }) => hidden,
                _ => inputs[0].channels,
            };
            let bound = 1.0 / (fan_in as f32).sqrt();
            let mut values: Vec<f32> = (0..spec.shape.iter().product())
                .map(|_| random.random_range(-bound..bound))
                .collect();
            match (&node.op, spec.name) {
                (Op::LayerNorm, "weight") => values.fill(1.0),
                (Op::LayerNorm, _) => values.fill(0.0),
                (&Op::Attention(Attention { heads, window }), _) => {
                    values = alibi_biases(heads, window)
                }
                _ => {}
            }
            match (node.name.as_str(), spec.name) {
                (OUTPUT_LATENTS, "weight") => {
                    let diagonal = |index: usize| index / count == index % count;
                    let deviation = |index: usize| {
                        if diagonal(index) {
                            latents[index % count].deviation
                        } else {
                            0.0
                        }
                    };
                    values = (0..count * count).map(deviation).collect();
                }
                (STANDARDIZED_INPUT, "weight") => {
                    // `[frame][latent][heard latent][heard frame]`
                    values.fill(0.0);
                    let group = spec.shape[2];
                    for (output, taps) in values.chunks_exact_mut(count * group).enumerate() {
                        let (frame, latent) = (output / count, output % count);
                        taps[latent * group + frame] = 1.0 / latents[latent].deviation;
                    }
                }
                (STANDARDIZED_INPUT, _) => {
                    let bias = latents
                        .iter()
                        .map(|spread| -spread.mean / spread.deviation)
                        .cycle();
                    values
                        .iter_mut()
                        .zip(bias)
                        .for_each(|(value, bias)| *value = bias);
                }
                (BAR_ANGLES, "weight") => values = angles().map(|(turn, _)| turn).collect(),
                (BAR_ANGLES, _) => values = angles().map(|(_, start)| start).collect(),
                (BAR_SNAKE, _) => values.fill(1.0),
                (OUTPUT_LATENTS, _) => values = latents.iter().map(|spread| spread.mean).collect(),
                (HEADS, "bias") => {
                    let gaussians = (values.len() - components(prior)?) / 2;
                    let end = values.len();
                    values[..end - 2 * gaussians].fill(0.0);
                    values[end - 2 * gaussians..end - gaussians]
                        .fill_with(|| random.random_range(-1.0..1.0));
                    values[end - gaussians..].fill(UNIT_SCALE);
                }
                _ => {}
            }
            weights.push((
                format!("{}.{}", node.name, spec.name),
                Tensor::new(&spec.shape, values),
            ));
        }
    }
    Ok(weights)
}

/// Returns initial biases of attention, `[head][distance]`, which fall linearly with the distance
/// (ALiBi: Press et al., arXiv:2108.12409).
fn alibi_biases(heads: usize, window: usize) -> Vec<f32> {
    let of_head = |head: usize| {
        let slope = (-8.0 * (head + 1) as f32 / heads as f32).exp2();
        (0..window).map(move |distance| -slope * distance as f32)
    };
    (0..heads).flat_map(of_head).collect()
}

/// Returns frequency, radians per bar, and phase of the squared sines that encode the position in
/// the bar: two for each number of cycles, in quadrature.
fn angles() -> impl Iterator<Item = (f32, f32)> {
    let pair = |cycles: f32| [0.0, 0.25].map(|start| (PI * cycles, -PI * start));
    CYCLES_PER_BAR.into_iter().flat_map(pair)
}
