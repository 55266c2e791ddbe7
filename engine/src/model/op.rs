//! What a node computes, and its parameters. `rules` has the shapes it accepts, the weights it needs and what it costs.
//!
//! Frames are numbered in time; `x[t]` is a frame of all channels. Everything is causal: a frame of output needs no later
//! frame of input. Layouts of weights are PyTorch's.

pub use ondes_kernels::Activation;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod rules;

/// What a node computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", remote = "Self")]
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
    /// `x` above zero, `weight · x` below, `weight [slopes]` (He et al., ICCV 2015).
    Prelu {
        /// 1 for a slope that all channels share, else one for each channel.
        slopes: usize,
    },
    /// `x + sin²(α x) / α` with `alpha [channels]` (Ziyin et al., NeurIPS 2020).
    Snake,
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
    /// The input, so many frames later; zeros come first. It counts as no latency, since an echo and the alignment of two paths
    /// look alike: where the whole is late, [`Op::Latency`] says so.
    Delay {
        /// Frames.
        frames: usize,
    },
    /// The input as it is. It states that what it shows is so much late, which nodes do not tell where a filter's middle is not
    /// its newest tap.
    Latency {
        /// Samples.
        samples: usize,
    },
    /// Each frame of `factor · C` channels becomes `factor` frames of C: channel `p · C + c` is channel `c` of the `p`-th.
    Interleave {
        /// Frames of output per frame of input.
        factor: usize,
    },
    /// Odd channels times −1 in the first frame of each two. Every other band of a decimated filter bank lies upside down in
    /// frequency, and this turns it round; a second time it turns it back (Nguyen, IEEE Trans. Signal Processing 42(1), 1994).
    #[serde(rename = "unmirror")]
    FlipOddBands,
    /// Noise of its own at the rate of the input, whose values do not count: seeded by stream, independent from value to value.
    Noise {
        /// Channels of the output.
        channels: usize,
        /// How its values are distributed.
        distribution: Distribution,
        /// Nodes of another number make other noise.
        number: u32,
    },
    /// Noise under a filter that changes each frame, without what would ring into the next one. Inputs: `magnitudes [C · bands]`,
    /// for each channel from 0 Hz to half the rate of the output, and `noise [C · hop]`, for each channel the `hop` frames that
    /// are filtered. Output: `[C]`, `hop` frames for each of the inputs. The response is the inverse Fourier transform of the
    /// magnitudes under a Hann window, and what lies before its middle is at the end of the frame (RAVE's `NoiseGenerator`;
    /// Caillon & Esling, arXiv:2111.05011).
    ShapedNoise {
        /// Magnitudes of a channel.
        bands: usize,
        /// Frames of output per frame of input.
        hop: usize,
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
    /// Function of each value by itself, without weights. Its tag in a file is that of the activation, such as `tanh`.
    #[serde(skip)]
    Activation(Activation),
}

impl From<Activation> for Op {
    fn from(activation: Activation) -> Self {
        Self::Activation(activation)
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Activation(activation) => activation.serialize(serializer),
            // Not this function, but the one that `remote` derives.
            op => Self::serialize(op, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Value::deserialize(deserializer)?;
        let tag = fields["op"].as_str();
        if tag.is_some_and(|tag| Activation::TAGS.contains(&tag)) {
            Activation::deserialize(fields).map(Self::Activation)
        } else {
            // Not this function, but the one that `remote` derives.
            Self::deserialize(fields)
        }
        .map_err(D::Error::custom)
    }
}

/// How the values of [`Op::Noise`] are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly in [−1, 1).
    Uniform,
    /// Normally, with a mean of 0 and a variance of 1.
    Normal,
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
