//! Importance of channels to the weights that read them, and compensation for removed ones.

use std::collections::BTreeSet;

use ondes_engine::model::{Header, Model, Tensor, Weights};

use super::activity::Activity;
use super::channels::ChannelClasses;
use super::readers::{Reader, readers};

/// Returns the importance of each class, at its representative channel: over all readers, the sum
/// of its share `Var(x) ‖w‖²` of what they read. A constant channel has no importance: a bias
/// replaces it (An, Zhao, Yu, Tang & Wang, "Fluctuation-based adaptive structured pruning for large
/// language models", AAAI 2024).
pub(super) fn importance(
    model: &Model,
    channels: &ChannelClasses,
    activity: &Activity,
) -> Vec<f64> {
    let mut importance = vec![0.0; channels.len()];
    for_each_reader(model.header(), |method, reader| {
        let tensor = tensor(model.weights(), &reader.matrix);
        let Some(moments) = activity.moments(method, reader.value) else {
            return;
        };
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
            importance[channels.class(channel)] += energy / sum;
        }
    });
    importance
}

/// Returns the weights with the mean contribution of removed classes added to the biases of their
/// readers.
pub(super) fn compensate_biases(
    model: &Model,
    channels: &ChannelClasses,
    activity: &Activity,
    removed: &BTreeSet<usize>,
) -> Weights {
    let mut weights = model.weights().clone();
    let mut done = BTreeSet::new();
    for_each_reader(model.header(), |method, reader| {
        let Some(moments) = activity.moments(method, reader.value) else {
            return;
        };
        // Methods may share weights.
        if !done.insert(reader.matrix.clone()) {
            return;
        }
        let matrix = tensor(model.weights(), &reader.matrix);
        let values = matrix.floats();
        let mut bias = tensor(&weights, &reader.bias).floats().into_owned();
        for ((column, moments), channel) in moments
            .iter()
            .enumerate()
            .zip(channels.value(method, reader.value))
        {
            if !removed.contains(&channels.class(channel)) {
                continue;
            }
            for (sum, taps) in bias
                .iter_mut()
                .zip(reader.column(matrix.shape(), &values, column))
            {
                let taps: f64 = taps.iter().map(|weight| f64::from(*weight)).sum();
                *sum += (reader.tap_share * taps * moments.mean) as f32;
            }
        }
        weights.insert(&reader.bias, Tensor::new(&[bias.len()], bias));
    });
    weights
}

fn for_each_reader(header: &Header, mut action: impl FnMut(usize, &Reader)) {
    for (index, method) in header.methods.iter().enumerate() {
        let shapes = method.infer().expect("a method of a checked model fits");
        readers(method, &shapes)
            .iter()
            .for_each(|reader| action(index, reader));
    }
}

fn tensor<'a>(weights: &'a Weights, name: &str) -> &'a Tensor {
    let (node, parameter) = name
        .rsplit_once('.')
        .expect("weights are named NODE.PARAMETER");
    weights.get(node, parameter)
}
