//! Weights as tensors of libtorch.

use std::collections::BTreeMap;

use ondes_engine::model::{Tensor as PlainTensor, Weights};
use tch::{Device, Kind, Tensor};

/// Weights by `NODE.PARAMETER`.
#[derive(Debug)]
pub struct TorchWeights(pub BTreeMap<String, Tensor>);

impl TorchWeights {
    /// Copies weights to a device, as 32-bit floats however they are stored.
    #[must_use]
    pub fn new(weights: &Weights, device: Device) -> Self {
        let tensor = |plain: &PlainTensor| {
            let shape: Vec<i64> = plain.shape().iter().map(|&extent| extent as i64).collect();
            Tensor::from_slice(&plain.floats()).view(shape.as_slice()).to_device(device)
        };
        Self(weights.iter().map(|(name, plain)| (name.to_owned(), tensor(plain))).collect())
    }

    /// The same weights, each of that kind.
    #[must_use]
    pub fn to_kind(self, kind: Kind) -> Self {
        Self(self.0.into_iter().map(|(name, weight)| (name, weight.to_kind(kind))).collect())
    }

    /// The same weights, which share what they hold.
    #[must_use]
    pub fn shallow_clone(&self) -> Self {
        Self(self.0.iter().map(|(name, weight)| (name.clone(), weight.shallow_clone())).collect())
    }

    /// The weight of a node.
    ///
    /// # Panics
    /// When there is none.
    pub fn get(&self, node: &str, parameter: &str) -> &Tensor {
        let name = format!("{node}.{parameter}");
        self.0.get(&name).unwrap_or_else(|| panic!("no weight {name:?}"))
    }

    /// Copies the weights back.
    ///
    /// # Errors
    /// What libtorch says.
    pub fn to_plain(&self) -> Result<Weights, tch::TchError> {
        let mut weights = Weights::default();
        for (name, tensor) in &self.0 {
            weights.insert(name, to_plain(tensor)?);
        }
        Ok(weights)
    }
}

/// Copies a tensor's values.
///
/// # Errors
/// What libtorch says.
pub fn to_plain(tensor: &Tensor) -> Result<PlainTensor, tch::TchError> {
    let shape: Vec<usize> = tensor.size().iter().map(|&extent| extent as usize).collect();
    let flat = tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float).contiguous().view(-1);
    Ok(PlainTensor::new(&shape, Vec::<f32>::try_from(&flat)?))
}
