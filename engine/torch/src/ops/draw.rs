//! Draws from distributions, with the native executor's noise.

use ondes_engine::dsp::noise::{fill_gumbel, fill_normal, stream_seed};
use tch::Tensor;

use super::synthesis::{NoiseRow, node_noise};

/// Stream of the noise that chooses, as in the native executor.
const CHOICE: u64 = 1;

/// Returns the noise `[B, channels, F]` that is added to logits.
fn choice(logits: &Tensor, number: u32, rows: &[NoiseRow]) -> Tensor {
    let size = (logits.size()[1], logits.size()[2]);
    let noise = node_noise(rows, number, size, |kernels, seed, position, out| {
        fill_gumbel(kernels, stream_seed(seed, CHOICE), position, out);
    });
    noise.to_device(logits.device())
}

/// Computes [`ondes_engine::model::Op::DrawMixture`] from `logits [B, K, F]`, `means` and
/// `scales [B, K · C, F]` and `temperature [B, 1, F]`; returns `[B, C, F]`.
pub(crate) fn mixture(inputs: [Tensor; 4], least: f32, number: u32, rows: &[NoiseRow]) -> Tensor {
    let [logits, means, scales, temperature] = inputs;
    let (batch, components, frames) = logits.size3().expect("[batch, components, frames]");
    let channels = means.size()[1] / components;
    let temperature = temperature.clamp_min(0.0);
    let unlikely =
        logits.lt_tensor(&(logits.amax([1_i64].as_slice(), true) + f64::from(least.ln())));
    let scores = &logits + &temperature * choice(&logits, number, rows);
    let chosen = scores
        .masked_fill(&unlikely, f64::NEG_INFINITY)
        .argmax(1, true);
    let chosen = chosen
        .unsqueeze(1)
        .expand([batch, 1, channels, frames], false);
    let of_chosen = |x: Tensor| {
        x.reshape([batch, components, channels, frames])
            .gather(1, &chosen, false)
            .squeeze_dim(1)
    };
    let normal =
        node_noise(rows, number, (channels, frames), fill_normal).to_device(logits.device());
    of_chosen(means) + temperature.sqrt() * of_chosen(scales) * normal
}

/// Computes [`ondes_engine::model::Op::DrawCategories`] from `logits [B, C · K, F]` and
/// `temperature [B, 1, F]`; returns `[B, C, F]`.
pub(crate) fn categories(
    [logits, temperature]: [Tensor; 2],
    categories: usize,
    top: usize,
    number: u32,
    rows: &[NoiseRow],
) -> Tensor {
    let (batch, all, frames) = logits.size3().expect("[batch, logits, frames]");
    let categories = categories as i64;
    let apart = |x: Tensor| x.reshape([batch, all / categories, categories, frames]);
    let scores = apart(&logits + temperature.clamp_min(0.0) * choice(&logits, number, rows));
    let logits = apart(logits);
    let least = logits
        .topk(top as i64, 2, true, true)
        .0
        .narrow(2, top as i64 - 1, 1);
    let drawn = scores
        .masked_fill(&logits.lt_tensor(&least), f64::NEG_INFINITY)
        .argmax(2, false);
    drawn.to_kind(tch::Kind::Float)
}
