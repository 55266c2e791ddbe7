//! Weights in one long list, taken in the order in which they were written.

use super::field::Field;
use super::graph_builder::{Conv, ConvWeights};
use crate::model::ModelError;

pub(super) struct WeightReader<'a> {
    field: Field<'a>,
    values: Vec<f32>,
    taken: usize,
}

impl<'a> WeightReader<'a> {
    pub fn new(field: Field<'a>) -> Result<Self, ModelError> {
        Ok(Self { values: field.numbers()?, field, taken: 0 })
    }

    /// The next weights, as many as that product, for what is named.
    pub fn take(&mut self, what: &str, extents: &[usize]) -> Result<&[f32], ModelError> {
        let count = extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        let left = self.values.len() - self.taken;
        let Some(count) = count.filter(|count| *count <= left) else {
            return Err(self.field.error(&format!("only {left} of {} are left for {what}", self.values.len())));
        };
        self.taken += count;
        Ok(&self.values[self.taken - count..self.taken])
    }

    /// The next weight.
    pub fn next(&mut self, what: &str) -> Result<f32, ModelError> {
        Ok(self.take(what, &[1])?[0])
    }

    /// The next weights as those of a convolution: `[output][input / groups][tap]`, then its bias, if it has one.
    pub fn conv(&mut self, what: &str, conv: Conv) -> Result<ConvWeights, ModelError> {
        let Conv { inputs, outputs, kernel, groups, bias, slice, .. } = conv;
        if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let reason = format!("{what}: {inputs} and {outputs} channels do not divide into {groups} groups");
            return Err(self.field.error(&reason));
        }
        let weight = self.take(what, &[outputs, inputs / groups, kernel])?;
        let (slice_inputs, slice_outputs) = slice.unwrap_or((inputs / groups, outputs));
        let rows = weight.chunks_exact(inputs / groups * kernel).take(slice_outputs);
        let weight = rows.flat_map(|row| &row[..slice_inputs * kernel]).copied().collect();
        let bias = if bias { self.take(what, &[outputs])?[..slice_outputs].to_vec() } else { vec![0.0; slice_outputs] };
        Ok(ConvWeights { conv, weight, bias })
    }

    /// An error when weights are left.
    pub fn finish(&self) -> Result<(), ModelError> {
        if self.taken == self.values.len() {
            return Ok(());
        }
        Err(self.field.error(&format!("{} are there, the architecture needs {}", self.values.len(), self.taken)))
    }
}
