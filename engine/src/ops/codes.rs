//! Residual vector quantization: the nearest entries of codebooks, and the sum of named ones.

use ondes_kernels::{Columns, Kernels, PackedMatrix};
use serde::{Deserialize, Serialize};

use super::operation::WeightAxis::{Fixed, Inputs, Outputs};
use super::operation::{ChannelLinks, Operation, WeightSpec, require, require_positive};
use crate::model::export::node_line::{Function, NodeLine};
use crate::model::{Shape, limits};
use crate::native::layer::{Io, Layer, LayerContext};

/// Residual vector quantization of `x [C]`: the first codebook gives the index of the entry that is
/// nearest to `x`, each further codebook that of the entry nearest to the error that is left;
/// `codebook [codebooks][codes][C]`, Euclidean distance (Zeghidour et al., SoundStream,
/// arXiv:2107.03312). In `bf16`, indices above 256 are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearestCodes {
    /// Codebooks: channels of the output.
    pub codebooks: usize,
    /// Entries of a codebook.
    pub codes: usize,
}

impl Operation for NearestCodes {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require_codes(self.codes)?;
        require_positive(&[self.codebooks])?;
        Ok(inputs[0].with_channels(self.codebooks))
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let shape = [self.codebooks, self.codes, Shape::channels_of_first(inputs)];
        vec![WeightSpec::new(
            "codebook",
            &[Outputs, Fixed, Inputs],
            &shape,
        )]
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        self.codebooks * self.codes * inputs[0].channels
    }

    /// The codes were learnt for all channels.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(NearestCodesLayer::new(context, self.codes))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [codebook] = line.parameters(["codebook"]);
        let x = line.x();
        line.call(NEAREST_CODES, &[x, &codebook])
    }
}

/// Sum of one entry of each codebook, `codebook [channels of the input][codes][channels]`. The
/// indices are rounded towards zero and limited to those that exist. Reverses [`NearestCodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSum {
    /// Entries of a codebook.
    pub codes: usize,
    /// Channels of the output.
    pub channels: usize,
}

impl Operation for CodeSum {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require_codes(self.codes)?;
        require_positive(&[self.channels])?;
        Ok(inputs[0].with_channels(self.channels))
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let shape = [Shape::channels_of_first(inputs), self.codes, self.channels];
        vec![WeightSpec::new(
            "codebook",
            &[Inputs, Fixed, Outputs],
            &shape,
        )]
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        inputs[0].channels * self.channels
    }

    /// The codes were learnt for all channels.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(CodeSumLayer::new(context, self.codes))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [codebook] = line.parameters(["codebook"]);
        let x = line.x();
        line.call(CODE_SUM, &[x, &codebook])
    }
}

fn require_codes(codes: usize) -> Result<(), String> {
    require((1..=limits::CODES).contains(&codes), || {
        format!(
            "has {codes} entries in a codebook; allowed: 1 to {}",
            limits::CODES
        )
    })
}

/// [`NearestCodes`].
pub(super) const NEAREST_CODES: Function = Function {
    signature: "nearest_codes(x: Tensor, codebook: Tensor) -> Tensor",
    body: "\
rest = torch.transpose(x, 1, 2)
codes = torch.new_empty(x, [torch.size(x, 0), 0, torch.size(x, 2)])
for book in range(torch.size(codebook, 0)):
  entries = torch.select(codebook, 0, book)
  scores = torch.matmul(rest, torch.t(entries)) - 0.5 * torch.sum(entries * entries, [1])
  nearest = torch.argmax(scores, -1)
  rest = rest - torch.embedding(entries, nearest)
  codes = torch.cat([codes, torch.to(torch.unsqueeze(nearest, 1), 6)], 1)
return codes",
};

