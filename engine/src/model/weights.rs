//! Weights: named tensors.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::storage::{QuantizedValues, Storage, Values, to_16_bit};
use super::{Method, ModelError};

/// Dense tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// Creates a tensor of 32-bit floats.
    ///
    /// # Panics
    /// If the number of values is not the product of the shape.
    #[must_use]
    pub fn new(shape: &[usize], values: Vec<f32>) -> Self {
        Self::stored(shape, Values::F32(values))
    }

    /// Creates a tensor from stored values.
    ///
    /// # Panics
    /// If the number of values is not the product of the shape.
    #[must_use]
    pub fn stored(shape: &[usize], values: Values) -> Self {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "the number of values must fit the shape"
        );
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    /// Returns the extent of each dimension, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the values as floats, `shape().iter().product()` of them; converts unless they are
    /// stored as F32.
    #[must_use]
    pub fn floats(&self) -> Cow<'_, [f32]> {
        self.values.floats(&self.shape)
    }

    /// Returns the stored values.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns codes and scales if the tensor is stored in 8 bits.
    #[must_use]
    pub fn quantized(&self) -> Option<&QuantizedValues> {
        match &self.values {
            Values::I8(quantized) => Some(quantized),
            _ => None,
        }
    }

    /// Returns the size of the values in bytes, including scales and zero points.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.len() * self.values.storage().bytes()
            + self.quantized().map_or(0, |quantized| {
                size_of_val(quantized.scales.as_slice()) + quantized.zero_points.len()
            })
    }

    /// Rounds the values to 16 bits; `storage` is [`Storage::F16`] or [`Storage::Bf16`].
    ///
    /// # Errors
    /// Returns [`ModelError::Header`] if a value is too large for the format.
    pub fn to_16_bit(&self, storage: Storage) -> Result<Self, ModelError> {
        Ok(Self {
            shape: self.shape.clone(),
            values: to_16_bit(&self.floats(), storage)?,
        })
    }

    /// Quantizes the values to 8 bits with given scales and zero points; see [`QuantizedValues`].
    ///
    /// # Panics
    /// If the scales do not fit the shape.
    #[must_use]
    pub fn quantize(
        &self,
        scale_shape: &[usize],
        scales: Vec<f32>,
        zeros: Vec<i8>,
        products: bool,
    ) -> Self {
        let quantized = QuantizedValues::quantize(
            &self.floats(),
            &self.shape,
            scale_shape,
            scales,
            zeros,
            products,
        );
        Self {
            shape: self.shape.clone(),
            values: Values::I8(quantized),
        }
    }
}

/// Weights of a model by name, `NODE.PARAMETER`, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// Returns a weight.
    ///
    /// # Panics
    /// If there is no such weight; [`super::Model`] validates that each node has its weights.
    #[must_use]
    pub fn get(&self, node: &str, parameter: &str) -> &Tensor {
        let name = format!("{node}.{parameter}");
        self.0
            .get(&name)
            .unwrap_or_else(|| panic!("no weight {name:?}: the model was not validated"))
    }

    /// Inserts or replaces a weight.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.0.insert(name.into(), tensor);
    }

    /// Takes a weight out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.0.remove(name)
    }

    /// Inserts or replaces weights.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Iterates over names and tensors, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Iterates over the weights of the nodes of `methods`, sorted by name.
    pub fn used_by(&self, methods: &[Method]) -> impl Iterator<Item = (&str, &Tensor)> {
        let nodes: BTreeSet<&str> = methods
            .iter()
            .flat_map(|method| &method.nodes)
            .map(|node| node.name.as_str())
            .collect();
        self.iter().filter(move |(name, _)| {
            nodes.contains(name.rsplit_once('.').map_or(*name, |(node, _)| node))
        })
    }

    /// Returns whether all weights are stored as F32.
    #[must_use]
    pub fn are_f32(&self) -> bool {
        self.0
            .values()
            .all(|tensor| tensor.values.storage() == Storage::F32)
    }

    /// Checks that these are exactly the expected weights, with valid values.
    pub(super) fn check(&self, expected: &BTreeMap<String, Vec<usize>>) -> Result<(), ModelError> {
        for (name, shape) in expected {
            let tensor = self
                .0
                .get(name)
                .ok_or_else(|| ModelError::weight(name, "is missing"))?;
            if &tensor.shape != shape {
                return Err(ModelError::weight(
                    name,
                    format!("has shape {:?}, {shape:?} is needed", tensor.shape),
                ));
            }
            if let Some(reason) = tensor.values.invalid_reason(shape) {
                return Err(ModelError::weight(name, reason));
            }
        }
        match self.0.keys().find(|name| !expected.contains_key(*name)) {
            Some(name) => Err(ModelError::weight(name, "belongs to no node")),
            None => Ok(()),
        }
    }
}
