//! Operations of nodes. `rules` has their shapes, weights, latencies and costs.
//!
//! `x[t]` is frame `t` of all channels. All ops are causal: a frame of output depends on no later
//! frame of input. Weights have PyTorch's layouts.

pub use ondes_kernels::Activation;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) mod rules;

/// Operation of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", remote = "Self")]
pub enum Op {
    /// `y = W x + b`, `weight [outputs][inputs]`, `bias [outputs]`.
    Linear {
        /// Channels of the output.
        outputs: usize,
    },
    /// Causal convolution:
    /// `y[t] = b + Σ_k W_k x[(t + 1) · stride − 1 − (kernel − 1 − k) · dilation]`,
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
    /// Gated recurrent unit, one layer, gates in the order r, z, n: `weight_ih [3H][inputs]`,
    /// `weight_hh [3H][H]`, `bias_ih [3H]`, `bias_hh [3H]` (Cho et al., EMNLP 2014, in PyTorch's
    /// form).
    ///
    /// Starts from zeros, or from `h0 [H]` with an initial state.
    Gru {
        /// Units, H.
        hidden: usize,
        /// Set if the model file has an initial state.
        #[serde(default, skip_serializing_if = "is_false")]
        initial_state: bool,
    },
    /// Long short-term memory, one layer, gates in the order i, f, g, o; weights as for [`Op::Gru`]
    /// with 4H. An initial state is `h0 [H]` and `c0 [H]`.
    Lstm {
        /// Units, H.
        hidden: usize,
        /// Set if the model file has an initial state.
        #[serde(default, skip_serializing_if = "is_false")]
        initial_state: bool,
    },
    /// Causal attention over the last `window` frames, the present one among them. Inputs: `query`,
    /// `key` and `value`, each `[C]`, in which the channels of a head follow each other. For each
    /// head `h`, `y[t] = Σ_d s_d value[t − d]` with
    /// `s = softmax_d(query[t] · key[t − d] / √(C / heads) + position[h][d])` and `d` from 0 to
    /// `window − 1`, `position [heads][window]` (Vaswani et al., arXiv:1706.03762; a bias for each
    /// distance as Raffel et al., arXiv:1910.10683). Keys and values before the first frame are
    /// zeros, and take part.
    Attention {
        /// Heads, which divide the channels.
        heads: usize,
        /// Frames.
        window: usize,
    },
    /// Normalisation of each frame over its channels, `weight [channels]`, `bias [channels]`, ε =
    /// 1e-5 (Ba et al., 2016).
    LayerNorm,
    /// `e^x` of each channel divided by the sum over all channels of the frame.
    Softmax,
    /// `x` above zero, `weight · x` below, `weight [slopes]` (He et al., ICCV 2015).
    Prelu {
        /// 1 for a slope shared by all channels, else the number of channels.
        slopes: usize,
    },
    /// `x + sin²(α x) / α` with `alpha [channels]` (Ziyin et al., NeurIPS 2020).
    Snake,
    /// `tanh` of the first half of the channels times `sigmoid` of the second half (van den Oord et
    /// al., 2016).
    Gate,
    /// Feature-wise modulation of `x [C]` by `condition [2C]`:
    /// `x · condition[..C] + condition[C..]` (Perez et al., AAAI 2018).
    Film,
    /// Sum of two or more values of one shape: a residual or skip connection.
    Add,
    /// Product of `x [C]` and `y [C]` or `y [1]`.
    Multiply,
    /// Concatenation of the channels of all inputs.
    Concat,
    /// Range of channels.
    Split {
        /// First channel.
        start: usize,
        /// Number of channels.
        channels: usize,
    },
    /// Delay, after initial zeros. Not counted as latency, since an echo and the alignment of two
    /// paths look alike; use [`Op::Latency`] to declare latency.
    Delay {
        /// Delay in frames.
        frames: usize,
    },
    /// Identity. Declares `samples` of latency that cannot be derived from the taps, such as that
    /// of a linear-phase filter.
    Latency {
        /// Latency in samples.
        samples: usize,
    },
    /// Each frame of `factor · C` channels becomes `factor` frames of C: channel `p · C + c` is
    /// channel `c` of the `p`-th.
    Interleave {
        /// Frames of output per frame of input.
        factor: usize,
    },
    /// Negates odd channels in the first frame of each pair. Every other band of a decimated filter
    /// bank is mirrored in frequency; this flips it, and flips it back if applied again (Nguyen,
    /// IEEE Trans. Signal Processing 42(1), 1994).
    #[serde(rename = "unmirror")]
    FlipOddBands,
    /// White noise at the rate of the input, whose values are ignored; seeded per stream.
    Noise {
        /// Channels of the output.
        channels: usize,
        /// Distribution of the values.
        distribution: Distribution,
        /// Selects the noise: nodes of different numbers are independent.
        number: u32,
    },
    /// Noise through a filter that changes each frame, without tails into the next one. Inputs:
    /// `magnitudes [C · bands]`, per channel from 0 Hz to half the rate of the output, and
    /// `noise [C · hop]`, per channel the `hop` frames to be filtered. Output: `[C]`, `hop` frames
    /// per input frame. The impulse response is the inverse Fourier transform of the magnitudes
    /// under a Hann window, cut to `hop` frames if it is longer; its first half wraps to the end of
    /// the frame (RAVE's `NoiseGenerator`; Caillon & Esling, arXiv:2111.05011).
    ShapedNoise {
        /// Magnitudes per channel.
        bands: usize,
        /// Frames of output per frame of input.
        hop: usize,
    },
    /// Residual vector quantization of `x [C]`: for each codebook in turn, the index of the entry
    /// with the least Euclidean distance to what those before it leave,
    /// `codebook [codebooks][codes][C]` (Zeghidour et al., SoundStream, arXiv:2107.03312). In
    /// `bf16`, indices above 256 are rounded.
    NearestCodes {
        /// Codebooks: channels of the output.
        codebooks: usize,
        /// Entries of a codebook.
        codes: usize,
    },
    /// Sum of one entry of each codebook, `codebook [channels of the input][codes][channels]`. The
    /// indices are rounded towards zero and limited to those that exist. Reverses
    /// [`Op::NearestCodes`].
    CodeSum {
        /// Entries of a codebook.
        codes: usize,
        /// Channels of the output.
        channels: usize,
    },
    /// Draws from a mixture of Gaussians with diagonal covariances. Inputs: `logits [K]` of the
    /// components, `means [K · C]` and standard deviations `scales [K · C]`, all channels of a
    /// component, then those of the next, and `temperature [1]`. Output `[C]`; seeded per stream.
    ///
    /// The temperature T, 0 or above, divides the logits and multiplies the variances: 1 draws from
    /// the mixture, 0 takes the mean of the likeliest component (Ha & Eck, ICLR 2018).
    DrawMixture {
        /// Components, K.
        components: usize,
        /// Share of the likeliest component's probability, 0 to 1, below which one is never drawn
        /// (min-p sampling, Nguyen et al., arXiv:2407.01082); 0 draws from all.
        #[serde(default, skip_serializing_if = "is_zero")]
        least: f32,
        /// Selects the noise, as of [`Op::Noise`].
        number: u32,
    },
    /// Draws an index for each of C channels from categories. Inputs: `logits [C · K]`, all
    /// categories of a channel, then those of the next, and `temperature [1]`, 0 or above, which
    /// divides the logits. Output `[C]`; seeded per stream.
    DrawCategories {
        /// Categories, K.
        categories: usize,
        /// Draws among so many of the likeliest categories only.
        top: usize,
        /// Selects the noise, as of [`Op::Noise`].
        number: u32,
    },
    /// `scale · x + offset` with fixed numbers, such as to normalise an input port.
    Affine {
        /// Factor.
        scale: f32,
        /// Summand, after scaling.
        offset: f32,
    },
    /// Harmonic oscillator bank. Inputs: `pitch [1]` (semitones, 69 = 440 Hz), `amplitude [1]`,
    /// `distribution [H]` (≥ 0). Harmonics at or above half the sample rate are dropped and the
    /// others scaled to sum to one. Output: audio; control frame `i` is reached at the end of its
    /// segment, so sound is one frame late (Engel et al., ICLR 2020).
    Harmonic,
    /// White noise through a filter that changes each frame. Input: `magnitudes [bands]` from 0 Hz
    /// to half the sample rate. Output: audio, one frame late as [`Op::Harmonic`] (Engel et al.,
    /// ICLR 2020).
    FilteredNoise,
    /// Convolution of audio with a learnt impulse response, `impulse [taps]`, such as a room or a
    /// body.
    Convolve {
        /// Length of the response in samples.
        taps: usize,
    },
    /// Activation without weights. Its tag in model files is that of the activation, such as
    /// `tanh`.
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
            // The inherent function that `remote` derives, not this one.
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
            // The inherent function that `remote` derives, not this one.
            Self::deserialize(fields)
        }
        .map_err(D::Error::custom)
    }
}

/// Distribution of the values of [`Op::Noise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Uniform in [−1, 1).
    Uniform,
    /// Normal, with mean 0 and variance 1.
    Normal,
}

/// Weight that an op needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSpec {
    /// Name of the parameter, such as `weight`.
    pub name: &'static str,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Meaning of each dimension.
    pub axes: &'static [WeightAxis],
}

/// Meaning of a dimension of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightAxis {
    /// One value per channel of the first input.
    Inputs,
    /// One value per channel of the output.
    Outputs,
    /// Gates of a recurrent layer: all output channels of a gate, then those of the next.
    GatedOutputs,
    /// Independent of channels that may be pruned: taps, a shared slope, the inputs of a group.
    Fixed,
}

fn one() -> usize {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &f32) -> bool {
    *number == 0.0
}
