//! Convolutions as `cached_conv` exports them (acids-ircam/cached_conv; Caillon & Esling,
//! arXiv:2204.07064), and batch norms, which are folded into the convolution before them.
//!
//! A streaming export prepends the last input frames, as many as left and right padding together,
//! so that a centred filter is late by its right padding; a stride may need a further delay to a
//! whole number of strides. An offline export pads with zeros on both sides; it is translated to
//! the same streaming form, with the same latency.

use super::archive::TensorData;
use super::builder::{CodecBuilder, Signal};
use super::module::Module;
use crate::model::{ModelError, Op, limits};
use crate::ops::{Conv1d, ConvTranspose1d};

/// Padding of a convolution, frames.
struct Padding {
    /// Left and right padding together.
    both: usize,
    right: usize,
    /// Delay of the input before the convolution.
    delay: usize,
}

impl CodecBuilder {
    /// Adds a convolution with the batch norm that follows it, if any.
    pub fn convolution(
        &mut self,
        module: &Module<'_>,
        input: &Signal,
        norm: Option<&Module<'_>>,
    ) -> Result<Signal, ModelError> {
        self.convolution_with(module, input, 1, |weight, bias| {
            norm.map_or(Ok(()), |norm| fold(norm, weight, bias))
        })
    }

    /// Adds a convolution after changing its weight and bias. It is applied to each of `copies`
    /// equal parts of the channels by itself.
    pub fn convolution_with(
        &mut self,
        module: &Module<'_>,
        input: &Signal,
        copies: usize,
        change: impl FnOnce(&mut TensorData, &mut TensorData) -> Result<(), ModelError>,
    ) -> Result<Signal, ModelError> {
        let mut weight = module.tensor("weight")?;
        let &[outputs, inputs, kernel] = &weight.shape[..] else {
            return Err(module.error(format_args!("its weight has the shape {:?}", weight.shape)));
        };
        let count = |name: &str| module.constant_count(name);
        let (stride, dilation, groups) = (count("stride")?, count("dilation")?, count("groups")?);
        let sizes = [outputs, kernel, stride, dilation, groups];
        module.ensure(
            !sizes.contains(&0),
            "it has no outputs, taps, stride, dilation or groups",
        )?;
        module.ensure(
            inputs
                .checked_mul(groups)
                .and_then(|all| all.checked_mul(copies))
                == Some(input.channels),
            format_args!(
                "it takes {inputs} channels in {groups} groups and is given {}",
                input.channels / copies
            ),
        )?;
        let ratio = input.ratio * stride;
        module.ensure(
            ratio <= limits::BLOCK,
            format_args!("one frame of it lasts {ratio} samples"),
        )?;
        let mut bias = bias(module, outputs)?;
        module.ensure(
            bias.shape == [outputs],
            format_args!("its bias has the shape {:?}", bias.shape),
        )?;
        change(&mut weight, &mut bias)?;
        let (outputs, groups) = (outputs * copies, groups * copies);
        let weight = TensorData::new(&[outputs, inputs, kernel], weight.values.repeat(copies));
        let bias = TensorData::new(&[outputs], bias.values.repeat(copies));

        let reach = (kernel - 1) * dilation;
        let padding = self.padding(module, input, reach, stride)?;
        // Our convolution's newest input frame is the last of its stride; here it may be an earlier
        // one.
        let delay = (stride - 1 + padding.both + padding.delay).checked_sub(reach);
        let delay = delay.ok_or_else(|| module.error("its padding is too short for a stream"))?;
        let path = module.path();
        let delayed = self.delayed(&format!("{path}.delay"), input, delay)?;
        let (weight, kernel) = extended_to_stride(weight, stride, dilation);
        self.node(
            path,
            &[&delayed],
            Op::Conv1d(
                Conv1d::new(outputs, kernel)
                    .strided(stride)
                    .dilated(dilation)
                    .grouped(groups),
            ),
        )?;
        self.weight(path, "weight", weight)?;
        self.weight(path, "bias", bias)?;
        if stride > 1 {
            self.strides.push(stride);
        }
        Ok(Signal {
            name: path.to_owned(),
            channels: outputs,
            ratio,
            latency: input.latency + (padding.right + padding.delay) * input.ratio,
        })
    }

