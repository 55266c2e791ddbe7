//! Reader of weights that are stored in one flat list.

use super::field::Field;
use super::graph_builder::{Conv, ConvWeights};
use crate::model::ModelError;

/// Reads weights in the order in which they were written.
pub(super) struct WeightReader<'a> {
    field: Field<'a>,
    values: Vec<f32>,
    position: usize,
}

impl<'a> WeightReader<'a> {
    pub fn new(field: Field<'a>) -> Result<Self, ModelError> {
        Ok(Self {
            values: field.numbers()?,
            field,
            position: 0,
        })
    }

    /// Reads the next weights, as many as the product of `extents`; `what` names them in errors.
    pub fn take(&mut self, what: &str, extents: &[usize]) -> Result<&[f32], ModelError> {
        let count = extents
            .iter()
            .try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        let left = self.values.len() - self.position;
        let Some(count) = count.filter(|count| *count <= left) else {
            return Err(self.field.error(&format!(
                "only {left} of {} values are left for {what}",
                self.values.len()
            )));
        };
        self.position += count;
        Ok(&self.values[self.position - count..self.position])
    }

    /// Reads the next weight.
    pub fn next(&mut self, what: &str) -> Result<f32, ModelError> {
        Ok(self.take(what, &[1])?[0])
    }

    /// Reads the weights of a convolution, `[output][input / groups][tap]`, then its bias if it has
    /// one.
    pub fn conv(&mut self, what: &str, conv: Conv) -> Result<ConvWeights, ModelError> {
        let Conv {
            inputs,
            outputs,
            kernel,
            groups,
            bias,
            slice,
            ..
        } = conv;
        if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let reason = format!(
                "{what}: {inputs} and {outputs} channels are not divisible by {groups} groups"
            );
            return Err(self.field.error(&reason));
        }
        let weight = self.take(what, &[outputs, inputs / groups, kernel])?;
        let (slice_inputs, slice_outputs) = slice.unwrap_or((inputs / groups, outputs));
        let rows = weight
            .chunks_exact(inputs / groups * kernel)
            .take(slice_outputs);
        let weight = rows
            .flat_map(|row| &row[..slice_inputs * kernel])
            .copied()
            .collect();
        let bias = if bias {
            self.take(what, &[outputs])?[..slice_outputs].to_vec()
        } else {
            vec![0.0; slice_outputs]
        };
        Ok(ConvWeights { conv, weight, bias })
    }

    /// Returns an error if weights are left.
    pub fn finish(&self) -> Result<(), ModelError> {
        if self.position == self.values.len() {
            return Ok(());
        }
        Err(self.field.error(&format!(
            "found {} values, but the architecture needs {}",
            self.values.len(),
            self.position
        )))
    }
}
