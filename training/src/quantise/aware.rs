//! Training that hears what the rounding of weights does, where rounding afterwards loses too much.
//!
//! Each step plays the weights as they would be stored, on the grid of bytes times scales, and moves those behind them as if
//! nothing had been rounded (the straight-through estimator: Bengio, Léonard & Courville, "Estimating or propagating gradients
//! through stochastic neurons", 2013; for inference in bytes: Jacob et al., "Quantization and training of neural networks for
//! efficient integer-arithmetic-only inference", CVPR 2018). The scales stay those that the trained weights were given, so that
//! weights only have to find their places on the grid.

use std::collections::BTreeMap;

use ondes_engine::model::{Model, Tensor as Plain};
use ondes_torch::TorchWeights;
use tch::{Device, Tensor};

/// The largest byte.
const LARGEST: f64 = 127.0;

/// The grids on which weights are to lie.
pub struct Grids(BTreeMap<String, Grid>);

/// That of a weight: the size of a step at each place, and the byte that stands for 0.
struct Grid {
    step: Tensor,
    zero: Tensor,
}

impl Grids {
    /// Those of all weights that a compressed model stores in bytes.
    #[must_use]
    pub fn of(compressed: &Model, device: Device) -> Self {
        let weights = compressed.weights().iter();
        Self(weights.filter_map(|(name, tensor)| Some((name.to_owned(), grid(tensor, device)?))).collect())
    }

    /// The weights as they would be stored; what moves these moves those behind them.
    #[must_use]
    pub fn rounded(&self, weights: &TorchWeights) -> TorchWeights {
        let seen = |name: &String, weight: &Tensor| match self.0.get(name) {
            None => weight.shallow_clone(),
            Some(Grid { step, zero }) => {
                let exact = weight.detach();
                let byte = ((&exact / step).round() + zero).clamp(-LARGEST, LARGEST);
                weight + ((byte - zero) * step - exact)
            }
        };
        TorchWeights(weights.0.iter().map(|(name, weight)| (name.clone(), seen(name, weight))).collect())
    }
}

/// The grid of a weight; none where it is not stored in bytes.
fn grid(weight: &Plain, device: Device) -> Option<Grid> {
    let quantized = weight.quantized()?;
    let shape: Vec<i64> = quantized.scale_shape.iter().map(|&extent| extent as i64).collect();
    let everywhere = |values: &[f32]| {
        let mut values = Tensor::from_slice(values).view(shape.as_slice());
        for (axis, (&extent, &count)) in weight.shape().iter().zip(&quantized.scale_shape).enumerate() {
            values = values.repeat_interleave_self_int((extent / count) as i64, axis as i64, None);
        }
        values.to_device(device)
    };
    let zeros: Vec<f32> = match quantized.zero_points.as_slice() {
        [] => vec![0.0; quantized.scales.len()],
        zeros => zeros.iter().copied().map(f32::from).collect(),
    };
    Some(Grid { step: everywhere(&quantized.scales), zero: everywhere(&zeros) })
}

#[cfg(test)]
mod tests {
    use ondes_engine::model::compression::{Precision, Scaling};

    use super::*;
    use crate::capture::architecture::Architecture;

    #[test]
    fn what_training_sees_is_what_is_stored() {
        let model = Architecture::named("lstm-8").and_then(|size| size.untrained(1, 48_000)).expect("a model");
        let stored = model.compressed(Scaling::default(), |_| Precision::Stored8).expect("it can be stored");
        let grids = Grids::of(&stored, Device::Cpu);
        assert!(!grids.0.is_empty() && grids.0.len() < model.weights().iter().count(), "biases are not in bytes");
        let mut weights = TorchWeights::new(model.weights(), Device::Cpu);
        weights.0.values_mut().for_each(|weight| *weight = weight.set_requires_grad(true));
        let seen = grids.rounded(&weights);
        for (name, weight) in &weights.0 {
            let plain = ondes_torch::weights::to_plain(&seen.0[name].detach()).expect("a weight");
            let (_, expected) = stored.weights().iter().find(|(stored, _)| stored == name).expect("it is there");
            if grids.0.contains_key(name) {
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * b.abs();
                assert!(plain.floats().iter().zip(&*expected.floats()).all(near), "{name}");
            }
            // As if nothing had been rounded.
            (seen.0[name].square().sum(tch::Kind::Float)).backward();
            assert_eq!(weight.grad().size(), weight.size());
            assert!(weight.grad().equal(&(2.0 * seen.0[name].detach())), "{name}");
        }
        // What lies on the grid stays where it is.
        let again = grids.rounded(&TorchWeights::new(stored.weights(), Device::Cpu));
        for (name, weight) in &again.0 {
            assert!(weight.allclose(&seen.0[name].detach(), 1e-6, 0.0, false) || !grids.0.contains_key(name), "{name}");
        }
    }
}
