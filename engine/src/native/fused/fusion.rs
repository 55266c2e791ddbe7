//! Fusion of operations into as few passes over the frames as possible.
//!
//! Activations and sums become part of the convolution before them, and a layer's second
//! convolution is interleaved with its first a few frames at a time.

use ondes_kernels::{Binary, Convolution, Passes, TapWeights, Taps, Unary};

use super::channel_range::{ChannelRange, TapSource, ViewTable};
use super::layout::Layout;
use super::lowering::{ConvolutionPart, LoweredOp};
use super::signal_buffer::SignalBuffer;

/// Convolution with all that is computed in its pass; as [`Convolution`], but with channel ranges
/// for views.
pub struct FusedConvolution {
    weights: TapWeights,
    /// Inputs, in the order of the weights.
    taps: Vec<TapSource>,
    residual: Option<ChannelRange>,
    output: ChannelRange,
    activation: Option<Unary>,
    accumulate_into: Option<ChannelRange>,
    /// Set if only the second convolution of the pass reads the output.
    transient: bool,
}

impl FusedConvolution {
    /// Returns the ranges that are written.
    fn targets(&self) -> impl Iterator<Item = ChannelRange> {
        [Some(self.output), self.accumulate_into]
            .into_iter()
            .flatten()
    }

    /// Returns whether it reads no output of `other` at an earlier frame.
    fn can_interleave_with(&self, other: &Self) -> bool {
        let is_written = |tap: &TapSource| {
            other
                .targets()
                .any(|range| range.buffer == tap.range.buffer)
        };
        self.taps
            .iter()
            .all(|tap| tap.delays == [0] || !is_written(tap))
    }

    fn with_views(self, table: &mut ViewTable) -> Convolution {
        let Self {
            weights,
            taps,
            residual,
            output,
            activation,
            accumulate_into,
            transient,
        } = self;
        let mut index = |range| table.index(range);
        let taps = taps
            .into_iter()
            .map(|TapSource { range, delays }| Taps {
                view: index(range),
                delays,
            })
            .collect();
        let output = index(output);
        let residual = residual.map(&mut index);
        let accumulate_into = accumulate_into.map(&mut index);
        Convolution {
            weights,
            taps,
            residual,
            output,
            activation,
            accumulate_into,
            transient,
        }
    }
}

/// One loop over the frames.
pub enum FusedPass {
    Convolution {
        first: Box<FusedConvolution>,
        second: Option<Box<FusedConvolution>>,
    },
    Unary {
        operation: Unary,
        in_out: ChannelRange,
    },
    Binary {
        operation: Binary,
        operand: ChannelRange,
        in_out: ChannelRange,
    },
}

impl FusedPass {
    fn convolutions(&self) -> impl Iterator<Item = &FusedConvolution> {
        let (first, second) = match self {
            Self::Convolution { first, second } => (Some(first), second.as_ref()),
            Self::Unary { .. } | Self::Binary { .. } => (None, None),
        };
        first.into_iter().chain(second).map(AsRef::as_ref)
    }

    /// Returns the ranges that are read.
    fn inputs(&self) -> impl Iterator<Item = ChannelRange> {
        let convolutions = self.convolutions().flat_map(|convolution| {
            let FusedConvolution {
                taps,
                residual,
                accumulate_into,
                ..
            } = convolution;
            taps.iter()
                .map(|tap| tap.range)
                .chain(*residual)
                .chain(*accumulate_into)
        });
        let others = match *self {
            Self::Unary { in_out, .. } => [Some(in_out), None],
            Self::Binary {
                operation: Binary::Copy,
                operand,
                ..
            } => [Some(operand), None],
            Self::Binary {
                operation: Binary::Add | Binary::Multiply,
                operand,
                in_out,
            } => [Some(operand), Some(in_out)],
            Self::Convolution { .. } => [None, None],
        };
        convolutions.chain(others.into_iter().flatten())
    }

