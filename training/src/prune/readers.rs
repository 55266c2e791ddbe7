//! Who reads a channel with weights of its own: the places where a channel can be missed, and made up for.

use std::collections::BTreeSet;

use ondes_engine::model::{Header, Method, Model, Node, Op, Tensor, Weights, graph::Shapes};

use super::activity::Activity;
use super::channels::Channels;

/// A matrix and the value whose channels are its columns.
#[derive(Clone, Debug)]
struct Reader {
    /// `NODE.PARAMETER` of the matrix and of the bias that is added to what it makes.
    matrix: String,
    bias: String,
    /// The value in its method.
    value: usize,
    /// The columns come first: `[column][row][tap]` instead of `[row][column][tap]`.
    transposed: bool,
    /// Taps that one frame of output hears, as a share of all.
    heard: f64,
}

/// The readers of a method. A grouped convolution goes with the channels that it reads, so it cannot miss them.
fn readers(method: &Method, shapes: &Shapes) -> Vec<Reader> {
    let mut readers = Vec::new();
    for (index, Node { name, op, .. }) in method.nodes.iter().enumerate() {
        let (input, output) = (shapes.reads[index][0], method.inputs.len() + index);
        let mut add = |matrix: &str, bias: &str, value: usize, transposed: bool, heard: f64| {
            let [matrix, bias] = [matrix, bias].map(|parameter| format!("{name}.{parameter}"));
            readers.push(Reader { matrix, bias, value, transposed, heard });
        };
        match *op {
            Op::Linear { .. } | Op::Conv1d { groups: 1, .. } => add("weight", "bias", input, false, 1.0),
            Op::ConvTranspose1d { stride, .. } => add("weight", "bias", input, true, 1.0 / stride as f64),
            Op::Gru { .. } => {
                add("weight_ih", "bias_ih", input, false, 1.0);
                add("weight_hh", "bias_hh", output, false, 1.0);
            }
            // Both biases are summed: one is enough.
            Op::Lstm { .. } => {
                add("weight_ih", "bias_ih", input, false, 1.0);
                add("weight_hh", "bias_ih", output, false, 1.0);
            }
            _ => {}
        }
    }
    readers
}

/// The nodes of a method whose values are read by weights.
pub(super) fn read_nodes(method: &Method, shapes: &Shapes) -> BTreeSet<usize> {
    let ports = method.inputs.len();
    readers(method, shapes).iter().filter_map(|reader| reader.value.checked_sub(ports)).collect()
}

impl Reader {
    /// The weights of a column, row by row, each the list of its taps, of a tensor of that shape.
    fn column<'a>(
        &self,
        shape: &[usize],
        values: &'a [f32],
        column: usize,
    ) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let taps: usize = shape[2..].iter().product();
        let (rows, columns, transposed) = match self.transposed {
            true => (shape[1], shape[0], true),
            false => (shape[0], shape[1], false),
        };
        (0..rows).map(move |row| {
            let place = if transposed { column * rows + row } else { row * columns + column };
            &values[place * taps..(place + 1) * taps]
        })
    }
}

/// What each class is worth, by the channel that stands for it: the sum, over all that read it, of the share that it has in how
/// much what they read moves, `Var(x) ‖w‖²`. What never moves is worth nothing: a bias takes its place (An, Zhao, Yu, Tang & Wang,
/// "Fluctuation-based adaptive structured pruning for large language models", AAAI 2024).
pub(super) fn worth(model: &Model, channels: &Channels, activity: &Activity) -> Vec<f64> {
    let mut worth = vec![0.0; channels.len()];
    each(model.header(), |method, reader| {
        let tensor = tensor(model.weights(), &reader.matrix);
        let Some(moments) = activity.of(method, reader.value) else { return };
        let all = channels.value(method, reader.value);
        let values = tensor.floats();
        let energies: Vec<f64> = moments
            .iter()
            .enumerate()
            .map(|(column, moments)| {
                let column = reader.column(tensor.shape(), &values, column);
                let squares = column.flatten().map(|weight| f64::from(*weight).powi(2));
                moments.variance * squares.sum::<f64>()
            })
            .collect();
        let sum = energies.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for (channel, energy) in all.zip(energies) {
            worth[channels.class(channel)] += energy / sum;
        }
    });
    worth
}

/// The weights with what the classes that go have said on average put into the biases of those who read them.
pub(super) fn make_up(model: &Model, channels: &Channels, activity: &Activity, gone: &BTreeSet<usize>) -> Weights {
    let mut weights = model.weights().clone();
    let mut done = BTreeSet::new();
    each(model.header(), |method, reader| {
        let Some(moments) = activity.of(method, reader.value) else { return };
        // Methods may share weights.
        if !done.insert(reader.matrix.clone()) {
            return;
        }
        let matrix = tensor(model.weights(), &reader.matrix);
        let values = matrix.floats();
        let mut bias = tensor(&weights, &reader.bias).floats().into_owned();
        for ((column, moments), channel) in moments.iter().enumerate().zip(channels.value(method, reader.value)) {
            if !gone.contains(&channels.class(channel)) {
                continue;
            }
            for (sum, taps) in bias.iter_mut().zip(reader.column(matrix.shape(), &values, column)) {
                let taps: f64 = taps.iter().map(|weight| f64::from(*weight)).sum();
                *sum += (reader.heard * taps * moments.mean) as f32;
            }
        }
        weights.insert(&reader.bias, Tensor::new(&[bias.len()], bias));
    });
    weights
}

fn each(header: &Header, mut with: impl FnMut(usize, &Reader)) {
    for (index, method) in header.methods.iter().enumerate() {
        let shapes = method.infer().expect("a method of a checked model fits");
        readers(method, &shapes).iter().for_each(|reader| with(index, reader));
    }
}

fn tensor<'a>(weights: &'a Weights, name: &str) -> &'a Tensor {
    let (node, parameter) = name.rsplit_once('.').expect("weights are named NODE.PARAMETER");
    weights.get(node, parameter)
}
