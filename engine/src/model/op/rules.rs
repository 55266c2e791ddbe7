//! Shapes, weights, latencies and costs of ops.
//!
//! Each match lists all ops, so that a new op does not compile until each of these is decided.

use std::ops::RangeInclusive;

use super::WeightAxis::{Fixed, GatedOutputs, Inputs, Outputs};
use super::{Activation, Op, WeightAxis, WeightSpec};
use crate::model::{Shape, limits};

/// Matches ops without weights that compute each frame from the same frame of their inputs.
macro_rules! framewise_without_weights {
    () => {
        Op::Activation(_)
            | Op::Gate
            | Op::Film
            | Op::Add
            | Op::Multiply
            | Op::Concat
            | Op::Split { .. }
            | Op::Affine { .. }
            | Op::Interleave { .. }
            | Op::FlipOddBands
            | Op::Noise { .. }
            | Op::Softmax
            | Op::DrawMixture { .. }
            | Op::DrawCategories { .. }
    };
}

/// Returns the reason as an error unless the condition holds.
fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(reason()) }
}

fn require_positive(parameters: &[usize]) -> Result<(), String> {
    require(!parameters.contains(&0), || {
        "has a parameter of 0; all must be at least 1".to_owned()
    })
}

fn check_activation(activation: Activation) -> Result<(), String> {
    require(activation.has_finite_parameters(), || {
        format!("has a parameter that is not finite: {activation:?}")
    })?;
    if let Activation::LeakyHardTanh { min, max, .. } = activation {
        require(min <= max, || {
            format!("has a min of {min} above its max of {max}")
        })?;
    }
    Ok(())
}

fn conv1d_shape(
    input: Shape,
    outputs: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    groups: usize,
) -> Result<Shape, String> {
    require_positive(&[outputs, kernel, stride, dilation, groups])?;
    require(
        input.channels.is_multiple_of(groups) && outputs.is_multiple_of(groups),
        || {
            format!(
                "has {groups} groups, which must divide {} inputs and {outputs} outputs",
                input.channels
            )
        },
    )?;
    let frames = (kernel - 1)
        .checked_mul(dilation)
        .and_then(|reach| reach.checked_add(1));
    let frames = frames.ok_or("has too large a kernel and dilation")?;
    require(frames >= stride, || {
        format!("has a stride of {stride}, which is longer than its {frames} frames of input")
    })?;
    let ratio = input
        .ratio
        .checked_mul(stride)
        .ok_or("has too large a ratio")?;
    Ok(Shape {
        channels: outputs,
        ratio,
    })
}

fn conv_transpose1d_shape(
    input: Shape,
    outputs: usize,
    kernel: usize,
    stride: usize,
) -> Result<Shape, String> {
    require_positive(&[outputs, kernel, stride])?;
    let ratio = input.ratio;
    require(
        kernel.is_multiple_of(stride) && ratio.is_multiple_of(stride),
        || {
            format!(
                "has a stride of {stride}, which must divide its kernel of {kernel} and a ratio of {ratio}"
            )
        },
    )?;
    Ok(Shape {
        channels: outputs,
        ratio: ratio / stride,
    })
}

fn require_codes(codes: usize) -> Result<(), String> {
    require((1..=limits::CODES).contains(&codes), || {
        format!(
            "has {codes} entries in a codebook; allowed: 1 to {}",
            limits::CODES
        )
    })
}

fn require_temperature(input: Shape) -> Result<(), String> {
    require(input.channels == 1, || {
        format!(
            "has a temperature of {} channels; 1 is needed",
            input.channels
        )
    })
}

/// `inputs` are logits, means, scales and temperature.
fn mixture_shape(inputs: &[Shape], components: usize) -> Result<Shape, String> {
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
    Ok(Shape {
        channels: means / components,
        ratio: inputs[0].ratio,
    })
}

