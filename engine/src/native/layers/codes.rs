//! Residual vector quantization: the nearest entries of codebooks, and the sum of named ones.

use ondes_kernels::{Columns, Kernels, PackedMatrix};

use crate::native::layer::{Io, Layer, LayerContext};

/// Nearest entries of codebooks, each to what those before it leave.
pub(super) struct NearestCodes {
    codebooks: Vec<Codebook>,
    /// What is left of a frame.
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

impl NearestCodes {
    pub fn new(context: &LayerContext<'_>, codes: usize) -> Self {
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

impl Layer for NearestCodes {
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

/// Sum of one entry of each codebook.
pub(super) struct CodeSum {
    codes: usize,
    /// `[codebook][code][channel]`
    entries: Vec<f32>,
}

impl CodeSum {
    pub fn new(context: &LayerContext<'_>, codes: usize) -> Self {
        Self {
            codes,
            entries: context.weight("codebook").floats().into_owned(),
        }
    }
}

impl Layer for CodeSum {
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
