//! Linear: an impulse response, newest tap first.

use super::Heard;
use crate::model::import::field::Field;
use crate::model::import::flat::Flat;
use crate::model::import::sketch::{Conv, ConvWeights, INPUT, Sketch};
use crate::model::{Fault, Op};

/// Longest response that is summed tap by tap; a longer one is cheaper by transforms.
const DIRECT: usize = 2048;

pub(super) fn add(config: &Field<'_>, weights: &mut Flat<'_>, sketch: &mut Sketch) -> Result<Heard, Fault> {
    let kernel = config.need("receptive_field")?.count()?;
    if let Some(field) = config.find("in_channels")
        && field.count()? != 1
    {
        return Err(field.fault("one channel is needed"));
    }
    let mut taps = weights.take("the impulse response", &[kernel])?.to_vec();
    let bias = match config.find("bias") {
        Some(field) if field.flag()? => weights.next("the bias")?,
        _ => 0.0,
    };
    let node = if kernel > DIRECT {
        let room = sketch.node("response", &[INPUT], Op::Convolve { taps: kernel })?;
        sketch.weight(&room, "impulse", &[kernel], taps);
        sketch.node("bias", &[&room], Op::Affine { scale: 1.0, offset: bias })?
    } else {
        taps.reverse();
        let conv = Conv { kernel, ..Conv::pointwise(1, 1) };
        sketch.conv("response", INPUT, ConvWeights { conv, weight: taps, bias: vec![bias] })?
    };
    Ok(Heard { node, channels: 1 })
}
