//! Removal of channels from a model's graph and weights.

use std::collections::BTreeSet;

use ondes_engine::model::{Method, Model, ModelError, Op, Tensor, WeightAxis, WeightSpec, Weights};

use super::channels::ChannelClasses;

/// Returns the model without the classes in `removed`.
///
/// # Errors
/// Returns [`ModelError`] if the result is invalid, which is a bug in the classes.
pub fn narrow(
    model: &Model,
    channels: &ChannelClasses,
    removed: &BTreeSet<usize>,
) -> Result<Model, ModelError> {
    let mut header = model.header().clone();
    let mut weights = Weights::default();
    for (method_index, (method, original)) in header
        .methods
        .iter_mut()
        .zip(&model.header().methods)
        .enumerate()
    {
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
            let (inputs_before, outputs_before) = (
                shapes.values[reads[0]].channels,
                shapes.values[output].channels,
            );
            let cut = NodeCut {
                input,
                outputs,
                groups,
                inputs_before,
                outputs_before,
            };
            narrow_node(method, index, &cut);
            let node = &original.nodes[index];
            for spec in node.op.weights(&[shapes.values[reads[0]]]) {
                let tensor = cut.weight(&spec, model.weights().get(&node.name, spec.name));
                weights.insert(format!("{}.{}", node.name, spec.name), tensor);
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
    inputs_before: usize,
    /// Channels of the output before.
    outputs_before: usize,
}

impl NodeCut<'_> {
    /// Returns the number of groups that are kept.
    fn groups(&self) -> usize {
        let length = self.inputs_before / self.groups;
        self.input
            .iter()
            .map(|channel| channel / length)
            .collect::<BTreeSet<_>>()
            .len()
    }

    fn weight(&self, spec: &WeightSpec, tensor: &Tensor) -> Tensor {
        let axes = spec
            .axes
            .iter()
            .zip(tensor.shape())
            .map(|(axis, &extent)| match axis {
                WeightAxis::Inputs => self.input.to_vec(),
                WeightAxis::Outputs => self.outputs.to_vec(),
                WeightAxis::GatedOutputs => {
                    let gates = (0..extent).step_by(self.outputs_before);
                    gates
                        .flat_map(|gate| self.outputs.iter().map(move |unit| gate + unit))
                        .collect()
                }
                WeightAxis::Fixed => (0..extent).collect(),
            });
        select(tensor, &axes.collect::<Vec<Vec<usize>>>())
    }
}

/// Updates the sizes in a node.
fn narrow_node(method: &mut Method, index: usize, cut: &NodeCut<'_>) {
    let kept = cut.outputs.len();
    match &mut method.nodes[index].op {
        Op::Conv1d {
            outputs, groups, ..
        } => {
            *groups = cut.groups();
            *outputs = kept;
        }
        Op::Linear { outputs } | Op::ConvTranspose1d { outputs, .. } => *outputs = kept,
        Op::Gru { hidden, .. } | Op::Lstm { hidden, .. } => *hidden = kept,
        Op::Prelu { slopes } if *slopes == cut.outputs_before => *slopes = kept,
        Op::Split { start, channels } => {
            *start = cut
                .input
                .iter()
                .filter(|channel| **channel < *start)
                .count();
            *channels = kept;
        }
        // Their channel counts follow from their inputs or are never cut.
        Op::Attention { .. }
        | Op::LayerNorm
        | Op::Softmax
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
        | Op::DrawMixture { .. }
        | Op::DrawCategories { .. }
        | Op::ShapedNoise { .. }
        | Op::NearestCodes { .. }
        | Op::CodeSum { .. }
        | Op::Harmonic
        | Op::FilteredNoise
        | Op::Convolve { .. } => {}
    }
}

/// Selects values of a tensor by their indices on each axis.
fn select(tensor: &Tensor, axes: &[Vec<usize>]) -> Tensor {
    let mut positions = vec![0];
    for (axis, extent) in axes.iter().zip(tensor.shape()) {
        positions = positions
            .iter()
            .flat_map(|position| axis.iter().map(move |index| position * extent + index))
            .collect();
    }
    let shape: Vec<usize> = axes.iter().map(Vec::len).collect();
    let values = tensor.floats();
    Tensor::new(
        &shape,
        positions
            .into_iter()
            .map(|position| values[position])
            .collect(),
    )
}
