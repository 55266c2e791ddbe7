//! Unstructured pruning: single weights become zero. The file compresses better, but the model is no faster.

use anyhow::ensure;
use ondes_engine::model::{Model, Tensor, Weights};

/// Sets the smallest weights of each matrix to zero, a share of `ratio` (Han, Pool, Tran & Dally, "Learning both
/// weights and connections for efficient neural networks", NeurIPS 2015). Biases, gains and impulse responses are kept.
///
/// # Errors
/// Returns an error if the model has no matrices.
pub fn prune_weights(model: &Model, ratio: f64) -> anyhow::Result<Model> {
    let is_matrix = |tensor: &Tensor| tensor.shape().len() > 1;
    ensure!(model.weights().iter().any(|(_, tensor)| is_matrix(tensor)), "the model has no matrices to prune");
    let mut weights = Weights::default();
    for (name, tensor) in model.weights().iter() {
        let mut values = tensor.floats().into_owned();
        if is_matrix(tensor) {
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

/// Returns the share of all weights that are zero, 0 to 1.
#[must_use]
pub fn zero_share(model: &Model) -> f64 {
    let zeros = |tensor: &Tensor| tensor.floats().iter().filter(|value| **value == 0.0).count();
    model.weights().iter().map(|(_, tensor)| zeros(tensor)).sum::<usize>() as f64 / model.parameters().max(1) as f64
}