    /// Returns the ranges that are written.
    fn targets(&self) -> impl Iterator<Item = ChannelRange> {
        let in_out = match *self {
            Self::Unary { in_out, .. } | Self::Binary { in_out, .. } => Some(in_out),
            Self::Convolution { .. } => None,
        };
        self.convolutions()
            .flat_map(FusedConvolution::targets)
            .chain(in_out)
    }

    fn reads(&self, buffer: usize) -> bool {
        self.inputs().any(|range| range.buffer == buffer)
    }

    fn writes(&self, buffer: usize) -> bool {
        self.targets().any(|range| range.buffer == buffer)
    }
}

/// Fuses operations into passes. `output` is read after the last pass.
pub fn fuse(ops: Vec<LoweredOp<'_>>, layout: &Layout, output: ChannelRange) -> Vec<FusedPass> {
    let passes = merge(separate_passes(ops, layout), merge_into_convolution);
    let mut passes = merge(passes, interleave);
    mark_transient(&mut passes, &layout.buffers, output);
    passes
}

/// Converts passes to those of the kernels.
pub fn with_views(passes: Vec<FusedPass>, buffers: &[SignalBuffer]) -> Passes {
    let mut table = ViewTable::default();
    for range in passes
        .iter()
        .flat_map(|pass| pass.inputs().chain(pass.targets()))
    {
        table.index(range);
    }
    let mut converted = Passes::new(table.views(buffers));
    for pass in passes {
        match pass {
            FusedPass::Convolution { first, second } => {
                let convolutions = [Some(first), second].into_iter().flatten();
                converted.convolve(
                    convolutions
                        .map(|convolution| convolution.with_views(&mut table))
                        .collect(),
                );
            }
            FusedPass::Unary { operation, in_out } => {
                converted.apply(operation, table.index(in_out))
            }
            FusedPass::Binary {
                operation,
                operand,
                in_out,
            } => {
                converted.combine(operation, table.index(operand), table.index(in_out));
            }
        }
    }
    converted
}

/// Returns the passes of each operation by itself.
fn separate_passes(ops: Vec<LoweredOp<'_>>, layout: &Layout) -> Vec<FusedPass> {
    let mut passes = Vec::new();
    for (index, op) in ops.into_iter().enumerate() {
        let output = op.output();
        let in_out = layout.range(output);
        let mut copy = |input: usize| {
            if !layout.is_in_place(input, output) {
                passes.push(FusedPass::Binary {
                    operation: Binary::Copy,
                    operand: layout.range(input),
                    in_out,
                });
            }
        };
        match op {
            LoweredOp::Convolution {
                parts, residual, ..
            } => {
                let first = convolution(&parts, residual, in_out, layout);
                passes.push(FusedPass::Convolution {
                    first: first.into(),
                    second: None,
                });
            }
            LoweredOp::Unary {
                operation, input, ..
            } => {
                copy(input);
                passes.push(FusedPass::Unary { operation, in_out });
            }
            LoweredOp::Fold {
                operation, inputs, ..
            } => {
                let initial = layout.initial_input(index);
                copy(inputs[initial]);
                for (_, &input) in inputs
                    .iter()
                    .enumerate()
                    .filter(|&(position, _)| position != initial)
                {
                    passes.push(FusedPass::Binary {
                        operation,
                        operand: layout.range(input),
                        in_out,
                    });
                }
            }
        }
    }
    passes
}

