//! ConvNet: two-tap convolutions, each followed by an activation, then a mix of all channels.

use super::OutputNode;
use super::activation::NamActivation;
use crate::model::ModelError;
use crate::model::import::field::Field;
use crate::model::import::graph_builder::{Conv, GraphBuilder, INPUT};
use crate::model::import::weight_reader::WeightReader;

pub(super) fn add(
    config: &Field<'_>,
    weights: &mut WeightReader<'_>,
    builder: &mut GraphBuilder,
) -> Result<OutputNode, ModelError> {
    let count =
        |name: &str, usual: usize| config.find(name).map_or(Ok(usual), |field| field.count());
    let outputs = config.need("channels")?.count()?;
    let groups = count("groups", 1)?;
    let norm = config
        .find("batchnorm")
        .map_or(Ok(false), |field| field.flag())?;
    let activation = NamActivation::read(&config.need("activation")?)?;
    let mut inputs = count("in_channels", 1)?;
    let mut value = INPUT.to_owned();
    for (layer, dilation) in config.need("dilations")?.items()?.iter().enumerate() {
        let conv = Conv {
            inputs,
            outputs,
            kernel: 2,
            dilation: dilation.count()?,
            groups,
            bias: !norm,
            slice: None,
        };
        let mut conv = weights.conv(&format!("block {layer}"), conv)?;
        if norm {
            let what = format!("the norm of block {layer}");
            let mut row = || weights.take(&what, &[outputs]).map(<[f32]>::to_vec);
            let [mean, variance, gain, offset] = [row()?, row()?, row()?, row()?];
            let epsilon = f64::from(weights.next(&what)?);
            // A batch norm is a scale and an offset per channel, which are folded into the
            // convolution.
            for (channel, taps) in conv
                .weight
                .chunks_exact_mut(inputs / groups * 2)
                .enumerate()
            {
                let scale =
                    f64::from(gain[channel]) / (f64::from(variance[channel]) + epsilon).sqrt();
                taps.iter_mut()
                    .for_each(|tap| *tap = (f64::from(*tap) * scale) as f32);
                conv.bias[channel] =
                    (f64::from(offset[channel]) - f64::from(mean[channel]) * scale) as f32;
            }
        }
        let before = builder.push_prefix(&format!("block{layer}"));
        value = builder.conv("conv", &value, conv)?;
        value = activation.add(builder, "act", &value)?;
        builder.restore_prefix(before);
        inputs = outputs;
    }
    let output_channels = count("out_channels", 1)?;
    let head = weights.conv("the head", Conv::pointwise(inputs, output_channels))?;
    Ok(OutputNode {
        node: builder.conv("head", &value, head)?,
        channels: output_channels,
    })
}