    fn padding(
        &self,
        module: &Module<'_>,
        input: &Signal,
        reach: usize,
        stride: usize,
    ) -> Result<Padding, ModelError> {
        if module.class() == "Conv1d" {
            let (left, right) = module
                .maybe_pair("_pad")
                .ok_or_else(|| module.error("it has no padding \"_pad\""))?;
            module.ensure(
                left.max(right) <= reach,
                "its padding is longer than its filter",
            )?;
            let latency = input.latency / input.ratio;
            let delay = (stride - (right + latency) % stride) % stride;
            return Ok(Padding {
                both: left + right,
                right,
                delay,
            });
        }
        let both = module.child("cache")?.count("padding")?;
        let delay = module.child("downsampling_delay")?.count("padding")?;
        module.ensure(
            both <= reach && delay < stride,
            "its padding is longer than its filter",
        )?;
        // Centred padding of an even filter has one frame more on the right; padding shorter than
        // the filter is causal.
        let right = if self.causal || both < reach {
            0
        } else {
            reach.div_ceil(2)
        };
        Ok(Padding { both, right, delay })
    }

    /// Adds a transposed convolution.
    pub fn transposed_convolution(
        &mut self,
        module: &Module<'_>,
        input: &Signal,
    ) -> Result<Signal, ModelError> {
        let weight = module.tensor("weight")?;
        let &[inputs, outputs, kernel] = &weight.shape[..] else {
            return Err(module.error(format_args!("its weight has the shape {:?}", weight.shape)));
        };
        let count = |name: &str| module.constant_count(name);
        let (stride, padding) = (count("stride")?, count("padding")?);
        for (name, supported) in [("dilation", 1), ("groups", 1), ("output_padding", 0)] {
            let found = count(name)?;
            module.ensure(
                found == supported,
                format_args!("a {name} of {found} is not supported"),
            )?;
        }
        module.ensure(outputs > 0 && stride > 0, "it has no outputs or no stride")?;
        module.ensure(
            kernel == stride + 2 * padding
                && kernel.is_multiple_of(stride)
                && input.ratio.is_multiple_of(stride),
            format_args!(
                "{kernel} taps, a stride of {stride} and a padding of {padding} cannot be streamed"
            ),
        )?;
        module.ensure(
            inputs == input.channels,
            format_args!("it takes {inputs} channels and is given {}", input.channels),
        )?;
        let bias = bias(module, outputs)?;
        let path = module.path();
        self.node(
            path,
            &[input],
            Op::ConvTranspose1d(ConvTranspose1d {
                outputs,
                kernel,
                stride,
            }),
        )?;
        self.weight(path, "weight", weight)?;
        self.weight(path, "bias", bias)?;
        let ratio = input.ratio / stride;
        Ok(Signal {
            name: path.to_owned(),
            channels: outputs,
            ratio,
            latency: input.latency + padding * ratio,
        })
    }
}

/// Returns a convolution's bias; zeros if it has none.
fn bias(module: &Module<'_>, outputs: usize) -> Result<TensorData, ModelError> {
    Ok(module
        .maybe_tensor("bias")?
        .unwrap_or_else(|| TensorData::zeros(&[outputs])))
}

/// Extends a filter that is shorter than its stride with leading zeros; returns it and its number
/// of taps.
fn extended_to_stride(weight: TensorData, stride: usize, dilation: usize) -> (TensorData, usize) {
    let kernel = weight.shape[2];
    if (kernel - 1) * dilation + 1 >= stride || dilation > 1 {
        return (weight, kernel);
    }
    let rows = weight.values.chunks_exact(kernel);
    let values = rows
        .flat_map(|row| std::iter::repeat_n(0.0, stride - kernel).chain(row.iter().copied()))
        .collect();
    (
        TensorData::new(&[weight.shape[0], weight.shape[1], stride], values),
        stride,
    )
}

/// Folds a batch norm, which at inference is a scale and an offset per channel (Ioffe & Szegedy,
/// ICML 2015), into the convolution before it.
fn fold(
    norm: &Module<'_>,
    weight: &mut TensorData,
    bias: &mut TensorData,
) -> Result<(), ModelError> {
    let channels = bias.values.len();
    let [gain, offset, mean, variance] =
        ["weight", "bias", "running_mean", "running_var"].map(|name| {
            let tensor = norm.tensor(name)?;
            norm.ensure(
                tensor.shape == [channels],
                format_args!("its {name} has not {channels} channels"),
            )?;
            Ok::<_, ModelError>(tensor.values)
        });
    let (gain, offset, mean, variance) = (gain?, offset?, mean?, variance?);
    let epsilon = norm.constant("eps")?;
    let per_channel = weight.values.len() / channels;
    for channel in 0..channels {
        let at = |values: &[f32]| f64::from(values[channel]);
        let scale = at(&gain) / (at(&variance) + epsilon).sqrt();
        let row = &mut weight.values[channel * per_channel..][..per_channel];
        row.iter_mut()
            .for_each(|value| *value = (f64::from(*value) * scale) as f32);
        bias.values[channel] = ((at(&bias.values) - at(&mean)) * scale + at(&offset)) as f32;
    }
    Ok(())
}
