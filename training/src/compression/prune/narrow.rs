//! Removal of channels from a model's graph and weights.

use std::collections::BTreeSet;

use ondes_engine::model::{Model, ModelError, Tensor, Weights};
use ondes_engine::ops::{ChannelCut, WeightAxis, WeightSpec};

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
            let cut = ChannelCut {
                inputs: input,
                outputs,
                inputs_before: shapes.values[reads[0]].channels,
                outputs_before: shapes.values[output].channels,
            };
            method.nodes[index].op.narrow(&cut);
            let node = &original.nodes[index];
            for spec in node.op.weights(&[shapes.values[reads[0]]]) {
                let tensor = narrow_weight(&cut, &spec, model.weights().get(&node.name, spec.name));
                weights.insert(format!("{}.{}", node.name, spec.name), tensor);
            }
        }
    }
    Model::new(header, weights)?.with_attacks(model.attacks().cloned())
}

/// Returns the part of a weight that belongs to the channels that are kept.
fn narrow_weight(cut: &ChannelCut<'_>, spec: &WeightSpec, tensor: &Tensor) -> Tensor {
    let axes = spec
        .axes
        .iter()
        .zip(tensor.shape())
        .map(|(axis, &extent)| match axis {
            WeightAxis::Inputs => cut.inputs.to_vec(),
            WeightAxis::Outputs => cut.outputs.to_vec(),
            WeightAxis::GatedOutputs => {
                let gates = (0..extent).step_by(cut.outputs_before);
                gates
                    .flat_map(|gate| cut.outputs.iter().map(move |unit| gate + unit))
                    .collect()
            }
            WeightAxis::Fixed => (0..extent).collect(),
        });
    select(tensor, &axes.collect::<Vec<Vec<usize>>>())
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