/// `noise` is the number of channels of the second input.
fn shaped_noise_shape(
    magnitudes: Shape,
    noise: usize,
    bands: usize,
    hop: usize,
) -> Result<Shape, String> {
    let Shape { channels, ratio } = magnitudes;
    require(
        hop > 0 && (2..=limits::NOISE_BANDS).contains(&bands),
        || {
            format!(
                "has {bands} bands in {hop} frames; allowed: 2 to {} bands in 1 frame or more",
                limits::NOISE_BANDS
            )
        },
    )?;
    require(channels.is_multiple_of(bands), || {
        format!("has {channels} magnitudes, which is no multiple of {bands} bands")
    })?;
    let filtered = channels / bands;
    require(filtered.checked_mul(hop) == Some(noise), || {
        format!("has {noise} channels of noise; {filtered} times {hop} are needed")
    })?;
    require(ratio.is_multiple_of(hop), || {
        format!("has a hop of {hop}, which must divide a ratio of {ratio}")
    })?;
    Ok(Shape {
        channels: filtered,
        ratio: ratio / hop,
    })
}

impl Op {
    /// Returns the numbers of inputs that the op accepts.
    fn arity(&self) -> RangeInclusive<usize> {
        match self {
            Self::Film
            | Self::Multiply
            | Self::ShapedNoise { .. }
            | Self::DrawCategories { .. } => 2..=2,
            Self::Attention { .. } | Self::Harmonic => 3..=3,
            Self::DrawMixture { .. } => 4..=4,
            Self::Add => 2..=64,
            Self::Concat => 1..=64,
            Self::Linear { .. }
            | Self::Conv1d { .. }
            | Self::ConvTranspose1d { .. }
            | Self::Gru { .. }
            | Self::Lstm { .. }
            | Self::LayerNorm
            | Self::Softmax
            | Self::Prelu { .. }
            | Self::Snake
            | Self::Gate
            | Self::Split { .. }
            | Self::Delay { .. }
            | Self::Latency { .. }
            | Self::Interleave { .. }
            | Self::FlipOddBands
            | Self::Noise { .. }
            | Self::NearestCodes { .. }
            | Self::CodeSum { .. }
            | Self::Affine { .. }
            | Self::FilteredNoise
            | Self::Convolve { .. }
            | Self::Activation(_) => 1..=1,
        }
    }

