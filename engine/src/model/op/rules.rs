//! What fits an op, and what it takes.

use super::{Activation, Op, WeightSpec};
use crate::model::Shape;

impl Op {
    /// The shape of the output, or why the inputs do not fit.
    pub(in crate::model) fn infer(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let arity = match self {
            Self::Film | Self::Multiply | Self::ShapedNoise { .. } => 2..=2,
            Self::Harmonic => 3..=3,
            Self::Add => 2..=64,
            Self::Concat => 1..=64,
            _ => 1..=1,
        };
        if !arity.contains(&inputs.len()) {
            return Err(format!("has {} inputs, {} to {} are needed", inputs.len(), arity.start(), arity.end()));
        }
        if inputs.iter().any(|input| input.ratio != inputs[0].ratio) {
            return Err("its inputs have different ratios".into());
        }
        let Shape { channels, ratio } = inputs[0];
        let require = |condition: bool, reason: &str| if condition { Ok(()) } else { Err(reason.to_owned()) };
        let shaped = |channels: usize| Shape { channels, ratio };
        match *self {
            Self::Linear { outputs } | Self::Gru { hidden: outputs, .. } | Self::Lstm { hidden: outputs, .. } => {
                require(outputs > 0, "has no outputs")?;
                Ok(shaped(outputs))
            }
            Self::Conv1d { outputs, kernel, stride, dilation, groups } => {
                require(outputs > 0 && kernel > 0 && stride > 0 && dilation > 0 && groups > 0, "has a zero")?;
                require(
                    channels.is_multiple_of(groups) && outputs.is_multiple_of(groups),
                    "its channels do not divide into its groups",
                )?;
                let reach = (kernel - 1).checked_mul(dilation).ok_or("kernel and dilation are too large")?;
                require(reach + 1 >= stride, "its stride is longer than its reach")?;
                let ratio = ratio.checked_mul(stride).ok_or("its ratio is too large")?;
                Ok(Shape { channels: outputs, ratio })
            }
            Self::ConvTranspose1d { outputs, kernel, stride } => {
                require(outputs > 0 && kernel > 0 && stride > 0, "has a zero")?;
                require(kernel.is_multiple_of(stride), "its kernel is not a multiple of its stride")?;
                require(ratio.is_multiple_of(stride), "its stride does not divide its input's ratio")?;
                Ok(Shape { channels: outputs, ratio: ratio / stride })
            }
            Self::LayerNorm
            | Self::Snake
            | Self::Delay { .. }
            | Self::Latency { .. } => Ok(shaped(channels)),
            Self::Prelu { slopes } => {
                require([1, channels].contains(&slopes), "has neither one slope nor one for each channel")?;
                Ok(shaped(channels))
            }
            Self::Activation(activation) => {
                require(activation.has_finite_parameters(), "its parameters are not finite")?;
                if let Activation::LeakyHardTanh { min, max, .. } = activation {
                    require(min <= max, "its min is above its max")?;
                }
                Ok(shaped(channels))
            }
            Self::Affine { scale, offset } => {
                require(scale.is_finite() && offset.is_finite(), "its numbers are not finite")?;
                Ok(shaped(channels))
            }
            Self::Gate => {
                require(channels.is_multiple_of(2), "has an odd number of channels")?;
                Ok(shaped(channels / 2))
            }
            Self::Film => {
                require(
                    channels.checked_mul(2) == Some(inputs[1].channels),
                    "its condition has not twice the channels",
                )?;
                Ok(shaped(channels))
            }
            Self::Add => {
                require(inputs.iter().all(|input| input.channels == channels), "its inputs differ in channels")?;
                Ok(shaped(channels))
            }
            Self::Multiply => {
                require([1, channels].contains(&inputs[1].channels), "its factor has neither one nor all channels")?;
                Ok(shaped(channels))
            }
            Self::Concat => {
                let sum = inputs.iter().try_fold(0_usize, |sum, input| sum.checked_add(input.channels));
                Ok(shaped(sum.ok_or("has too many channels")?))
            }
            Self::Split { start, channels: count } => {
                let end = start.checked_add(count).ok_or("its range is too large")?;
                require(count > 0 && end <= channels, "takes channels that its input has not")?;
                Ok(shaped(count))
            }
            Self::Interleave { factor } => {
                require(factor > 0, "has a zero")?;
                require(channels.is_multiple_of(factor), "its factor does not divide its channels")?;
                require(ratio.is_multiple_of(factor), "its factor does not divide its input's ratio")?;
                Ok(Shape { channels: channels / factor, ratio: ratio / factor })
            }
            Self::FlipOddBands => {
                require((block / ratio).is_multiple_of(2), "its block is an odd number of frames")?;
                Ok(shaped(channels))
            }
            Self::Noise { channels, .. } => {
                require(channels > 0, "has no channels")?;
                Ok(shaped(channels))
            }
            Self::ShapedNoise { bands, hop } => {
                require(bands >= 2, "needs two bands or more")?;
                require(bands <= hop / 2 + 1, "its response is longer than its hop")?;
                require(channels.is_multiple_of(bands), "its channels do not divide into bands")?;
                let filtered = channels / bands;
                require(
                    filtered.checked_mul(hop) == Some(inputs[1].channels),
                    "its noise is not one hop of each channel",
                )?;
                require(ratio.is_multiple_of(hop), "its hop does not divide its input's ratio")?;
                Ok(Shape { channels: filtered, ratio: ratio / hop })
            }
            Self::Harmonic => {
                require(channels == 1 && inputs[1].channels == 1, "pitch and amplitude must have one channel")?;
                require(ratio > 1, "its inputs must be control frames")?;
                Ok(Shape { channels: 1, ratio: 1 })
            }
            Self::FilteredNoise => {
                require(channels >= 2, "needs two bands or more")?;
                require(ratio > 1, "its input must be control frames")?;
                Ok(Shape { channels: 1, ratio: 1 })
            }
            Self::Convolve { taps } => {
                require(channels == 1 && ratio == 1, "its input must be one channel of audio")?;
                require(taps > 0, "has no taps")?;
                require(block > 1, "its method is stepped by single samples")?;
                Ok(shaped(1))
            }
        }
    }

