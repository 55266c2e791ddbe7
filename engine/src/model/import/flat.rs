//! Weights in one long list, taken in the order in which they were written.

use super::field::Field;
use super::sketch::{Conv, ConvWeights};
use crate::model::Fault;

pub(super) struct Flat<'a> {
    field: Field<'a>,
    values: Vec<f32>,
    taken: usize,
}

impl<'a> Flat<'a> {
    pub fn new(field: Field<'a>) -> Result<Self, Fault> {
        Ok(Self { values: field.numbers()?, field, taken: 0 })
    }

    /// The next weights, as many as that product, for what is named.
    pub fn take(&mut self, what: &str, extents: &[usize]) -> Result<&[f32], Fault> {
        let count = extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        let left = self.values.len() - self.taken;
        let Some(count) = count.filter(|count| *count <= left) else {
            return Err(self.field.fault(&format!("only {left} of {} are left for {what}", self.values.len())));
        };
        self.taken += count;
        Ok(&self.values[self.taken - count..self.taken])
    }

    /// The next weight.
    pub fn next(&mut self, what: &str) -> Result<f32, Fault> {
        Ok(self.take(what, &[1])?[0])
    }

    /// The next weights as those of a convolution: `[output][input / groups][tap]`, then its bias, if it has one.
    pub fn conv(&mut self, what: &str, conv: Conv) -> Result<ConvWeights, Fault> {
        let Conv { inputs, outputs, kernel, groups, bias, kept, .. } = conv;
        if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let reason = format!("{what}: {inputs} and {outputs} channels do not divide into {groups} groups");
            return Err(self.field.fault(&reason));
        }
        let weight = self.take(what, &[outputs, inputs / groups, kernel])?;
        let (kept_inputs, kept_outputs) = kept.unwrap_or((inputs / groups, outputs));
        let rows = weight.chunks_exact(inputs / groups * kernel).take(kept_outputs);
        let weight = rows.flat_map(|row| &row[..kept_inputs * kernel]).copied().collect();
        let bias = if bias { self.take(what, &[outputs])?[..kept_outputs].to_vec() } else { vec![0.0; kept_outputs] };
        Ok(ConvWeights { conv, weight, bias })
    }

    /// An error when weights are left.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.taken == self.values.len() {
            return Ok(());
        }
        Err(self.field.fault(&format!("{} are there, the architecture needs {}", self.values.len(), self.taken)))
    }
}
