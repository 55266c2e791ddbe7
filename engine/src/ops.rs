//! Operations of nodes, one file a family. A file holds all that the engine knows of its ops:
//! parameters, shapes, weights, limits, latency, tail, cost, memory, what pruning must keep
//! together, the layer of the native executor and the line of TorchScript.
//!
//! `x[t]` is frame `t` of all channels. All ops are causal: a frame of output depends on no later
//! frame of input. Weights have PyTorch's layouts.

mod activation;
mod analysis;
mod attention;
mod cells;
mod codes;
mod convolution;
mod draw;
mod elementwise;
mod join;
mod linear;
mod noise;
mod operation;
mod recurrent;
mod synthesis;
mod time;

pub use ondes_kernels::Activation;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use activation::Affine;
pub use analysis::Pitch;
pub use attention::Attention;
pub use codes::{CodeSum, NearestCodes};
pub use convolution::{Conv1d, ConvTranspose1d};
pub use draw::{DrawCategories, DrawMixture};
pub use elementwise::Prelu;
pub use join::Split;
pub use linear::Linear;
pub use noise::{Distribution, Noise, ShapedNoise};
pub use operation::{ChannelCut, ChannelLinks, Memory, WeightAxis, WeightSpec};
pub(crate) use operation::{Operation, RowPass};
pub use recurrent::{Gru, Lstm};
pub use synthesis::Convolve;
pub use time::{Delay, Interleave, Latency};

use crate::model::Shape;
use crate::model::export::node_line::Function;

/// Operation of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", remote = "Self")]
pub enum Op {
    /// `y = W x + b`.
    Linear(Linear),
    /// Causal convolution.
    Conv1d(Conv1d),
    /// Causal transposed convolution.
    ConvTranspose1d(ConvTranspose1d),
    /// Gated recurrent unit.
    Gru(Gru),
    /// Long short-term memory.
    Lstm(Lstm),
    /// Causal attention over the last frames.
    Attention(Attention),
    /// Normalisation of each frame over its channels, `weight [channels]`, `bias [channels]`, ε =
    /// 1e-5 (Ba et al., 2016).
    LayerNorm,
    /// `e^x` of each channel divided by the sum over all channels of the frame.
    Softmax,
    /// `x` above zero, `weight · x` below.
    Prelu(Prelu),
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
    Split(Split),
    /// Delay, after initial zeros.
    Delay(Delay),
    /// Identity that declares latency.
    Latency(Latency),
    /// Frames of several channels become several frames.
    Interleave(Interleave),
    /// Negates odd channels in the first frame of each pair. Every other band of a decimated filter
    /// bank is mirrored in frequency; this flips it, and flips it back if applied again (Nguyen,
    /// IEEE Trans. Signal Processing 42(1), 1994).
    #[serde(rename = "unmirror")]
    FlipOddBands,
    /// White noise.
    Noise(Noise),
    /// Noise through a filter that changes each frame.
    ShapedNoise(ShapedNoise),
    /// Residual vector quantization.
    NearestCodes(NearestCodes),
    /// Sum of one entry of each codebook.
    CodeSum(CodeSum),
    /// Draw from a mixture of Gaussians.
    DrawMixture(DrawMixture),
    /// Draw of an index for each channel.
    DrawCategories(DrawCategories),
    /// `scale · x + offset` with fixed numbers.
    Affine(Affine),
    /// Harmonic oscillator bank. Inputs: `pitch [1]` (semitones, 69 = 440 Hz), `amplitude [1]`,
    /// `distribution [H]` (≥ 0). Harmonics at or above half the sample rate are dropped and the
    /// others scaled to sum to one. Output: audio; control frame `i` is reached at the end of its
    /// segment, so sound is one frame late (Engel et al., ICLR 2020).
    Harmonic,
    /// White noise through a filter that changes each frame. Input: `magnitudes [bands]` from 0 Hz
    /// to half the sample rate. Output: audio, one frame late as [`Op::Harmonic`] (Engel et al.,
    /// ICLR 2020).
    FilteredNoise,
    /// Convolution with a learnt impulse response.
    Convolve(Convolve),
    /// Pitch of a sound.
    Pitch(Pitch),
    /// Activation without weights. Its tag in model files is that of the activation, such as
    /// `tanh`.
    #[serde(skip)]
    Activation(Activation),
}

/// Functions of TorchScript that ops call.
pub(crate) const TORCHSCRIPT_FUNCTIONS: [Function; 10] = [
    analysis::PITCH,
    analysis::PITCH_PERIODS,
    attention::ATTENTION,
    codes::CODE_SUM,
    codes::NEAREST_CODES,
    noise::SHAPED_NOISE,
    synthesis::CONVOLVE,
    synthesis::FILTERED_NOISE,
    synthesis::HARMONIC,
    time::FLIP_ODD_BANDS,
];

