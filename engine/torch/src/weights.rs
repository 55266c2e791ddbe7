//! Weights as libtorch tensors.

use std::collections::BTreeMap;

use ondes_engine::model::{Tensor as PlainTensor, Weights};
use tch::{Device, Kind, Tensor};

/// Weights by `NODE.PARAMETER`.
#[derive(Debug)]
pub struct TorchWeights(pub BTreeMap<String, Tensor>);

impl TorchWeights {
    /// Copies weights to a device as f32, whatever their storage.
    #[must_use]
    pub fn new(weights: &Weights, device: Device) -> Self {
        let tensor = |plain: &PlainTensor| {
            let shape: Vec<i64> = plain.shape().iter().map(|&extent| extent as i64).collect();
            Tensor::from_slice(&plain.floats())
                .view(shape.as_slice())
                .to_device(device)
        };
        Self(
            weights
                .iter()
                .map(|(name, plain)| (name.to_owned(), tensor(plain)))
                .collect(),
        )
    }

    /// Converts all weights to a kind.
    #[must_use]
    pub fn to_kind(self, kind: Kind) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|(name, weight)| (name, weight.to_kind(kind)))
                .collect(),
        )
    }

    /// Returns weights that share the same memory.
    #[must_use]
    pub fn shallow_clone(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|(name, weight)| (name.clone(), weight.shallow_clone()))
                .collect(),
        )
    }

    /// Returns a weight of a node.
    ///
    /// # Panics
    /// Panics if the node has no such weight.
    pub fn get(&self, node: &str, parameter: &str) -> &Tensor {
        let name = format!("{node}.{parameter}");
        self.0
            .get(&name)
            .unwrap_or_else(|| panic!("no weight {name:?}"))
    }

    /// Copies the weights to a model's.
    ///
    /// # Errors
    /// Returns libtorch's error.
    pub fn to_plain(&self) -> Result<Weights, tch::TchError> {
        let mut weights = Weights::default();
        for (name, tensor) in &self.0 {
            weights.insert(name, to_plain(tensor)?);
        }
        Ok(weights)
    }
}

/// Copies a tensor to a model's.
///
/// # Errors
/// Returns libtorch's error.
pub fn to_plain(tensor: &Tensor) -> Result<PlainTensor, tch::TchError> {
    let shape: Vec<usize> = tensor
        .size()
        .iter()
        .map(|&extent| extent as usize)
        .collect();
    let flat = tensor
        .detach()
        .to_device(Device::Cpu)
        .to_kind(Kind::Float)
        .contiguous()
        .view(-1);
    Ok(PlainTensor::new(&shape, Vec::<f32>::try_from(&flat)?))
}
