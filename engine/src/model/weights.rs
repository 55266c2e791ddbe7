//! Weights by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::storage::{QuantizedValues, Storage, Values, to_16_bit};
use super::{ModelError, Method};

/// A dense tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// A tensor of that shape.
    ///
    /// # Panics
    /// When the number of values is not the product of the shape.
    #[must_use]
    pub fn new(shape: &[usize], values: Vec<f32>) -> Self {
        Self::stored(shape, Values::F32(values))
    }

    /// A tensor of values that are stored in some way.
    ///
    /// # Panics
    /// When the number of values is not the product of the shape.
    #[must_use]
    pub fn stored(shape: &[usize], values: Values) -> Self {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "shape and values must agree");
        Self { shape: shape.to_vec(), values }
    }

    /// Extent of each dimension, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The numbers, `shape().iter().product()` of them; made anew where they are not stored as F32.
    #[must_use]
    pub fn floats(&self) -> Cow<'_, [f32]> {
        self.values.floats(&self.shape)
    }

    /// The numbers as they are stored.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Bytes and scales, where it is stored as such.
    #[must_use]
    pub fn quantized(&self) -> Option<&QuantizedValues> {
        match &self.values {
            Values::I8(quantized) => Some(quantized),
            _ => None,
        }
    }

    /// Bytes that the numbers take, with their scales and zeros.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.len() * self.values.storage().bytes()
            + self.quantized().map_or(0, |quantized| size_of_val(quantized.scales.as_slice()) + quantized.zero_points.len())
    }

    /// The same numbers in 16 bits, each the nearest; `storage` is [`Storage::F16`] or [`Storage::Bf16`].
    ///
    /// # Errors
    /// [`ModelError::Header`] when one is too large for that.
    pub fn to_16_bit(&self, storage: Storage) -> Result<Self, ModelError> {
        Ok(Self { shape: self.shape.clone(), values: to_16_bit(&self.floats(), storage)? })
    }

    /// The same numbers in eight bits with those scales and zeros ([`QuantizedValues`]), each the nearest.
    ///
    /// # Panics
    /// When the scales do not fit.
    #[must_use]
    pub fn quantize(&self, scale_shape: &[usize], scales: Vec<f32>, zeros: Vec<i8>, products: bool) -> Self {
        let quantized = QuantizedValues::quantize(&self.floats(), &self.shape, scale_shape, scales, zeros, products);
        Self { shape: self.shape.clone(), values: Values::I8(quantized) }
    }
}

/// All weights of a model, by `NODE.PARAMETER`, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// The weight of that name.
    ///
    /// # Panics
    /// When there is none; [`super::Model`] has checked that each weight of its graph is there.
    #[must_use]
    pub fn get(&self, node: &str, parameter: &str) -> &Tensor {
        let name = format!("{node}.{parameter}");
        self.0.get(&name).unwrap_or_else(|| panic!("no weight {name:?}: the model was not checked"))
    }

    /// Adds or replaces a weight.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.0.insert(name.into(), tensor);
    }

    /// Adds or replaces weights.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Names and tensors in the order of names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Those of the nodes of these methods, in the order of names.
    pub fn used_by(&self, methods: &[Method]) -> impl Iterator<Item = (&str, &Tensor)> {
        let nodes: BTreeSet<&str> =
            methods.iter().flat_map(|method| &method.nodes).map(|node| node.name.as_str()).collect();
        self.iter().filter(move |(name, _)| nodes.contains(name.rsplit_once('.').map_or(*name, |(node, _)| node)))
    }

    /// Whether all of them are stored as F32.
    #[must_use]
    pub fn are_f32(&self) -> bool {
        self.0.values().all(|tensor| tensor.values.storage() == Storage::F32)
    }

    /// Whether these are exactly the expected weights, all finite.
    pub(super) fn check(&self, expected: &BTreeMap<String, Vec<usize>>) -> Result<(), ModelError> {
        for (name, shape) in expected {
            let tensor = self.0.get(name).ok_or_else(|| ModelError::weight(name, "is missing"))?;
            if &tensor.shape != shape {
                return Err(ModelError::weight(name, format!("has shape {:?}, {shape:?} is needed", tensor.shape)));
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
