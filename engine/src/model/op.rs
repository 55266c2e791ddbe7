//! What a node computes: its parameters, the shapes it accepts, the weights it needs and what it costs.
//!
//! Frames are numbered in time; `x[t]` is a frame of all channels. Everything is causal: a frame of output needs no later
//! frame of input. Layouts of weights are PyTorch's.

use serde::{Deserialize, Serialize};

use super::Shape;

/// What a node computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// `y = W x + b`, `weight [outputs][inputs]`, `bias [outputs]`.
    Linear {
        /// Channels of the output.
        outputs: usize,
    },
    /// Causal convolution: `y[t] = b + Σ_k W_k x[(t + 1) · stride − 1 − (kernel − 1 − k) · dilation]`,
    /// `weight [outputs][inputs / groups][kernel]`, `bias [outputs]`.
    Conv1d {
        /// Channels of the output.
        outputs: usize,
        /// Taps.
        kernel: usize,
        /// Frames of input per frame of output.
        #[serde(default = "one")]
        stride: usize,
        /// Frames between taps.
        #[serde(default = "one")]
        dilation: usize,
        /// Independent groups of channels.
        #[serde(default = "one")]
        groups: usize,
    },
    /// Causal transposed convolution: frame `t` adds `W_k x[t]` to `y[t · stride + k]`,
    /// `weight [inputs][outputs][kernel]`, `bias [outputs]`.
    ConvTranspose1d {
        /// Channels of the output.
        outputs: usize,
        /// Taps, a multiple of the stride.
        kernel: usize,
        /// Frames of output per frame of input.
        stride: usize,
    },
    /// Gated recurrent unit, one layer, gates in the order r, z, n: `weight_ih [3H][inputs]`, `weight_hh [3H][H]`,
    /// `bias_ih [3H]`, `bias_hh [3H]` (Cho et al., EMNLP 2014, in PyTorch's form).
    ///
    /// With an initial state it starts from `h0 [H]` instead of zeros.
    Gru {
        /// Units, H.
        hidden: usize,
        /// Whether it has an initial state.
        #[serde(default, skip_serializing_if = "is_false")]
        initial_state: bool,
    },
    /// Long short-term memory, one layer, gates in the order i, f, g, o; weights as for [`Op::Gru`] with 4H. An initial state
    /// is `h0 [H]` and `c0 [H]`.
    Lstm {
        /// Units, H.
        hidden: usize,
        /// Whether it has an initial state.
        #[serde(default, skip_serializing_if = "is_false")]
        initial_state: bool,
    },
    /// Normalises each frame over its channels, `weight [channels]`, `bias [channels]`, ε = 1e-5 (Ba et al., 2016).
    LayerNorm,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^−x)`.
    Sigmoid,
    /// `max(x, 0)`.
    Relu,
    /// `x` above zero, `slope · x` below.
    LeakyRelu {
        /// Slope below zero.
        slope: f32,
    },
    /// `x` above zero, `weight · x` below, `weight [slopes]` (He et al., ICCV 2015).
    Prelu {
        /// 1 for a slope that all channels share, else one for each channel.
        slopes: usize,
    },
    /// `x` held within −1 and 1.
    HardTanh,
    /// `x` within `min` and `max`; beyond them it goes on from there with slopes of their own.
    LeakyHardTanh {
        /// Where the middle begins.
        min: f32,
        /// Where it ends, not before it begins.
        max: f32,
        /// Slope below `min`.
        min_slope: f32,
        /// Slope above `max`.
        max_slope: f32,
    },
    /// `x · min(max(x + 3, 0), 6) / 6` (Howard et al., ICCV 2019).
    HardSwish,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x / (1 + e^−x)`.
    Silu,
    /// The rational function that players of captures call a fast tanh, up to 0.8 % above it: for models trained with it. With
    /// `a = |x|` it is `sign(x)` times `a (2.45550750702956 (1 + a) + (0.893229853513558 + 0.821226666969744 a) a²)` over
    /// `2.44506634652299 + (2.44506634652299 + a²) (a + 0.814642734961073 a²)`.
    FastTanh,
    /// `x + sin²(α x) / α` with `alpha [channels]` (Ziyin et al., NeurIPS 2020).
    Snake,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `2 · sigmoid(x)^ln 10 + 1e-7` (Engel et al., ICLR 2020).
    ExpSigmoid,
    /// `tanh` of the first half of the channels times `sigmoid` of the second half (van den Oord et al., 2016).
    Gate,
    /// Of inputs `x [C]` and `condition [2C]`: `x · condition[..C] + condition[C..]` (Perez et al., AAAI 2018).
    Film,
    /// Sum of two or more values of one shape: a residual or skip connection.
    Add,
    /// Product of `x [C]` and `y [C]` or `y [1]`.
    Multiply,
    /// The channels of all inputs, one after another.
    Concat,
    /// Some neighbouring channels.
    Split {
        /// First channel.
        start: usize,
        /// How many.
        channels: usize,
    },
    /// `scale · x + offset`, fixed numbers: brings a port into a range fit for a network.
    Affine {
        /// Factor.
        scale: f32,
        /// Summand, after scaling.
        offset: f32,
    },
    /// Harmonic oscillator bank. Inputs: `pitch [1]` (semitones, 69 = 440 Hz), `amplitude [1]`, `distribution [H]` (≥ 0).
    /// Harmonics at or above half the sample rate are dropped, the others scaled to sum to one. Output: audio; frame `i` ends
    /// the segment that leads to it, so that sound is one frame behind (Engel et al., ICLR 2020).
    Harmonic,
    /// White noise through a filter that changes each frame. Input: `magnitudes [bands]` from 0 Hz to half the sample rate.
    /// Output: audio, one frame behind like [`Op::Harmonic`] (Engel et al., ICLR 2020).
    FilteredNoise,
    /// Audio convolved with a learnt impulse response, `impulse [taps]`: a room or a body.
    Convolve {
        /// Length of the response in samples.
        taps: usize,
    },
}

/// A weight that an op needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSpec {
    /// The parameter's name, such as `weight`.
    pub name: &'static str,
    /// Its extents, outermost first.
    pub shape: Vec<usize>,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Op {
    /// The shape of the output, or why the inputs do not fit.
    pub(super) fn infer(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let arity = match self {
            Self::Film | Self::Multiply => 2..=2,
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
            | Self::Tanh
            | Self::Sigmoid
            | Self::Relu
            | Self::Snake
            | Self::Softplus
            | Self::ExpSigmoid
            | Self::HardTanh
            | Self::HardSwish
            | Self::Softsign
            | Self::Silu
            | Self::FastTanh => Ok(shaped(channels)),
            Self::Prelu { slopes } => {
                require([1, channels].contains(&slopes), "has neither one slope nor one for each channel")?;
                Ok(shaped(channels))
            }
            Self::LeakyHardTanh { min, max, min_slope, max_slope } => {
                require([min, max, min_slope, max_slope].iter().all(|x| x.is_finite()), "its numbers are not finite")?;
                require(min <= max, "its middle ends before it begins")?;
                Ok(shaped(channels))
            }
            Self::LeakyRelu { slope } => {
                require(slope.is_finite(), "its slope is not finite")?;
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
            _ => 0,
        }
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
            // A Fourier transform there and back, by the usual 2.5 n log2 n count of a real one.
            Self::FilteredNoise | Self::Convolve { .. } => 64,
            _ => output.channels,
        };
        values as f64 / output.ratio as f64
    }
}
