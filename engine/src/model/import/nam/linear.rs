//! Linear: an impulse response.

use super::OutputNode;
use crate::model::import::field::Field;
use crate::model::import::graph_builder::{Conv, ConvWeights, GraphBuilder, INPUT};
use crate::model::import::weight_reader::WeightReader;
use crate::model::{ModelError, Op};
use crate::ops::{Affine, Convolve};

/// Longest response that is convolved directly; longer ones are convolved by FFT.
const MAX_DIRECT_TAPS: usize = 2048;

pub(super) fn add(
    config: &Field<'_>,
    weights: &mut WeightReader<'_>,
    builder: &mut GraphBuilder,
) -> Result<OutputNode, ModelError> {
    let kernel = config.need("receptive_field")?.count()?;
    if let Some(field) = config.find("in_channels")
        && field.count()? != 1
    {
        return Err(field.error("only one channel is supported"));
    }
    let mut taps = weights.take("the impulse response", &[kernel])?.to_vec();
    let bias = match config.find("bias") {
        Some(field) if field.flag()? => weights.next("the bias")?,
        _ => 0.0,
    };
    let node = if kernel > MAX_DIRECT_TAPS {
        let room = builder.node(
            "response",
            &[INPUT],
            Op::Convolve(Convolve { taps: kernel }),
        )?;
        builder.weight(&room, "impulse", &[kernel], taps);
        builder.node(
            "bias",
            &[&room],
            Op::Affine(Affine {
                scale: 1.0,
                offset: bias,
            }),
        )?
    } else {
        taps.reverse();
        let conv = Conv {
            kernel,
            ..Conv::pointwise(1, 1)
        };
        builder.conv(
            "response",
            INPUT,
            ConvWeights {
                conv,
                weight: taps,
                bias: vec![bias],
            },
        )?
    };
    Ok(OutputNode { node, channels: 1 })
}