impl Op {
    /// Returns what the engine knows of the op.
    pub(crate) fn operation(&self) -> &dyn Operation {
        match self {
            Self::Linear(op) => op,
            Self::Conv1d(op) => op,
            Self::ConvTranspose1d(op) => op,
            Self::Gru(op) => op,
            Self::Lstm(op) => op,
            Self::Attention(op) => op,
            Self::LayerNorm => &elementwise::LayerNorm,
            Self::Softmax => &elementwise::Softmax,
            Self::Prelu(op) => op,
            Self::Snake => &elementwise::Snake,
            Self::Gate => &elementwise::Gate,
            Self::Film => &elementwise::Film,
            Self::Add => &join::Add,
            Self::Multiply => &join::Multiply,
            Self::Concat => &join::Concat,
            Self::Split(op) => op,
            Self::Delay(op) => op,
            Self::Latency(op) => op,
            Self::Interleave(op) => op,
            Self::FlipOddBands => &time::FlipOddBands,
            Self::Noise(op) => op,
            Self::ShapedNoise(op) => op,
            Self::NearestCodes(op) => op,
            Self::CodeSum(op) => op,
            Self::DrawMixture(op) => op,
            Self::DrawCategories(op) => op,
            Self::Affine(op) => op,
            Self::Harmonic => &synthesis::Harmonic,
            Self::FilteredNoise => &synthesis::FilteredNoise,
            Self::Convolve(op) => op,
            Self::Pitch(op) => op,
            Self::Activation(activation) => activation,
        }
    }

    /// Returns the shape of the output, or the reason why the inputs do not fit. `block` is in
    /// samples.
    pub(crate) fn infer(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let arity = self.operation().arity();
        if !arity.contains(&inputs.len()) {
            return Err(format!(
                "has {} inputs; allowed: {} to {}",
                inputs.len(),
                arity.start(),
                arity.end()
            ));
        }
        let ratio = inputs[0].ratio;
        if let Some(other) = inputs.iter().find(|input| input.ratio != ratio) {
            return Err(format!(
                "has inputs of different ratios, {ratio} and {}",
                other.ratio
            ));
        }
        self.operation().shape(inputs, block)
    }

    /// Returns the weights that the op needs, given the shapes of its inputs.
    #[must_use]
    pub fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        self.operation().weights(inputs)
    }

    /// Returns the multiply-adds per sample of audio, counting those proportional to weights,
    /// harmonics or taps.
    #[must_use]
    pub fn multiply_adds_per_sample(&self, inputs: &[Shape], output: Shape) -> f64 {
        self.operation().multiply_adds(inputs, output) as f64 / output.ratio as f64
    }

    /// Returns what a stream keeps from one step to the next.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.operation().memory()
    }

    /// Returns how many frames of the inputs before a frame the same frame of the output depends
    /// on; `None` if on all of them, or on the frame's place in the sequence.
    #[must_use]
    pub fn earlier_frames(&self) -> Option<usize> {
        self.operation().earlier_frames()
    }

    /// Returns how the channels of inputs and output belong together.
    #[must_use]
    pub fn channel_links(&self) -> ChannelLinks {
        self.operation().channel_links()
    }

    /// Adapts the parameters to the channels that are kept; other ops follow their inputs.
    pub fn narrow(&mut self, cut: &ChannelCut<'_>) {
        match self {
            Self::Linear(op) => op.narrow(cut),
            Self::Conv1d(op) => op.narrow(cut),
            Self::ConvTranspose1d(op) => op.narrow(cut),
            Self::Gru(op) => op.narrow(cut),
            Self::Lstm(op) => op.narrow(cut),
            Self::Prelu(op) => op.narrow(cut),
            Self::Split(op) => op.narrow(cut),
            _ => {}
        }
    }
}

/// Lets the parameters of an op stand for the op.
macro_rules! from_parameters {
    ($($name:ident),+ $(,)?) => {
        $(impl From<$name> for Op {
            fn from(parameters: $name) -> Self {
                Self::$name(parameters)
            }
        })+
    };
}

from_parameters!(
    Linear,
    Conv1d,
    ConvTranspose1d,
    Gru,
    Lstm,
    Attention,
    Prelu,
    Split,
    Delay,
    Latency,
    Interleave,
    Noise,
    ShapedNoise,
    NearestCodes,
    CodeSum,
    DrawMixture,
    DrawCategories,
    Affine,
    Convolve,
    Pitch,
    Activation,
);

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

#[cfg(test)]
mod tests;