    /// Returns the shape of the output, or the reason why the inputs do not fit. `block` is in
    /// samples.
    pub(in crate::model) fn infer(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let arity = self.arity();
        require(arity.contains(&inputs.len()), || {
            format!(
                "has {} inputs; allowed: {} to {}",
                inputs.len(),
                arity.start(),
                arity.end()
            )
        })?;
        let Shape { channels, ratio } = inputs[0];
        let second = inputs.get(1).map_or(0, |input| input.channels);
        if let Some(other) = inputs.iter().find(|input| input.ratio != ratio) {
            return Err(format!(
                "has inputs of different ratios, {ratio} and {}",
                other.ratio
            ));
        }
        let with_channels = |channels: usize| Shape { channels, ratio };
        match *self {
            Self::LayerNorm
            | Self::Softmax
            | Self::Snake
            | Self::Delay { .. }
            | Self::Latency { .. } => {}
            Self::Linear { outputs }
            | Self::Gru {
                hidden: outputs, ..
            }
            | Self::Lstm {
                hidden: outputs, ..
            } => {
                require_positive(&[outputs])?;
                return Ok(with_channels(outputs));
            }
            Self::Conv1d {
                outputs,
                kernel,
                stride,
                dilation,
                groups,
            } => {
                return conv1d_shape(inputs[0], outputs, kernel, stride, dilation, groups);
            }
            Self::ConvTranspose1d {
                outputs,
                kernel,
                stride,
            } => {
                return conv_transpose1d_shape(inputs[0], outputs, kernel, stride);
            }
            Self::Prelu { slopes } => require([1, channels].contains(&slopes), || {
                format!("has {slopes} slopes; allowed: 1 or one per channel, {channels}")
            })?,
            Self::Activation(activation) => check_activation(activation)?,
            Self::Affine { scale, offset } => {
                require(scale.is_finite() && offset.is_finite(), || {
                    format!("has a parameter that is not finite: scale {scale}, offset {offset}")
                })?
            }
            Self::Attention { heads, window } => {
                require_positive(&[heads, window])?;
                require(channels.is_multiple_of(heads), || {
                    format!("has {heads} heads, which must divide {channels} channels")
                })?;
                require(
                    inputs.iter().all(|input| input.channels == channels),
                    || {
                        let [key, value] = [1, 2].map(|index| inputs[index].channels);
                        format!(
                            "has queries of {channels}, keys of {key} and values of {value} channels; equal ones are needed"
                        )
                    },
                )?;
            }
            Self::Gate => {
                require(channels.is_multiple_of(2), || {
                    format!("has an odd number of channels, {channels}")
                })?;
                return Ok(with_channels(channels / 2));
            }
            Self::Add => {
                if let Some(other) = inputs.iter().find(|input| input.channels != channels) {
                    return Err(format!(
                        "has inputs of different channel counts, {channels} and {}",
                        other.channels
                    ));
                }
            }
            Self::Multiply => require([1, channels].contains(&second), || {
                format!("has a factor of {second} channels; allowed: 1 or {channels}")
            })?,
            Self::Film => require(channels.checked_mul(2) == Some(second), || {
                format!("has a condition of {second} channels; twice {channels} are needed")
            })?,
            Self::Concat => {
                let sum = inputs
                    .iter()
                    .try_fold(0_usize, |sum, input| sum.checked_add(input.channels));
                return Ok(with_channels(sum.ok_or("has too many channels")?));
            }
            Self::Split {
                start,
                channels: count,
            } => {
                let fits = start.checked_add(count).is_some_and(|end| end <= channels);
                require(count > 0 && fits, || {
                    format!("takes {count} channels from {start} on; its input has {channels}")
                })?;
                return Ok(with_channels(count));
            }
            Self::Interleave { factor } => {
                require(
                    factor > 0 && channels.is_multiple_of(factor) && ratio.is_multiple_of(factor),
                    || {
                        format!(
                            "has a factor of {factor}, which must divide {channels} channels and a ratio of {ratio}"
                        )
                    },
                )?;
                return Ok(Shape {
                    channels: channels / factor,
                    ratio: ratio / factor,
                });
            }
            Self::FlipOddBands => require((block / ratio).is_multiple_of(2), || {
                format!(
                    "has {} frames per block; an even number is needed",
                    block / ratio
                )
            })?,
            Self::Noise { channels, .. } => {
                require_positive(&[channels])?;
                return Ok(with_channels(channels));
            }
            Self::ShapedNoise { bands, hop } => {
                return shaped_noise_shape(inputs[0], second, bands, hop);
            }
            Self::NearestCodes { codebooks, codes } => {
                require_codes(codes)?;
                require_positive(&[codebooks])?;
                return Ok(with_channels(codebooks));
            }
            Self::CodeSum { codes, channels } => {
                require_codes(codes)?;
                require_positive(&[channels])?;
                return Ok(with_channels(channels));
            }
            Self::DrawMixture {
                components, least, ..
            } => {
                require((0.0..=1.0).contains(&least), || {
                    format!("has a least share of {least}; allowed: 0 to 1")
                })?;
                return mixture_shape(inputs, components);
            }
            Self::DrawCategories {
                categories, top, ..
            } => {
                require((1..=categories).contains(&top), || {
                    format!(
                        "draws among {top} of {categories} categories; allowed: 1 to {categories}"
                    )
                })?;
                require(channels.is_multiple_of(categories), || {
                    format!(
                        "has {channels} logits, which is no multiple of {categories} categories"
                    )
                })?;
                require_temperature(inputs[1])?;
                return Ok(with_channels(channels / categories));
            }
            Self::Harmonic => {
                require(channels == 1 && second == 1 && ratio > 1, || {
                    format!(
                        "has a pitch of {channels} and an amplitude of {second} channels; 1 at control rate is needed"
                    )
                })?;
                return Ok(Shape {
                    channels: 1,
                    ratio: 1,
                });
            }
            Self::FilteredNoise => {
                require(channels >= 2 && ratio > 1, || {
                    format!(
                        "has {channels} bands at a ratio of {ratio}; at least 2 at control rate are needed"
                    )
                })?;
                return Ok(Shape {
                    channels: 1,
                    ratio: 1,
                });
            }
            Self::Convolve { taps } => {
                require_positive(&[taps])?;
                require(channels == 1 && ratio == 1, || {
                    format!(
                        "has {channels} channels at a ratio of {ratio}; one channel of audio is needed"
                    )
                })?;
                require(block > 1, || {
                    "needs a method whose block is longer than one sample".to_owned()
                })?;
            }
        }
        Ok(inputs[0])
    }

