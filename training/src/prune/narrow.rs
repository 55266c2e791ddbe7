//! Removal of channels from a model's graph and weights.

use std::collections::BTreeSet;

use ondes_engine::model::{Method, Model, ModelError, Op, Tensor, Weights};

use super::channels::ChannelClasses;

/// Returns the model without the classes in `removed`.
///
/// # Errors
/// Returns [`ModelError`] if the result is invalid, which is a bug in the classes.
pub fn narrow(model: &Model, channels: &ChannelClasses, removed: &BTreeSet<usize>) -> Result<Model, ModelError> {
    let mut header = model.header().clone();
    let mut weights = Weights::default();
    for (method_index, (method, original)) in header.methods.iter_mut().zip(&model.header().methods).enumerate() {
        let shapes = original.infer()?;
        // `[value]`: channels that are kept, relative to the value's first.
        let kept: Vec<Vec<usize>> = (0..shapes.values.len())
            .map(|value| {
                let all = channels.value(method_index, value);
                let first = all.start;
                all.filter(|&channel| !removed.contains(&channels.class(channel)))
                    .map(|channel| channel - first)
                    .collect()
            })
            .collect();
        for (index, reads) in shapes.reads.iter().enumerate() {
            let output = method.inputs.len() + index;
            let (input, outputs) = (&kept[reads[0]], &kept[output]);
            let groups = match &original.nodes[index].op {
                Op::Conv1d { groups, .. } => *groups,
                _ => 1,
            };
            let cut = NodeCut { input, outputs, groups, inputs: shapes.values[reads[0]].channels };
            narrow_node(method, index, &cut, shapes.values[output].channels);
            for spec in original.nodes[index].op.weights(&[shapes.values[reads[0]]]) {
                let tensor = model.weights().get(&method.nodes[index].name, spec.name);
                let op = &original.nodes[index].op;
                weights
                    .insert(format!("{}.{}", method.nodes[index].name, spec.name), cut.weight(op, spec.name, tensor));
            }
        }
    }
    Model::new(header, weights)
}

/// Channels that a node keeps.
struct NodeCut<'a> {
    /// Channels of the first input that are kept.
    input: &'a [usize],
    /// Channels of the output that are kept.
    outputs: &'a [usize],
    /// Groups of a convolution before.
    groups: usize,
    /// Channels of the first input before.
    inputs: usize,
}

impl NodeCut<'_> {
    /// Returns the number of groups that are kept.
    fn groups(&self) -> usize {
        let length = self.inputs / self.groups;
        self.input.iter().map(|channel| channel / length).collect::<BTreeSet<_>>().len()
    }

    fn weight(&self, op: &Op, name: &str, tensor: &Tensor) -> Tensor {
        // Rows of a recurrent layer: all units of a gate, then those of the next.
        let rows = |gates: usize, hidden: usize| -> Vec<usize> {
            (0..gates).flat_map(|gate| self.outputs.iter().map(move |unit| gate * hidden + unit)).collect()
        };
        let (input, outputs) = (self.input.to_vec(), self.outputs.to_vec());
        let axes = match (op, name) {
            (Op::Gru { hidden, .. } | Op::Lstm { hidden, .. }, _) => {
                let gates = if matches!(op, Op::Gru { .. }) { 3 } else { 4 };
                match name {
                    "weight_ih" => vec![rows(gates, *hidden), input],
                    "weight_hh" => vec![rows(gates, *hidden), outputs],
                    "bias_ih" | "bias_hh" => vec![rows(gates, *hidden)],
                    _ => vec![outputs],
                }
            }
            // Groups are removed as a whole, so a group's inputs stay.
            (Op::Conv1d { groups, .. }, "weight") if *groups > 1 => {
                vec![outputs, (0..tensor.shape()[1]).collect(), (0..tensor.shape()[2]).collect()]
            }
            (Op::Conv1d { .. }, "weight") => vec![outputs, input, (0..tensor.shape()[2]).collect()],
            (Op::ConvTranspose1d { .. }, "weight") => vec![input, outputs, (0..tensor.shape()[2]).collect()],
            (Op::Linear { .. }, "weight") => vec![outputs, input],
            (Op::Convolve { .. }, _) | (Op::Prelu { slopes: 1 }, _) => vec![(0..tensor.shape()[0]).collect()],
            _ => vec![outputs],
        };
        select(tensor, &axes)
    }
}

/// Updates the sizes in a node.
fn narrow_node(method: &mut Method, index: usize, cut: &NodeCut<'_>, channels_before: usize) {
    let kept = cut.outputs.len();
    match &mut method.nodes[index].op {
        Op::Conv1d { outputs, groups, .. } => {
            *groups = cut.groups();
            *outputs = kept;
        }
        Op::Linear { outputs } | Op::ConvTranspose1d { outputs, .. } => *outputs = kept,
        Op::Gru { hidden, .. } | Op::Lstm { hidden, .. } => *hidden = kept,
        Op::Prelu { slopes } if *slopes == channels_before => *slopes = kept,
        Op::Split { start, channels } => {
            *start = cut.input.iter().filter(|channel| **channel < *start).count();
            *channels = kept;
        }
        // Their channel counts follow from their inputs or are never cut.
        Op::LayerNorm
        | Op::Activation(_)
        | Op::Prelu { .. }
        | Op::Snake
        | Op::Gate
        | Op::Film
        | Op::Add
        | Op::Multiply
        | Op::Concat
        | Op::Affine { .. }
        | Op::Delay { .. }
        | Op::Latency { .. }
        | Op::Interleave { .. }
        | Op::FlipOddBands
        | Op::Noise { .. }
        | Op::ShapedNoise { .. }
        | Op::Harmonic
        | Op::FilteredNoise
        | Op::Convolve { .. } => {}
    }
}

/// Selects values of a tensor by their indices on each axis.
fn select(tensor: &Tensor, axes: &[Vec<usize>]) -> Tensor {
    let mut positions = vec![0];
    for (axis, extent) in axes.iter().zip(tensor.shape()) {
        positions =
            positions.iter().flat_map(|position| axis.iter().map(move |index| position * extent + index)).collect();
    }
    let shape: Vec<usize> = axes.iter().map(Vec::len).collect();
    let values = tensor.floats();
    Tensor::new(&shape, positions.into_iter().map(|position| values[position]).collect())
}
