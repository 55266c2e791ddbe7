//! Recordings encoded and decoded by a codec, and its baseline.
//!
//! The baseline is noise in 16 bands with the recording's level in each band and frame of 256
//! samples: about as many numbers as a codec has latents, without learning.

use ondes_engine::model::Model;
use tch::{Kind, Tensor};

use super::filter_bank::FilterBank;
use crate::data::Features;
use crate::tasks::capture::measure::play_method;

/// Bands of the baseline.
const BANK: FilterBank = FilterBank { bands: 16 };
/// Frames of the bands that share a level.
const LEVEL_FRAMES: i64 = 16;

/// Encodes and decodes a recording; the result is aligned with it and has its length.
pub(crate) fn decoded(model: &Model, file: &Features) -> anyhow::Result<Vec<f32>> {
    let latency: usize = [model.method("encode")?, model.method("decode")?]
        .map(|method| method.latency_samples())
        .iter()
        .sum();
    let silence = std::iter::repeat_n(0.0, latency);
    let sound: Vec<f32> = file.audio().iter().copied().chain(silence).collect();
    Ok(play_method(model, "forward", &[], &sound)?.split_off(latency))
}

/// Returns noise with the levels of a sound in 16 bands.
pub(crate) fn band_noise(sound: &[f32]) -> anyhow::Result<Vec<f32>> {
    let bands = BANK.bands as i64;
    let step = bands * LEVEL_FRAMES;
    let padded = (sound.len() + BANK.delay()) as i64;
    let padded = (padded + step - 1) / step * step;
    let input = Tensor::from_slice(sound)
        .constant_pad_nd([0, padded - sound.len() as i64])
        .view([1, 1, -1]);
    let weight = |values: Vec<f32>, shape: [i64; 3]| Tensor::from_slice(&values).view(shape);
    let analysis = weight(BANK.analysis(), [bands, 1, BANK.taps() as i64]);
    let synthesis = weight(
        BANK.synthesis(),
        [bands, bands, BANK.synthesis_frames() as i64],
    );
    let before = |sound: &Tensor, frames: i64| sound.constant_pad_nd([frames, 0]);
    let split =
        before(&input, BANK.delay() as i64).conv1d(&analysis, None::<Tensor>, [bands], [0], [1], 1);
    let levels = split
        .square()
        .avg_pool1d([LEVEL_FRAMES], [LEVEL_FRAMES], [0], false, true)
        .sqrt();
    let levels = levels.repeat_interleave_self_int(LEVEL_FRAMES, 2, None);
    let noise = seeded_noise(levels.numel()).view_as(&levels);
    let joined = before(&(levels * noise), BANK.synthesis_frames() as i64 - 1);
    let samples = joined.conv1d(&synthesis, None::<Tensor>, [1], [0], [1], 1);
    let sound_again = samples.transpose(1, 2).contiguous().view(-1);
    let aligned = sound_again.narrow(0, BANK.delay() as i64, sound.len() as i64);
    Ok(Vec::<f32>::try_from(aligned.to_kind(Kind::Float))?)
}

/// Returns white noise of variance 1, the same in each run.
fn seeded_noise(count: usize) -> Tensor {
    let mut noise = vec![0.0; count];
    ondes_engine::dsp::noise::fill(ondes_engine::Kernels::detect(), 1, 0, &mut noise);
    // Uniform in [−1, 1).
    Tensor::from_slice(&noise) * 3.0_f64.sqrt()
}
