//! Unstructured pruning: single weights become zero. The file compresses better, but the model is
//! no faster.

use anyhow::ensure;
use ondes_engine::model::{Kind, Model, Tensor, Weights};

use crate::tasks::codec::network::FIXED;
use crate::tasks::generator;

/// Sets the smallest weights of each matrix to zero, a share of `ratio` (Han, Pool, Tran & Dally,
/// "Learning both weights and connections for efficient neural networks", NeurIPS 2015). Biases,
/// gains and impulse responses are kept.
///
/// # Errors
/// Returns an error if the model has no matrices.
pub fn prune_weights(model: &Model, ratio: f64) -> anyhow::Result<Model> {
    let kind = model.header().kind;
    let is_matrix = |name: &str, tensor: &Tensor| tensor.shape().len() > 1 && is_learnt(kind, name);
    ensure!(
        model
            .weights()
            .iter()
            .any(|(name, tensor)| is_matrix(name, tensor)),
        "the model has no matrices to prune"
    );
    let mut weights = Weights::default();
    for (name, tensor) in model.weights().iter() {
        let mut values = tensor.floats().into_owned();
        if is_matrix(name, tensor) {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()));
            // One weight of each matrix remains, since a matrix of zeros gets no gradient.
            let count = ((ratio * order.len() as f64).round() as usize).min(order.len() - 1);
            order[..count].iter().for_each(|&index| values[index] = 0.0);
        }
        weights.insert(name, Tensor::new(tensor.shape(), values));
    }
    Ok(Model::new(model.header().clone(), weights)?)
}

/// Tells whether training moves a weight: a codec's filter bank and the scale of its pitch are
/// fixed, and of a generator the prior is trained.
fn is_learnt(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Codec => !FIXED.iter().any(|fixed| name.starts_with(fixed)),
        Kind::Generator => generator::inspect::is_learnt(name),
        _ => true,
    }
}

/// Returns the share of all weights that are zero, 0 to 1.
#[must_use]
pub fn zero_share(model: &Model) -> f64 {
    let zeros = |tensor: &Tensor| {
        tensor
            .floats()
            .iter()
            .filter(|value| **value == 0.0)
            .count()
    };
    model
        .weights()
        .iter()
        .map(|(_, tensor)| zeros(tensor))
        .sum::<usize>() as f64
        / model.parameters().max(1) as f64
}