    /// The weights it needs, given the shapes it reads.
    #[must_use]
    pub fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let channels = inputs.first().map_or(0, |input| input.channels);
        let spec = |name, shape: &[usize]| WeightSpec { name, shape: shape.to_vec() };
        let recurrent = |gates: usize, hidden: usize, states: &[&'static str]| {
            let gates = gates.saturating_mul(hidden);
            let mut specs = vec![
                spec("weight_ih", &[gates, channels]),
                spec("weight_hh", &[gates, hidden]),
                spec("bias_ih", &[gates]),
                spec("bias_hh", &[gates]),
            ];
            specs.extend(states.iter().map(|state| spec(state, &[hidden])));
            specs
        };
        match *self {
            Self::Linear { outputs } => vec![spec("weight", &[outputs, channels]), spec("bias", &[outputs])],
            Self::Conv1d { outputs, kernel, groups, .. } => {
                vec![spec("weight", &[outputs, channels / groups, kernel]), spec("bias", &[outputs])]
            }
            Self::ConvTranspose1d { outputs, kernel, .. } => {
                vec![spec("weight", &[channels, outputs, kernel]), spec("bias", &[outputs])]
            }
            Self::Gru { hidden, initial_state } => recurrent(3, hidden, if initial_state { &["h0"] } else { &[] }),
            Self::Lstm { hidden, initial_state } => {
                recurrent(4, hidden, if initial_state { &["h0", "c0"] } else { &[] })
            }
            Self::Prelu { slopes } => vec![spec("weight", &[slopes])],
            Self::LayerNorm => vec![spec("weight", &[channels]), spec("bias", &[channels])],
            Self::Snake => vec![spec("alpha", &[channels])],
            Self::Convolve { taps } => vec![spec("impulse", &[taps])],
            _ => Vec::new(),
        }
    }

    /// Samples by which it delays what it is given.
    #[must_use]
    pub fn latency_samples(&self, inputs: &[Shape]) -> usize {
        match self {
            Self::Harmonic | Self::FilteredNoise => inputs[0].ratio,
            Self::Latency { samples } => *samples,
            _ => 0,
        }
    }

    /// Whether it bends each value by itself, by a curve of its own.
    #[must_use]
    pub fn is_activation(&self) -> bool {
        matches!(self, Self::Activation(_) | Self::Prelu { .. } | Self::Snake)
    }

    /// Samples by which what it was fed is still heard after the frame that it was fed in; a recurrent layer, which never quite
    /// forgets, is taken to need half a second.
    #[must_use]
    pub fn tail_samples(&self, inputs: &[Shape], sample_rate: u32) -> usize {
        let ratio = inputs[0].ratio;
        match *self {
            Self::Conv1d { kernel, dilation, .. } => (kernel - 1) * dilation * ratio,
            Self::ConvTranspose1d { kernel, stride, .. } => (kernel / stride - 1) * ratio,
            Self::Gru { .. } | Self::Lstm { .. } => sample_rate as usize / 2,
            Self::Convolve { taps } => taps - 1,
            Self::Delay { frames } => frames * ratio,
            Self::Harmonic | Self::FilteredNoise => ratio,
            _ => 0,
        }
    }

    /// Multiply-adds per sample of audio, counting what is proportional to weights, harmonics or taps.
    #[must_use]
    pub fn multiply_adds_per_sample(&self, inputs: &[Shape], output: Shape) -> f64 {
        let values: usize = match self {
            Self::Conv1d { .. } | Self::Linear { .. } | Self::Gru { .. } | Self::Lstm { .. } => self
                .weights(inputs)
                .iter()
                .filter(|spec| spec.shape.len() > 1)
                .map(|spec| spec.shape.iter().product::<usize>())
                .sum(),
            // Each frame of input meets every weight once; spread over the frames of output that it makes.
            Self::ConvTranspose1d { outputs, kernel, stride } => inputs[0].channels * outputs * kernel / stride,
            Self::Harmonic => 6 * inputs[2].channels,
            Self::ShapedNoise { bands, .. } => 2 * bands * output.channels,
            // A Fourier transform there and back, by the usual 2.5 n log2 n count of a real one.
            Self::FilteredNoise | Self::Convolve { .. } => 64,
            _ => output.channels,
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
    fn ops_that_move_frames_say_what_fits() {
        let interleave = |factor, channels, ratio| Op::Interleave { factor }.infer(&[shape(channels, ratio)], 64);
        assert_eq!(interleave(4, 12, 8), Ok(shape(3, 2)));
        assert!(interleave(0, 12, 8).is_err() && interleave(5, 12, 10).is_err() && interleave(4, 12, 6).is_err());
        let flip = |ratio| Op::FlipOddBands.infer(&[shape(3, ratio)], 64);
        assert_eq!(flip(32), Ok(shape(3, 32)));
        assert!(flip(64).is_err(), "one frame in a block");
        let delay = Op::Delay { frames: 5 };
        assert_eq!(delay.infer(&[shape(3, 8)], 64), Ok(shape(3, 8)));
        assert_eq!((delay.latency_samples(&[shape(3, 8)]), delay.tail_samples(&[shape(3, 8)], 48_000)), (0, 40));
        assert_eq!(Op::Latency { samples: 9 }.latency_samples(&[shape(3, 8)]), 9);
    }

    #[test]
    fn noise_says_what_fits() {
        let noise = |channels| Op::Noise { channels, distribution: Distribution::Normal, number: 1 };
        assert_eq!(noise(3).infer(&[shape(1, 8)], 64), Ok(shape(3, 8)));
        assert!(noise(0).infer(&[shape(1, 8)], 64).is_err());
        let shaped = |bands, hop, magnitudes, noise| {
            Op::ShapedNoise { bands, hop }.infer(&[shape(magnitudes, 64), shape(noise, 64)], 64)
        };
        assert_eq!(shaped(5, 16, 10, 32), Ok(shape(2, 4)));
        for (bands, hop, magnitudes, noise) in
            [(1, 16, 10, 32), (10, 16, 10, 32), (5, 16, 11, 32), (5, 16, 10, 31), (5, 48, 10, 96), (5, 0, 10, 0)]
        {
            assert!(shaped(bands, hop, magnitudes, noise).is_err(), "{bands} bands, {hop} frames");
        }
    }
}
