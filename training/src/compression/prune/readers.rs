//! Weight matrices that read channels. Removing a channel changes their output, which a bias can
//! compensate for.

use std::collections::BTreeSet;

use ondes_engine::model::graph::Shapes;
use ondes_engine::model::{Method, Node, Op, WeightAxis, WeightSpec};
use ondes_engine::ops::ConvTranspose1d;

/// Matrix whose columns are the channels of a value.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// `NODE.PARAMETER` of the matrix, and of the bias that is added to its output.
    pub matrix: String,
    pub bias: String,
    /// Index of the value in its method.
    pub value: usize,
    /// Columns come first: `[column][row][tap]` instead of `[row][column][tap]`.
    transposed: bool,
    /// Share of the taps that contribute to one output frame.
    pub tap_share: f64,
}

/// Returns the readers of a method. Grouped convolutions are removed together with the channels
/// that they read, so they are left out.
pub(super) fn readers(method: &Method, shapes: &Shapes) -> Vec<Reader> {
    let mut readers = Vec::new();
    for (index, Node { name, op, .. }) in method.nodes.iter().enumerate() {
        let (input, output) = (shapes.reads[index][0], method.inputs.len() + index);
        let tap_share = match op {
            Op::ConvTranspose1d(ConvTranspose1d { stride, .. }) => 1.0 / *stride as f64,
            _ => 1.0,
        };
        let mut add = |spec: &WeightSpec, value: usize, transposed: bool| {
            let [matrix, bias] = [spec.name, &spec.name.replace("weight", "bias")]
                .map(|weight| format!("{name}.{weight}"));
            readers.push(Reader {
                matrix,
                bias,
                value,
                transposed,
                tap_share,
            });
        };
        for spec in op.weights(&[]) {
            match spec.axes {
                [
                    WeightAxis::Outputs | WeightAxis::GatedOutputs,
                    WeightAxis::Inputs,
                    ..,
                ] => add(&spec, input, false),
                [WeightAxis::Inputs, WeightAxis::Outputs, ..] => add(&spec, input, true),
                // Its own output of the frame before.
                [WeightAxis::GatedOutputs, WeightAxis::Outputs] => add(&spec, output, false),
                _ => {}
            }
        }
    }
    readers
}

/// Returns the nodes of a method whose values weight matrices read.
pub(super) fn read_nodes(method: &Method, shapes: &Shapes) -> BTreeSet<usize> {
    let ports = method.inputs.len();
    readers(method, shapes)
        .iter()
        .filter_map(|reader| reader.value.checked_sub(ports))
        .collect()
}

impl Reader {
    /// Returns the taps of a column, row by row, of a matrix of that shape.
    pub fn column<'a>(
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
            let position = if transposed {
                column * rows + row
            } else {
                row * columns + column
            };
            &values[position * taps..(position + 1) * taps]
        })
    }
}
