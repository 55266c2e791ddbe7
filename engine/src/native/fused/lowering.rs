//! From the nodes of a method to operations that have a pass over rows.

use std::borrow::Cow;

use ondes_kernels::{Binary, Unary};

use crate::model::graph::Shapes;
use crate::model::{Method, Weights};
use crate::ops::RowPass;

/// Maximum number of weights of a grouped convolution that is run as an ungrouped one, most of
/// whose weights are zero.
const MAX_UNGROUPED_WEIGHTS: usize = 4096;

/// Convolution of one value.
pub struct ConvolutionPart<'a> {
    /// Index of the value that is read.
    pub value: usize,
    pub inputs: usize,
    pub kernel: usize,
    pub dilation: usize,
    pub groups: usize,
    /// `[output][input of the group][tap]`
    pub weight: Cow<'a, [f32]>,
    /// `[output]`
    pub bias: Cow<'a, [f32]>,
}

/// Operation on values of a method, given by their indices.
pub enum LoweredOp<'a> {
    /// Sum of convolutions and a residual.
    Convolution {
        parts: Vec<ConvolutionPart<'a>>,
        residual: Option<usize>,
        output: usize,
    },
    Unary {
        operation: Unary,
        input: usize,
        output: usize,
    },
    /// Combines all inputs in their order.
    Fold {
        operation: Binary,
        inputs: Vec<usize>,
        output: usize,
    },
}

impl LoweredOp<'_> {
    /// Returns the values that are read.
    pub fn inputs(&self) -> Vec<usize> {
        match self {
            Self::Convolution {
                parts, residual, ..
            } => parts
                .iter()
                .map(|part| part.value)
                .chain(*residual)
                .collect(),
            Self::Unary { input, .. } => vec![*input],
            Self::Fold { inputs, .. } => inputs.clone(),
        }
    }

    /// Returns the value that is computed.
    pub fn output(&self) -> usize {
        match *self {
            Self::Convolution { output, .. }
            | Self::Unary { output, .. }
            | Self::Fold { output, .. } => output,
        }
    }
}

/// Lowers all nodes of a method, or returns `None` if one of them has no pass over rows.
/// Convolutions that are only read by a sum become part of it; a split becomes a channel range and
/// needs no operation.
pub fn lower<'a>(
    method: &'a Method,
    shapes: &Shapes,
    weights: &'a Weights,
) -> Option<Vec<LoweredOp<'a>>> {
    let reads = count_reads(shapes);
    let ports = method.inputs.len();
    let mut ops: Vec<LoweredOp<'a>> = Vec::new();
    for (index, node) in method.nodes.iter().enumerate() {
        let (inputs, output) = (&shapes.reads[index], ports + index);
        let channels = shapes.values[inputs[0]].channels;
        let part = |kernel, dilation, groups| {
            let weight = |parameter: &str| weights.get(&node.name, parameter).floats();
            let (weight, bias) = (weight("weight"), weight("bias"));
            ConvolutionPart {
                value: inputs[0],
                inputs: channels,
                kernel,
                dilation,
                groups,
                weight,
                bias,
            }
        };
        // Without a pass over rows, the method is run layer by layer.
        let op = match node.op.operation().row_pass()? {
            RowPass::Convolution {
                kernel,
                dilation,
                groups,
            } => {
                let outputs = shapes.values[output].channels;
                if groups > 1 && channels * outputs * kernel > MAX_UNGROUPED_WEIGHTS {
                    return None;
                }
                LoweredOp::Convolution {
                    parts: vec![part(kernel, dilation, groups)],
                    residual: None,
                    output,
                }
            }
            RowPass::Sum => sum(&mut ops, inputs, &reads, output)?,
            RowPass::Product if shapes.values[inputs[1]].channels == channels => LoweredOp::Fold {
                operation: Binary::Multiply,
                inputs: inputs.clone(),
                output,
            },
            RowPass::Product => return None,
            RowPass::Unary(operation) => LoweredOp::Unary {
                operation,
                input: inputs[0],
                output,
            },
            RowPass::Range { .. } => continue,
        };
        ops.push(op);
    }
    Some(ops)
}

/// Returns how often each value is read, by nodes and by output ports.
fn count_reads(shapes: &Shapes) -> Vec<usize> {
    let mut reads = vec![0; shapes.values.len()];
    shapes
        .reads
        .iter()
        .flatten()
        .chain(&shapes.shown)
        .for_each(|&value| reads[value] += 1);
    reads
}

/// Lowers a sum. Convolutions among its inputs that nothing else reads are taken out of `ops` and
/// summed in the same pass.
fn sum<'a>(
    ops: &mut Vec<LoweredOp<'a>>,
    inputs: &[usize],
    reads: &[usize],
    output: usize,
) -> Option<LoweredOp<'a>> {
    let mut parts = Vec::new();
    let mut others = Vec::new();
    for &value in inputs {
        let own = ops.iter().position(|op| {
            matches!(op, LoweredOp::Convolution { residual: None, output, .. } if *output == value && reads[value] == 1)
        });
        match own.map(|own| ops.remove(own)) {
            Some(LoweredOp::Convolution { parts: own, .. }) => parts.extend(own),
            _ => others.push(value),
        }
    }
    // The convolution with the most taps comes last; it reads what was computed last.
    parts.sort_by_key(|part| part.kernel);
    match (parts.is_empty(), others.len()) {
        (true, _) => Some(LoweredOp::Fold {
            operation: Binary::Add,
            inputs: others,
            output,
        }),
        (false, 0 | 1) => Some(LoweredOp::Convolution {
            parts,
            residual: others.pop(),
            output,
        }),
        // A convolution plus several other values has no pass.
        (false, _) => None,
    }
}