    /// Returns the weights that the op needs, given the shapes of its inputs.
    #[must_use]
    pub fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let channels = inputs.first().map_or(0, |input| input.channels);
        let spec = |name, axes: &'static [WeightAxis], shape: &[usize]| WeightSpec {
            name,
            shape: shape.to_vec(),
            axes,
        };
        let recurrent = |gates: usize, hidden: usize, states: &[&'static str]| {
            let gates = gates.saturating_mul(hidden);
            let mut specs = vec![
                spec("weight_ih", &[GatedOutputs, Inputs], &[gates, channels]),
                spec("weight_hh", &[GatedOutputs, Outputs], &[gates, hidden]),
                spec("bias_ih", &[GatedOutputs], &[gates]),
                spec("bias_hh", &[GatedOutputs], &[gates]),
            ];
            specs.extend(
                states
                    .iter()
                    .map(|state| spec(state, &[Outputs], &[hidden])),
            );
            specs
        };
        let bias = |outputs| spec("bias", &[Outputs], &[outputs]);
        match *self {
            Self::Linear { outputs } => vec![
                spec("weight", &[Outputs, Inputs], &[outputs, channels]),
                bias(outputs),
            ],
            Self::Conv1d {
                outputs,
                kernel,
                groups,
                ..
            } => {
                let axes: &[_] = if groups == 1 {
                    &[Outputs, Inputs, Fixed]
                } else {
                    &[Outputs, Fixed, Fixed]
                };
                vec![
                    spec("weight", axes, &[outputs, channels / groups, kernel]),
                    bias(outputs),
                ]
            }
            Self::ConvTranspose1d {
                outputs, kernel, ..
            } => {
                vec![
                    spec(
                        "weight",
                        &[Inputs, Outputs, Fixed],
                        &[channels, outputs, kernel],
                    ),
                    bias(outputs),
                ]
            }
            Self::Gru {
                hidden,
                initial_state,
            } => recurrent(3, hidden, if initial_state { &["h0"] } else { &[] }),
            Self::Lstm {
                hidden,
                initial_state,
            } => recurrent(4, hidden, if initial_state { &["h0", "c0"] } else { &[] }),
            Self::Prelu { slopes: 1 } => vec![spec("weight", &[Fixed], &[1])],
            Self::Prelu { slopes } => vec![spec("weight", &[Outputs], &[slopes])],
            Self::Attention { heads, window } => {
                vec![spec("position", &[Fixed, Fixed], &[heads, window])]
            }
            Self::LayerNorm => vec![spec("weight", &[Outputs], &[channels]), bias(channels)],
            Self::Snake => vec![spec("alpha", &[Outputs], &[channels])],
            Self::NearestCodes { codebooks, codes } => {
                vec![spec(
                    "codebook",
                    &[Outputs, Fixed, Inputs],
                    &[codebooks, codes, channels],
                )]
            }
            Self::CodeSum {
                codes,
                channels: outputs,
            } => {
                vec![spec(
                    "codebook",
                    &[Inputs, Fixed, Outputs],
                    &[channels, codes, outputs],
                )]
            }
            Self::Convolve { taps } => vec![spec("impulse", &[Fixed], &[taps])],
            framewise_without_weights!()
            | Self::Delay { .. }
            | Self::Latency { .. }
            | Self::ShapedNoise { .. }
            | Self::Harmonic
            | Self::FilteredNoise => Vec::new(),
        }
    }

    /// Returns the latency in samples.
    #[must_use]
    pub fn latency_samples(&self, inputs: &[Shape]) -> usize {
        match *self {
            Self::Harmonic | Self::FilteredNoise => inputs[0].ratio,
            Self::Latency { samples } => samples,
            framewise_without_weights!()
            | Self::Linear { .. }
            | Self::Conv1d { .. }
            | Self::ConvTranspose1d { .. }
            | Self::Gru { .. }
            | Self::Lstm { .. }
            | Self::Attention { .. }
            | Self::LayerNorm
            | Self::Prelu { .. }
            | Self::Snake
            | Self::Delay { .. }
            | Self::ShapedNoise { .. }
            | Self::NearestCodes { .. }
            | Self::CodeSum { .. }
            | Self::Convolve { .. } => 0,
        }
    }

    /// Returns the tail in samples: how long an input frame is audible after its own frame.
    /// Recurrent layers, which never quite forget, count as half a second.
    #[must_use]
    pub fn tail_samples(&self, inputs: &[Shape], sample_rate: u32) -> usize {
        let ratio = inputs[0].ratio;
        match *self {
            Self::Conv1d {
                kernel, dilation, ..
            } => (kernel - 1) * dilation * ratio,
            Self::ConvTranspose1d { kernel, stride, .. } => (kernel / stride - 1) * ratio,
            Self::Gru { .. } | Self::Lstm { .. } => sample_rate as usize / 2,
            Self::Convolve { taps } => taps - 1,
            Self::Attention { window, .. } => (window - 1) * ratio,
            Self::Delay { frames } => frames * ratio,
            Self::Harmonic | Self::FilteredNoise => ratio,
            framewise_without_weights!()
            | Self::Linear { .. }
            | Self::LayerNorm
            | Self::Prelu { .. }
            | Self::Snake
            | Self::Latency { .. }
            | Self::ShapedNoise { .. }
            | Self::NearestCodes { .. }
            | Self::CodeSum { .. } => 0,
        }
    }

    /// Returns the frames of its first input that an executor holds for the op, besides the block.
    pub(in crate::model) fn held_frames(&self) -> usize {
        match *self {
            Self::Conv1d {
                kernel, dilation, ..
            } => (kernel - 1).saturating_mul(dilation).saturating_mul(2),
            Self::ConvTranspose1d { kernel, stride, .. } => 2 * (kernel / stride),
            Self::Delay { frames } => frames.saturating_mul(2),
            Self::Attention { window, .. } => window.saturating_mul(2),
            // The spectra of the response and of past input, each of twice the length.
            Self::Convolve { taps } => taps.saturating_mul(4),
            framewise_without_weights!()
            | Self::Linear { .. }
            | Self::Gru { .. }
            | Self::Lstm { .. }
            | Self::LayerNorm
            | Self::Prelu { .. }
            | Self::Snake
            | Self::Latency { .. }
            | Self::ShapedNoise { .. }
            | Self::NearestCodes { .. }
            | Self::CodeSum { .. }
            | Self::Harmonic
            | Self::FilteredNoise => 1,
        }
    }

    /// Returns the multiply-adds per sample of audio, counting those proportional to weights,
    /// harmonics or taps.
    #[must_use]
    pub fn multiply_adds_per_sample(&self, inputs: &[Shape], output: Shape) -> f64 {
        let values: usize = match *self {
            Self::Conv1d { .. } | Self::Linear { .. } | Self::Gru { .. } | Self::Lstm { .. } => {
                self.weights(inputs)
                    .iter()
                    .filter(|spec| spec.shape.len() > 1)
                    .map(|spec| spec.shape.iter().product::<usize>())
                    .sum()
            }
            // Each input frame is multiplied by every weight once; its cost is spread over its
            // output frames.
            Self::ConvTranspose1d {
                outputs,
                kernel,
                stride,
            } => inputs[0].channels * outputs * kernel / stride,
            Self::NearestCodes { codebooks, codes } => codebooks * codes * inputs[0].channels,
            Self::CodeSum { channels, .. } => inputs[0].channels * channels,
            // With all keys, and with all values.
            Self::Attention { window, .. } => 2 * window * output.channels,
            Self::Harmonic => 6 * inputs[2].channels,
            Self::ShapedNoise { bands, .. } => 2 * bands * output.channels,
            // A forward and an inverse Fourier transform, by the usual count of 2.5 n log2 n for
            // real input.
            Self::FilteredNoise | Self::Convolve { .. } => 64,
            framewise_without_weights!()
            | Self::LayerNorm
            | Self::Prelu { .. }
            | Self::Snake
            | Self::Delay { .. }
            | Self::Latency { .. } => output.channels,
        };
        values as f64 / output.ratio as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Distribution;

    fn shape(channels: usize, ratio: usize) -> Shape {
        Shape { channels, ratio }
    }

    #[test]
    fn ops_that_move_frames_check_their_shapes() {
        let interleave = |factor, channels, ratio| {
            Op::Interleave { factor }.infer(&[shape(channels, ratio)], 64)
        };
        assert_eq!(interleave(4, 12, 8), Ok(shape(3, 2)));
        assert!(
            interleave(0, 12, 8).is_err()
                && interleave(5, 12, 10).is_err()
                && interleave(4, 12, 6).is_err()
        );
        let flip = |ratio| Op::FlipOddBands.infer(&[shape(3, ratio)], 64);
        assert_eq!(flip(32), Ok(shape(3, 32)));
        assert!(flip(64).is_err(), "one frame in a block");
        let delay = Op::Delay { frames: 5 };
        assert_eq!(delay.infer(&[shape(3, 8)], 64), Ok(shape(3, 8)));
        assert_eq!(
            (
                delay.latency_samples(&[shape(3, 8)]),
                delay.tail_samples(&[shape(3, 8)], 48_000)
            ),
            (0, 40)
        );
        assert_eq!(
            Op::Latency { samples: 9 }.latency_samples(&[shape(3, 8)]),
            9
        );
    }

    #[test]
    fn noise_checks_its_shapes() {
        let noise = |channels| Op::Noise {
            channels,
            distribution: Distribution::Normal,
            number: 1,
        };
        assert_eq!(noise(3).infer(&[shape(1, 8)], 64), Ok(shape(3, 8)));
        assert!(noise(0).infer(&[shape(1, 8)], 64).is_err());
        let shaped = |bands, hop, magnitudes, noise| {
            Op::ShapedNoise { bands, hop }.infer(&[shape(magnitudes, 64), shape(noise, 64)], 64)
        };
        assert_eq!(shaped(5, 16, 10, 32), Ok(shape(2, 4)));
        for (bands, hop, magnitudes, noise) in [
            (1, 16, 10, 32),
            (5000, 16, 5000, 16),
            (5, 16, 11, 32),
            (5, 16, 10, 31),
            (5, 48, 10, 96),
            (5, 0, 10, 0),
        ] {
            assert!(
                shaped(bands, hop, magnitudes, noise).is_err(),
                "{bands} bands, {hop} frames"
            );
        }
    }

    #[test]
    fn draws_check_their_shapes() {
        let mixture_above = |least, components, logits, means, scales, temperature| {
            let inputs = [logits, means, scales, temperature].map(|channels| shape(channels, 8));
            Op::DrawMixture {
                components,
                least,
                number: 0,
            }
            .infer(&inputs, 64)
        };
        let mixture = |components, logits, means, scales, temperature| {
            mixture_above(0.1, components, logits, means, scales, temperature)
        };
        for least in [-0.1, 1.1, f32::NAN] {
            assert!(
                mixture_above(least, 3, 3, 15, 15, 1).is_err(),
                "least {least}"
            );
        }
        assert_eq!(mixture(3, 3, 15, 15, 1), Ok(shape(5, 8)));
        for (components, logits, means, scales, temperature) in [
            (0, 0, 0, 0, 1),
            (0, 3, 15, 15, 1),
            (3, 4, 15, 15, 1),
            (3, 3, 16, 16, 1),
            (3, 3, 15, 18, 1),
            (3, 3, 15, 15, 2),
        ] {
            let found = mixture(components, logits, means, scales, temperature);
            assert!(
                found.is_err(),
                "{components} components, {logits} logits, {means} means"
            );
        }
        let categories = |categories, top, logits, temperature| {
            Op::DrawCategories {
                categories,
                top,
                number: 0,
            }
            .infer(&[shape(logits, 8), shape(temperature, 8)], 64)
        };
        assert_eq!(categories(4, 2, 12, 1), Ok(shape(3, 8)));
        for (count, top, logits, temperature) in [
            (0, 0, 12, 1),
            (4, 0, 12, 1),
            (4, 5, 12, 1),
            (5, 2, 12, 1),
            (4, 2, 12, 3),
        ] {
            assert!(
                categories(count, top, logits, temperature).is_err(),
                "{top} of {count} categories, {logits} logits"
            );
        }
    }

    #[test]
    fn attention_checks_its_shapes() {
        let infer = |heads, window, channels: [usize; 3]| {
            Op::Attention { heads, window }.infer(&channels.map(|channels| shape(channels, 8)), 64)
        };
        assert_eq!(infer(3, 5, [12, 12, 12]), Ok(shape(12, 8)));
        let op = Op::Attention {
            heads: 3,
            window: 5,
        };
        assert_eq!(op.weights(&[shape(12, 8)])[0].shape, [3, 5]);
        assert_eq!(op.tail_samples(&[shape(12, 8)], 48_000), 32);
        for (heads, window, channels) in [
            (0, 5, [12; 3]),
            (3, 0, [12; 3]),
            (5, 5, [12; 3]),
            (3, 5, [12, 9, 12]),
            (3, 5, [12, 12, 15]),
        ] {
            assert!(
                infer(heads, window, channels).is_err(),
                "{heads} heads, {window} frames, {channels:?}"
            );
        }
    }

    #[test]
    fn codes_check_their_shapes() {
        let nearest = |codebooks, codes| Op::NearestCodes { codebooks, codes };
        assert_eq!(nearest(4, 32).infer(&[shape(6, 8)], 64), Ok(shape(4, 8)));
        assert_eq!(nearest(4, 32).weights(&[shape(6, 8)])[0].shape, [4, 32, 6]);
        let sum = |codes, channels| Op::CodeSum { codes, channels };
        assert_eq!(sum(32, 6).infer(&[shape(4, 8)], 64), Ok(shape(6, 8)));
        assert_eq!(sum(32, 6).weights(&[shape(4, 8)])[0].shape, [4, 32, 6]);
        for op in [
            nearest(0, 32),
            nearest(4, 0),
            nearest(4, limits::CODES + 1),
            sum(0, 6),
            sum(32, 0),
        ] {
            assert!(op.infer(&[shape(6, 8)], 64).is_err(), "{op:?}");
        }
    }

    #[test]
    fn activations_keep_their_tags_in_files() {
        let node = |json: &str| serde_json::from_str::<crate::model::Node>(json);
        let json = r#"{"name":"y","inputs":["x"],"op":"leaky_relu","slope":0.01}"#;
        let leaky = node(json).expect("a valid node");
        assert_eq!(
            leaky.op,
            Op::Activation(Activation::LeakyRelu { slope: 0.01 })
        );
        assert_eq!(
            serde_json::to_string(&leaky).expect("a node is serialisable"),
            json
        );
        for &tag in Activation::TAGS {
            let json = format!(
                r#"{{"name":"y","inputs":["x"],"op":"{tag}","slope":0,"min":-1,"max":1,"min_slope":0,"max_slope":0}}"#
            );
            assert!(
                matches!(node(&json).expect("a valid node").op, Op::Activation(_)),
                "{tag}"
            );
        }
        let missing =
            node(r#"{"name":"y","inputs":["x"],"op":"leaky_relu"}"#).expect_err("no slope");
        assert!(
            missing.to_string().contains("missing field `slope`"),
            "{missing}"
        );
        let unknown = node(r#"{"name":"y","inputs":["x"],"op":"relu6"}"#).expect_err("no such op");
        assert!(unknown.to_string().contains("relu6"), "{unknown}");
        let flip = node(r#"{"name":"y","inputs":["x"],"op":"unmirror"}"#).expect("a valid node");
        assert_eq!(flip.op, Op::FlipOddBands);
    }
}
