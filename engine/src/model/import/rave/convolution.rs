//! Convolutions as `cached_conv` exports them (acids-ircam/cached_conv; Caillon & Esling, arXiv:2204.07064), and batch norms, which
//! are folded into those before them.
//!
//! A streaming export puts the last frames it has heard before those it hears: as many as the padding on both sides has, so
//! that a centred filter is late by what it had on its right. Where a stride asks for it, the input is delayed to a whole
//! number of strides. Another export pads with zeros on both sides; it is given the same state here, and becomes as late.

use anyhow::ensure;
use ondes_engine::model::{Op, limits};

use super::archive::Array;
use super::module::Module;
use super::sketch::{Signal, Sketch};

/// A convolution's padding: frames on the left and right together, on the right alone, and by which the input is delayed.
struct Padding {
    both: usize,
    right: usize,
    delay: usize,
}

impl Sketch {
    /// A convolution, and the batch norm that follows it, if any.
    pub fn convolution(
        &mut self,
        module: &Module<'_>,
        input: &Signal,
        norm: Option<&Module<'_>>,
    ) -> anyhow::Result<Signal> {
        self.convolution_with(module, input, |tensors| norm.map_or(Ok(()), |norm| fold(norm, tensors)))
    }

    /// A convolution whose weight and bias are changed before they are taken.
    pub fn convolution_with(
        &mut self,
        module: &Module<'_>,
        input: &Signal,
        change: impl FnOnce(&mut [Array; 2]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Signal> {
        let weight = module.tensor("weight")?;
        let &[outputs, inputs, kernel] = &weight.shape[..] else {
            return Err(module.error(format_args!("its weight has the shape {:?}", weight.shape)));
        };
        let count = |name: &str| module.constant_count(name);
        let (stride, dilation, groups) = (count("stride")?, count("dilation")?, count("groups")?);
        let sound = outputs > 0 && kernel > 0 && stride > 0 && dilation > 0 && groups > 0;
        ensure!(sound, module.error("it has no outputs, taps, stride, dilation or groups"));
        ensure!(
            inputs.checked_mul(groups) == Some(input.channels),
            module.error(format_args!("it takes {inputs} channels in {groups} groups and is given {}", input.channels))
        );
        let ratio = input.ratio * stride;
        ensure!(ratio <= limits::BLOCK, module.error(format_args!("one frame of it lasts {ratio} samples")));
        let bias = module.maybe_tensor("bias")?.unwrap_or_else(|| Array::new(&[outputs], vec![0.0; outputs]));
        ensure!(bias.shape == [outputs], module.error(format_args!("its bias has the shape {:?}", bias.shape)));
        let mut tensors = [weight, bias];
        change(&mut tensors)?;
        let [weight, bias] = tensors;

        let reach = (kernel - 1) * dilation;
        let padding = self.padding(module, input, reach, stride)?;
        // In our convolution the newest frame of an output is the last of its stride; here it may be an earlier one.
        let behind = (stride - 1 + padding.both + padding.delay).checked_sub(reach);
        let behind = behind.ok_or_else(|| module.error("its padding is too short for a stream"))?;
        let path = module.path();
        let delayed = self.delayed(&format!("{path}.delay"), input, behind)?;
        let (weight, kernel) = reaching(weight, stride, dilation);
        self.node(path, &[&delayed], Op::Conv1d { outputs, kernel, stride, dilation, groups })?;
        self.weight(path, "weight", weight)?;
        self.weight(path, "bias", bias)?;
        if stride > 1 {
            self.strides.push(stride);
        }
        Ok(Signal {
            name: path.to_owned(),
            channels: outputs,
            ratio,
            late: input.late + (padding.right + padding.delay) * input.ratio,
        })
    }

    fn padding(&self, module: &Module<'_>, input: &Signal, reach: usize, stride: usize) -> anyhow::Result<Padding> {
        if module.class() == "Conv1d" {
            let (left, right) = module.maybe_pair("_pad").ok_or_else(|| module.error("it has no padding \"_pad\""))?;
            ensure!(left.max(right) <= reach, module.error("it is padded by more than it reaches"));
            let late = input.late / input.ratio;
            let delay = (stride - (right + late) % stride) % stride;
            return Ok(Padding { both: left + right, right, delay });
        }
        let both = module.child("cache")?.count("padding")?;
        let delay = module.child("downsampling_delay")?.count("padding")?;
        ensure!(both <= reach && delay < stride, module.error("it is padded by more than it reaches"));
        // Centred padding of an even filter has one more on the right; one that is not padded to its length is causal.
        let right = if self.causal || both < reach { 0 } else { reach.div_ceil(2) };
        Ok(Padding { both, right, delay })
    }

    /// A transposed convolution.
    pub fn transposed_convolution(&mut self, module: &Module<'_>, input: &Signal) -> anyhow::Result<Signal> {
        let weight = module.tensor("weight")?;
        let &[inputs, outputs, kernel] = &weight.shape[..] else {
            return Err(module.error(format_args!("its weight has the shape {:?}", weight.shape)));
        };
        let count = |name: &str| module.constant_count(name);
        let (stride, padding) = (count("stride")?, count("padding")?);
        for (name, usual) in [("dilation", 1), ("groups", 1), ("output_padding", 0)] {
            let found = count(name)?;
            ensure!(found == usual, module.error(format_args!("a {name} of {found} is not supported")));
        }
        ensure!(outputs > 0 && stride > 0, module.error("it has no outputs or no stride"));
        ensure!(
            kernel == stride + 2 * padding && kernel.is_multiple_of(stride) && input.ratio.is_multiple_of(stride),
            module.error(format_args!("{kernel} taps, a stride of {stride} and a padding of {padding} make no stream"))
        );
        ensure!(
            inputs == input.channels,
            module.error(format_args!("it takes {inputs} channels and is given {}", input.channels))
        );
        let bias = module.maybe_tensor("bias")?.unwrap_or_else(|| Array::new(&[outputs], vec![0.0; outputs]));
        let path = module.path();
        self.node(path, &[input], Op::ConvTranspose1d { outputs, kernel, stride })?;
        self.weight(path, "weight", weight)?;
        self.weight(path, "bias", bias)?;
        let ratio = input.ratio / stride;
        Ok(Signal { name: path.to_owned(), channels: outputs, ratio, late: input.late + padding * ratio })
    }
}

/// A filter that is shorter than its stride, with as many zeros before it as it lacks; gives its taps, too.
fn reaching(weight: Array, stride: usize, dilation: usize) -> (Array, usize) {
    let kernel = weight.shape[2];
    if (kernel - 1) * dilation + 1 >= stride || dilation > 1 {
        return (weight, kernel);
    }
    let rows = weight.data.chunks_exact(kernel);
    let data = rows.flat_map(|row| std::iter::repeat_n(0.0, stride - kernel).chain(row.iter().copied())).collect();
    (Array::new(&[weight.shape[0], weight.shape[1], stride], data), stride)
}

/// Folds a batch norm, which by now is a scale and an offset for each channel (Ioffe & Szegedy, ICML 2015).
fn fold(norm: &Module<'_>, [weight, bias]: &mut [Array; 2]) -> anyhow::Result<()> {
    let channels = bias.data.len();
    let mut values =
        [norm.tensor("weight")?, norm.tensor("bias")?, norm.tensor("running_mean")?, norm.tensor("running_var")?];
    ensure!(
        values.iter().all(|tensor| tensor.shape == [channels]),
        norm.error(format_args!("it is not one of {channels} channels"))
    );
    let epsilon = norm.constant("eps")?;
    let per_channel = weight.data.len() / channels;
    let [gain, offset, mean, variance] = values.each_mut().map(|tensor| std::mem::take(&mut tensor.data));
    for channel in 0..channels {
        let at = |values: &[f32]| f64::from(values[channel]);
        let scale = at(&gain) / (at(&variance) + epsilon).sqrt();
        let row = &mut weight.data[channel * per_channel..][..per_channel];
        row.iter_mut().for_each(|value| *value = (f64::from(*value) * scale) as f32);
        bias.data[channel] = ((at(&bias.data) - at(&mean)) * scale + at(&offset)) as f32;
    }
    Ok(())
}
