//! The ops on libtorch, one file a family as in [`ondes_engine::ops`]. All values are
//! `[batch, channels, frames]`.

mod activation;
mod analysis;
pub(crate) mod attention;
mod codes;
pub(crate) mod convolution;
mod draw;
mod elementwise;
mod linear;
#[expect(unsafe_code, reason = "calls C++ and reads libtorch's memory")]
mod recurrence;
pub(crate) mod recurrent;
pub(crate) mod synthesis;
mod time;

use ondes_engine::model::Op;
use tch::{Kind, Tensor};

use crate::precision::in_f32;
use synthesis::NoiseRow;

/// Computes an op on whole sequences that start from silence. `hop` is the ratio of its first
/// input, `sample_rate` in Hz, and `rows` the noise of each row of the batch.
pub(crate) fn compute<'w>(
    op: &Op,
    inputs: &[&Tensor],
    hop: usize,
    sample_rate: f64,
    weight: &impl Fn(&str) -> &'w Tensor,
    rows: &[NoiseRow],
) -> Tensor {
    let x = inputs[0];
    match op {
        Op::Linear(_) => linear::linear(x, weight("weight"), weight("bias")),
        Op::Conv1d(op) => convolution::convolution(op, x, weight("weight"), weight("bias"), None),
        Op::ConvTranspose1d(op) => {
            convolution::conv_transpose(x, weight("weight"), weight("bias"), op.stride)
        }
        Op::Gru(_) | Op::Lstm(_) => recurrent::recurrent(op, x, weight, None).0,
        Op::Attention(op) => {
            let before = |x: &Tensor| x.constant_pad_nd([op.window as i64 - 1, 0]);
            let [keys, values] = [1, 2].map(|input| before(inputs[input]));
            attention::attention_in_blocks(x, &keys, &values, weight("position"))
        }
        Op::LayerNorm => elementwise::layer_norm(x, weight("weight"), weight("bias")),
        Op::Softmax => in_f32([x], |[x]| x.softmax(1, Kind::Float)),
        Op::Activation(activation) => activation::activate(*activation, x),
        Op::Prelu(_) => elementwise::prelu(x, weight("weight")),
        Op::Snake => elementwise::snake(x, weight("alpha")),
        Op::Gate => elementwise::gate(x),
        Op::Film => elementwise::film(x, inputs[1]),
        Op::Add => inputs[1..]
            .iter()
            .fold(x.shallow_clone(), |sum, other| sum + *other),
        Op::Multiply => x * inputs[1],
        Op::Concat => Tensor::cat(inputs, 1),
        Op::Split(op) => x.narrow(1, op.start as i64, op.channels as i64),
        Op::Affine(op) => x * f64::from(op.scale) + f64::from(op.offset),
        Op::Delay(op) => time::delay(x, op.frames),
        Op::Latency(_) => x.shallow_clone(),
        Op::Interleave(op) => time::interleave(x, op.factor),
        Op::FlipOddBands => time::flip_odd_bands(x),
        Op::Noise(op) => synthesis::noise(x, op.channels, op.distribution, op.number, rows),
        Op::DrawMixture(op) => in_f32([x, inputs[1], inputs[2], inputs[3]], |inputs| {
            draw::mixture(inputs, op.least, op.number, rows)
        }),
        Op::DrawCategories(op) => in_f32([x, inputs[1]], |inputs| {
            draw::categories(inputs, op.categories, op.top, op.number, rows)
        }),
        Op::ShapedNoise(op) => in_f32([x, inputs[1]], |[x, noise]| {
            synthesis::shaped_noise(&x, &noise, op.bands, op.hop)
        }),
        Op::NearestCodes(_) => in_f32([x, weight("codebook")], |[x, codebook]| {
            codes::nearest_codes(&x, &codebook)
        }),
        Op::CodeSum(_) => in_f32([x, weight("codebook")], |[x, codebook]| {
            codes::code_sum(&x, &codebook)
        }),
        Op::Harmonic => synthesis::harmonic(x, inputs[1], inputs[2], hop, sample_rate),
        Op::FilteredNoise => synthesis::filtered_noise(x, hop, rows),
        Op::Convolve(_) => in_f32([x, weight("impulse")], |[x, impulse]| {
            synthesis::convolve(&x, &impulse)
        }),
        Op::Pitch(op) => analysis::pitch(x, op.hop, sample_rate),
    }
}
