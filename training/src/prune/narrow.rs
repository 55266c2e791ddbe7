//! A narrower model: some channels are cut out of its graph and its weights.

use std::collections::BTreeSet;

use ondes_engine::model::{ModelError, Method, Model, Op, Tensor, Weights};

use super::channels::Channels;

/// The model without the classes that are to go.
///
/// # Errors
/// [`ModelError`] when what is left does not fit, which is a mistake in the classes.
pub fn narrow(model: &Model, channels: &Channels, gone: &BTreeSet<usize>) -> Result<Model, ModelError> {
    let mut header = model.header().clone();
    let mut weights = Weights::default();
    for (index, (method, whole)) in header.methods.iter_mut().zip(&model.header().methods).enumerate() {
        let shapes = whole.infer()?;
        // `[value]`: the channels that stay.
        let kept: Vec<Vec<usize>> = (0..shapes.values.len())
            .map(|value| {
                let all = channels.value(index, value);
                let first = all.start;
                all.filter(|&channel| !gone.contains(&channels.class(channel))).map(|channel| channel - first).collect()
            })
            .collect();
        for (place, reads) in shapes.reads.iter().enumerate() {
            let output = method.inputs.len() + place;
            let (input, outputs) = (&kept[reads[0]], &kept[output]);
            let groups = match &whole.nodes[place].op {
                Op::Conv1d { groups, .. } => *groups,
                _ => 1,
            };
            let cut = Cut { input, outputs, groups, inputs: shapes.values[reads[0]].channels };
            narrow_node(method, place, &cut, shapes.values[output].channels);
            for spec in whole.nodes[place].op.weights(&[shapes.values[reads[0]]]) {
                let tensor = model.weights().get(&method.nodes[place].name, spec.name);
                let op = &whole.nodes[place].op;
                weights
                    .insert(format!("{}.{}", method.nodes[place].name, spec.name), cut.weight(op, spec.name, tensor));
            }
        }
    }
    Model::new(header, weights)
}

/// What stays of a node.
struct Cut<'a> {
    /// Channels of the first input that stay.
    input: &'a [usize],
    /// Channels of the output that stay.
    outputs: &'a [usize],
    /// Groups of a convolution before the cut.
    groups: usize,
    /// Channels of the first input before the cut.
    inputs: usize,
}

impl Cut<'_> {
    /// Groups that stay.
    fn groups(&self) -> usize {
        let length = self.inputs / self.groups;
        self.input.iter().map(|channel| channel / length).collect::<BTreeSet<_>>().len()
    }

    fn weight(&self, op: &Op, name: &str, tensor: &Tensor) -> Tensor {
        // The rows of a recurrent layer: all units of a gate, then those of the next.
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
            // Whole groups go, so that what a group reads stays as it is.
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

/// Brings the numbers of a node to what stays.
fn narrow_node(method: &mut Method, place: usize, cut: &Cut<'_>, whole: usize) {
    let stay = cut.outputs.len();
    match &mut method.nodes[place].op {
        Op::Conv1d { outputs, groups, .. } => {
            *groups = cut.groups();
            *outputs = stay;
        }
        Op::Linear { outputs } | Op::ConvTranspose1d { outputs, .. } => *outputs = stay,
        Op::Gru { hidden, .. } | Op::Lstm { hidden, .. } => *hidden = stay,
        Op::Prelu { slopes } if *slopes == whole => *slopes = stay,
        Op::Split { start, channels } => {
            *start = cut.input.iter().filter(|channel| **channel < *start).count();
            *channels = stay;
        }
        _ => {}
    }
}

/// The values of a tensor at those places of each axis.
fn select(tensor: &Tensor, axes: &[Vec<usize>]) -> Tensor {
    let mut places = vec![0];
    for (axis, extent) in axes.iter().zip(tensor.shape()) {
        places = places.iter().flat_map(|place| axis.iter().map(move |index| place * extent + index)).collect();
    }
    let shape: Vec<usize> = axes.iter().map(Vec::len).collect();
    let values = tensor.floats();
    Tensor::new(&shape, places.into_iter().map(|place| values[place]).collect())
}