fn convolution(
    parts: &[ConvolutionPart<'_>],
    residual: Option<usize>,
    output: ChannelRange,
    layout: &Layout,
) -> FusedConvolution {
    let mut taps = Vec::new();
    // Part, tap and channel of each input of the sum.
    let mut inputs = Vec::new();
    for part in parts {
        let delays = (0..part.kernel)
            .rev()
            .map(|tap| tap * part.dilation)
            .collect();
        taps.push(TapSource {
            range: layout.range(part.value),
            delays,
        });
        for tap in 0..part.kernel {
            inputs.extend((0..part.inputs).map(|channel| (part, tap, channel)));
        }
    }
    let bias: Vec<f32> = (0..output.channels)
        .map(|output| parts.iter().map(|part| part.bias[output]).sum())
        .collect();
    let weights = TapWeights::new(inputs.len(), &bias, |index, input| {
        let (part, tap, channel) = inputs[input];
        let (group_inputs, group_outputs) =
            (part.inputs / part.groups, output.channels / part.groups);
        let is_same_group = index / group_outputs == channel / group_inputs;
        let at = (index * group_inputs + channel % group_inputs) * part.kernel + tap;
        if is_same_group { part.weight[at] } else { 0.0 }
    });
    let residual = residual.map(|value| layout.range(value));
    FusedConvolution {
        weights,
        taps,
        residual,
        output,
        activation: None,
        accumulate_into: None,
        transient: false,
    }
}

/// Offers each pass to those before it; returns the passes that none of them took.
fn merge(
    passes: Vec<FusedPass>,
    merge_into: impl Fn(&mut [FusedPass], FusedPass) -> Option<FusedPass>,
) -> Vec<FusedPass> {
    passes.into_iter().fold(Vec::new(), |mut merged, pass| {
        if let Some(pass) = merge_into(&mut merged, pass) {
            merged.push(pass);
        }
        merged
    })
}

/// Makes an activation or an accumulation part of the convolution before it, unless a pass between
/// them is in the way; else returns it.
fn merge_into_convolution(before: &mut [FusedPass], pass: FusedPass) -> Option<FusedPass> {
    match pass {
        FusedPass::Unary { operation, in_out } => {
            if let Some(FusedPass::Convolution {
                first,
                second: None,
            }) = before.last_mut()
                && let FusedConvolution {
                    output,
                    activation: activation @ None,
                    accumulate_into: None,
                    ..
                } = &mut **first
                && *output == in_out
            {
                *activation = Some(operation);
                return None;
            }
        }
        FusedPass::Binary {
            operation: Binary::Add,
            operand,
            in_out,
        } => {
            let is_related = |pass: &&mut FusedPass| {
                pass.writes(operand.buffer)
                    || pass.reads(in_out.buffer)
                    || pass.writes(in_out.buffer)
            };
            if let Some(FusedPass::Convolution {
                first,
                second: None,
            }) = before.iter_mut().rev().find(is_related)
                && let FusedConvolution {
                    output,
                    accumulate_into: accumulate_into @ None,
                    taps,
                    ..
                } = &mut **first
                && *output == operand
                && taps.iter().all(|tap| tap.range.buffer != in_out.buffer)
            {
                *accumulate_into = Some(in_out);
                return None;
            }
        }
        FusedPass::Binary {
            operation: Binary::Copy | Binary::Multiply,
            ..
        }
        | FusedPass::Convolution { .. } => {}
    }
    Some(pass)
}

/// Makes a convolution the second of the pass before it, if the two can be interleaved; else
/// returns its pass.
fn interleave(before: &mut [FusedPass], pass: FusedPass) -> Option<FusedPass> {
    match (before.last_mut(), pass) {
        (
            Some(FusedPass::Convolution {
                first,
                second: second @ None,
            }),
            FusedPass::Convolution {
                first: next,
                second: None,
            },
        ) if first.can_interleave_with(&next) && next.can_interleave_with(first) => {
            *second = Some(next);
            None
        }
        (_, pass) => Some(pass),
    }
}

/// Marks first convolutions whose output only the second convolution of their pass reads.
fn mark_transient(passes: &mut [FusedPass], buffers: &[SignalBuffer], output: ChannelRange) {
    for index in 0..passes.len() {
        let Some((pass, later)) = passes[index..].split_first_mut() else {
            return;
        };
        let FusedPass::Convolution {
            first,
            second: Some(second),
        } = pass
        else {
            continue;
        };
        let buffer = first.output.buffer;
        let next = later
            .iter()
            .find(|pass| pass.reads(buffer) || pass.writes(buffer));
        let is_read = next.map_or(output.buffer == buffer, |next| next.reads(buffer));
        let is_residual = second
            .residual
            .is_some_and(|residual| residual.buffer == buffer);
        first.transient = !is_read && !buffers[buffer].has_past() && !is_residual;
    }
}

#[cfg(test)]
mod tests;
