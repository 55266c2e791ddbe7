//! Quantization-aware training, for models that lose too much by rounding afterwards.
//!
//! Each step computes with the weights rounded to the grid of bytes and scales, and passes
//! gradients to the unrounded weights as if there were no rounding (straight-through estimator:
//! Bengio, Léonard & Courville, "Estimating or propagating gradients through stochastic neurons",
//! 2013; for int8 inference: Jacob et al., "Quantization and training of neural networks for
//! efficient integer-arithmetic-only inference", CVPR 2018). The scales are those of the trained
//! weights and stay fixed.

use std::collections::BTreeMap;

use ondes_engine::model::{Model, Tensor as StoredTensor};
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

/// Largest quantized value.
const MAX_BYTE: f64 = 127.0;

/// Grid of each weight that is stored in eight bits.
pub struct QuantizationGrids(BTreeMap<String, Grid>);

/// Grid of a weight: step size and zero point, expanded to the shape of the weight.
struct Grid {
    step: Tensor,
    zero: Tensor,
}

impl QuantizationGrids {
    /// Takes the grids of a compressed model.
    #[must_use]
    pub fn new(compressed: &Model, device: Device) -> Self {
        let weights = compressed.weights().iter();
        Self(
            weights
                .filter_map(|(name, tensor)| Some((name.to_owned(), grid(tensor, device)?)))
                .collect(),
        )
    }

    /// Returns the weights rounded to their grids; gradients pass through the rounding.
    #[must_use]
    pub fn rounded(&self, weights: &TorchWeights) -> TorchWeights {
        let round = |name: &String, weight: &Tensor| match self.0.get(name) {
            None => weight.shallow_clone(),
            Some(Grid { step, zero }) => {
                let exact = weight.detach();
                let byte = ((&exact / step).round() + zero).clamp(-MAX_BYTE, MAX_BYTE);
                weight + ((byte - zero) * step - exact)
            }
        };
        TorchWeights(
            weights
                .0
                .iter()
                .map(|(name, weight)| (name.clone(), round(name, weight)))
                .collect(),
        )
    }
}

/// Returns the grid of a weight; `None` if it is not stored in eight bits.
fn grid(weight: &StoredTensor, device: Device) -> Option<Grid> {
    let quantized = weight.quantized()?;
    let shape: Vec<i64> = quantized
        .scale_shape
        .iter()
        .map(|&extent| extent as i64)
        .collect();
    let expanded = |values: &[f32]| {
        let mut values = Tensor::from_slice(values).view(shape.as_slice());
        for (axis, (&extent, &count)) in weight
            .shape()
            .iter()
            .zip(&quantized.scale_shape)
            .enumerate()
        {
            values = values.repeat_interleave_self_int((extent / count) as i64, axis as i64, None);
        }
        values.to_device(device)
    };
    let zeros: Vec<f32> = match quantized.zero_points.as_slice() {
        [] => vec![0.0; quantized.scales.len()],
        zeros => zeros.iter().copied().map(f32::from).collect(),
    };
    Some(Grid {
        step: expanded(&quantized.scales),
        zero: expanded(&zeros),
    })
}

#[cfg(test)]
mod tests {
    use ondes_engine::model::compression::{Scaling, WeightPrecision};

    use super::*;
    use crate::tasks::capture::architecture::Architecture;

    #[test]
    fn rounded_weights_equal_stored_weights() {
        let model = Architecture::named("lstm-8")
            .and_then(|size| size.untrained(1, 48_000))
            .expect("a model");
        let stored = model
            .compressed(Scaling::default(), |_| WeightPrecision::Stored8)
            .expect("it can be stored");
        let grids = QuantizationGrids::new(&stored, Device::Cpu);
        assert!(
            !grids.0.is_empty() && grids.0.len() < model.weights().iter().count(),
            "biases are not in bytes"
        );
        let mut weights = TorchWeights::new(model.weights(), Device::Cpu);
        weights
            .0
            .values_mut()
            .for_each(|weight| *weight = weight.set_requires_grad(true));
        let rounded = grids.rounded(&weights);
        for (name, weight) in &weights.0 {
            let plain =
                ondes_torch::weights::to_plain(&rounded.0[name].detach()).expect("a weight");
            let (_, expected) = stored
                .weights()
                .iter()
                .find(|(stored, _)| stored == name)
                .expect("it is there");
            if grids.0.contains_key(name) {
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * b.abs();
                assert!(
                    plain.floats().iter().zip(&*expected.floats()).all(near),
                    "{name}"
                );
            }
            // Gradients pass through the rounding unchanged.
            (rounded.0[name].square().sum(tch::Kind::Float)).backward();
            assert_eq!(weight.grad().size(), weight.size());
            assert!(
                weight.grad().equal(&(2.0 * rounded.0[name].detach())),
                "{name}"
            );
        }
        // Rounding a rounded weight changes nothing.
        let again = grids.rounded(&TorchWeights::new(stored.weights(), Device::Cpu));
        for (name, weight) in &again.0 {
            assert!(
                weight.allclose(&rounded.0[name].detach(), 1e-6, 0.0, false)
                    || !grids.0.contains_key(name),
                "{name}"
            );
        }
    }
}