/// [`CodeSum`].
pub(super) const CODE_SUM: Function = Function {
    signature: "code_sum(x: Tensor, codebook: Tensor) -> Tensor",
    body: "\
codes = torch.to(torch.clamp(torch.nan_to_num(x, 0.), 0., torch.size(codebook, 1) - 1.), 4)
sum = torch.embedding(torch.select(codebook, 0, 0), torch.select(codes, 1, 0))
for book in range(1, torch.size(codebook, 0)):
  sum = sum + torch.embedding(torch.select(codebook, 0, book), torch.select(codes, 1, book))
return torch.transpose(sum, 1, 2)",
};

struct NearestCodesLayer {
    codebooks: Vec<Codebook>,
    /// Error that the codebooks so far leave of a frame.
    rest: Vec<f32>,
    /// `[code]`
    scores: Vec<f32>,
}

struct Codebook {
    /// Computes `entry · x − |entry|² / 2` for each entry, which is largest for the nearest one.
    scores: PackedMatrix,
    /// `[code][channel]`
    entries: Vec<f32>,
}

impl NearestCodesLayer {
    fn new(context: &LayerContext<'_>, codes: usize) -> Self {
        let channels = context.channels();
        let values = context.weight("codebook").floats();
        let codebook = |entries: &[f32]| {
            let bias = entries
                .chunks_exact(channels)
                .map(|entry| -0.5 * entry.iter().map(|x| x * x).sum::<f32>());
            let bias: Vec<f32> = bias.collect();
            let weight = |code: usize, _, channel: usize| entries[code * channels + channel];
            let scores = PackedMatrix::new(codes, 1, channels, weight, Some(&bias));
            Codebook {
                scores,
                entries: entries.to_vec(),
            }
        };
        let codebooks = values
            .chunks_exact(codes * channels)
            .map(codebook)
            .collect();
        Self {
            codebooks,
            rest: vec![0.0; channels],
            scores: vec![0.0; codes],
        }
    }
}

impl Layer for NearestCodesLayer {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let Self {
            codebooks,
            rest,
            scores,
        } = self;
        let channels = rest.len();
        let frames = io
            .input(0)
            .chunks_exact(channels)
            .zip(io.output.chunks_exact_mut(codebooks.len()));
        for (frame, codes) in frames {
            rest.copy_from_slice(frame);
            for (codebook, code) in codebooks.iter().zip(codes) {
                let column = Columns {
                    data: rest.as_slice(),
                    count: 1,
                    stride: channels,
                    tap_stride: channels,
                };
                kernels.matmul(&codebook.scores, column, scores, codebook.scores.outputs());
                let mut nearest = 0;
                for (index, score) in scores.iter().enumerate() {
                    if *score > scores[nearest] {
                        nearest = index;
                    }
                }
                *code = nearest as f32;
                let entry = &codebook.entries[nearest * channels..][..channels];
                rest.iter_mut()
                    .zip(entry)
                    .for_each(|(rest, value)| *rest -= value);
            }
        }
    }

    fn bytes(&self) -> usize {
        let bytes = |codebook: &Codebook| {
            codebook.scores.bytes() + size_of_val(codebook.entries.as_slice())
        };
        self.codebooks.iter().map(bytes).sum()
    }
}

struct CodeSumLayer {
    codes: usize,
    /// `[codebook][code][channel]`
    entries: Vec<f32>,
}

impl CodeSumLayer {
    fn new(context: &LayerContext<'_>, codes: usize) -> Self {
        Self {
            codes,
            entries: context.weight("codebook").floats().into_owned(),
        }
    }
}

impl Layer for CodeSumLayer {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let codebooks = io.channels(0);
        let channels = self.entries.len() / (codebooks * self.codes);
        let frames = io
            .input(0)
            .chunks_exact(codebooks)
            .zip(io.output.chunks_exact_mut(channels));
        for (codes, sum) in frames {
            sum.fill(0.0);
            for (code, entries) in codes
                .iter()
                .zip(self.entries.chunks_exact(self.codes * channels))
            {
                // The conversion rounds towards zero; what is no number becomes 0.
                let entry = &entries[(*code as usize).min(self.codes - 1) * channels..][..channels];
                sum.iter_mut()
                    .zip(entry)
                    .for_each(|(sum, value)| *sum += value);
            }
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(self.entries.as_slice())
    }
}
