//! Weights by name.

use std::collections::BTreeMap;

use super::Fault;

/// A dense tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// `shape.iter().product()` values.
    pub data: Vec<f32>,
}

impl Tensor {
    /// A tensor of that shape.
    ///
    /// # Panics
    /// When the number of values is not the product of the shape.
    #[must_use]
    pub fn new(shape: &[usize], data: Vec<f32>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "shape and values must agree");
        Self { shape: shape.to_vec(), data }
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

    /// Whether these are exactly the expected weights, all finite.
    pub(super) fn check(&self, expected: &BTreeMap<String, Vec<usize>>) -> Result<(), Fault> {
        for (name, shape) in expected {
            let tensor = self.0.get(name).ok_or_else(|| Fault::weight(name, "is missing"))?;
            if &tensor.shape != shape {
                return Err(Fault::weight(name, format!("has shape {:?}, {shape:?} is needed", tensor.shape)));
            }
            if !tensor.data.iter().all(|value| value.is_finite()) {
                return Err(Fault::weight(name, "holds a NaN or an infinity"));
            }
        }
        match self.0.keys().find(|name| !expected.contains_key(*name)) {
            Some(name) => Err(Fault::weight(name, "belongs to no node")),
            None => Ok(()),
        }
    }
}
