//! Compression of models: the graph stays, the weights are stored in fewer bits.
//!
//! The caller chooses a [`WeightPrecision`] for each node ([`Model::compressed`]). With 8 bits,
//! matrices and kernels get a scale for each output, and long impulse responses a scale for each
//! run of values; small weights (biases, gains, initial states) are stored in 16 bits, because
//! scales would cost as much as they save.

use std::collections::BTreeSet;

use half::bf16;

use super::{
    FORMAT, FORMAT_COMPRESSED, Model, ModelError, Op, Storage, Tensor, WeightAxis, Weights,
};

/// Storage of a node's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WeightPrecision {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// bfloat16.
    Bf16,
    /// 8 bits with scales; computed in 32-bit floats.
    Stored8,
    /// 8 bits with scales; products may be computed in 8 bits.
    Computed8,
}

/// Selection of scales for 8-bit weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scaling {
    /// Criterion by which a scale is chosen.
    pub fit: ScaleFit,
    /// Use one scale for a whole weight instead of one for each output.
    pub per_tensor: bool,
    /// Use zero points, so that weights that are not centred on 0 use all codes; products are then
    /// computed in floats.
    pub asymmetric: bool,
}

/// Criterion by which the scale of a block is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleFit {
    /// The largest magnitude becomes the largest code.
    Peak,
    /// The sum of squared errors is minimal; large values may be clamped.
    #[default]
    LeastSquares,
}

/// Fewest values for which a scale is worthwhile.
const MIN_VALUES_PER_SCALE: usize = 8;
/// Most values of an impulse response that share a scale; a decaying response needs several.
const MAX_RUN: usize = 64;
/// Scales to try, in percent of the one by the peak.
const SCALE_PERCENTS: std::ops::RangeInclusive<u8> = 60..=100;

impl Model {
    /// Returns the nodes that have weights, each once, in the order of the graph.
    #[must_use]
    pub fn layers(&self) -> Vec<(&str, &Op)> {
        let mut seen = BTreeSet::new();
        let nodes = self
            .header()
            .methods
            .iter()
            .flat_map(|method| &method.nodes);
        nodes
            .filter(|node| seen.insert(&node.name) && !node.op.weights(&[]).is_empty())
            .map(|node| (&*node.name, &node.op))
            .collect()
    }

    /// Returns the model with the weights of each node stored as `choose(node)` says.
    ///
    /// # Errors
    /// Returns [`ModelError`] if the result is invalid.
    pub fn compressed(
        &self,
        scaling: Scaling,
        choose: impl Fn(&str) -> WeightPrecision,
    ) -> Result<Self, ModelError> {
        let mut weights = Weights::default();
        for (node, op) in self.layers() {
            let precision = choose(node);
            for spec in op.weights(&[]) {
                let is_output = |axis: &WeightAxis| {
                    matches!(axis, WeightAxis::Outputs | WeightAxis::GatedOutputs)
                };
                let axis = spec.axes.iter().position(is_output).unwrap_or(0);
                let tensor = stored(
                    self.weights().get(node, spec.name),
                    axis,
                    precision,
                    scaling,
                );
                weights.insert(format!("{node}.{}", spec.name), tensor);
            }
        }
        let mut header = self.header().clone();
        header.format = if weights.are_f32() {
            FORMAT
        } else {
            FORMAT_COMPRESSED
        };
        Self::new(header, weights)?.with_attacks(self.attacks().cloned())
    }
}

fn stored(tensor: &Tensor, axis: usize, precision: WeightPrecision, scaling: Scaling) -> Tensor {
    let plain = || Tensor::new(tensor.shape(), tensor.floats().into_owned());
    let to_16_bit = |storage| tensor.to_16_bit(storage).unwrap_or_else(|_| plain());
    match (precision, scale_shape(tensor.shape(), axis)) {
        (WeightPrecision::F32, _) => plain(),
        (WeightPrecision::Bf16, _) => to_16_bit(Storage::Bf16),
        (WeightPrecision::F16, _) | (_, None) => to_16_bit(Storage::F16),
        (_, Some(shape)) => {
            let shape = if scaling.per_tensor {
                vec![1; shape.len()]
            } else {
                shape
            };
            let (scales, zeros): (Vec<f32>, Vec<i8>) =
                block_scales(tensor, &shape, scaling).into_iter().unzip();
            let zeros = if scaling.asymmetric {
                zeros
            } else {
                Vec::new()
            };
            let products = precision == WeightPrecision::Computed8 && !scaling.asymmetric;
            tensor.quantize(&shape, scales, zeros, products)
        }
    }
}

/// Returns the number of scales along each axis, or `None` if the weight should be stored in 16
/// bits.
fn scale_shape(shape: &[usize], axis: usize) -> Option<Vec<usize>> {
    let values: usize = shape.iter().product();
    match *shape {
        [length] => {
            let run = (MIN_VALUES_PER_SCALE..=MAX_RUN)
                .rev()
                .find(|&run| length.is_multiple_of(run))?;
            (length > MIN_VALUES_PER_SCALE * MAX_RUN).then(|| vec![length / run])
        }
        _ => {
            let counts = shape
                .iter()
                .enumerate()
                .map(|(other, &extent)| if other == axis { extent } else { 1 });
            (values >= MIN_VALUES_PER_SCALE * shape[axis]).then(|| counts.collect())
        }
    }
}

/// Returns the scale and the zero point of each block.
fn block_scales(tensor: &Tensor, scale_shape: &[usize], scaling: Scaling) -> Vec<(f32, i8)> {
    let (values, shape) = (tensor.floats(), tensor.shape());
    let mut blocks = vec![Vec::new(); scale_shape.iter().product()];
    for (at, &value) in values.iter().enumerate() {
        blocks[super::storage::block(at, shape, scale_shape)].push(value);
    }
    blocks
        .iter()
        .map(|block| block_scale(block, scaling))
        .collect()
}

/// Returns a scale that is exact in bfloat16, and the zero point, for values that share them.
fn block_scale(values: &[f32], scaling: Scaling) -> (f32, i8) {
    // 0 must be represented exactly.
    let extent = |[low, high]: [f32; 2], value: &f32| [low.min(*value), high.max(*value)];
    let [low, high] = values.iter().fold([0.0; 2], extent);
    let (half, middle) = if scaling.asymmetric {
        (0.5 * (high - low), 0.5 * (high + low))
    } else {
        (high.max(-low), 0.0)
    };
    if half == 0.0 {
        return (1.0, 0);
    }
    let zero = |scale: f32| (-middle / scale).round_ties_even().clamp(-127.0, 127.0);
    let error = |scale: f32| -> f64 {
        let zero = zero(scale);
        let nearest = |value: f32| {
            scale * (((value / scale).round_ties_even() + zero).clamp(-127.0, 127.0) - zero)
        };
        values
            .iter()
            .map(|&value| f64::from(value - nearest(value)).powi(2))
            .sum()
    };
    let scale = |percent: u8| round_up(f32::from(percent) / 100.0 * half / 127.0);
    let scale = match scaling.fit {
        ScaleFit::Peak => scale(100),
        ScaleFit::LeastSquares => {
            let tried = SCALE_PERCENTS.map(|percent| (scale(percent), error(scale(percent))));
            tried
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .map_or(scale(100), |(scale, _)| scale)
        }
    };
    (scale, zero(scale) as i8)
}

/// Returns the least normal bfloat16 that is not below `scale`.
fn round_up(scale: f32) -> f32 {
    let near = bf16::from_f32(scale.max(f32::MIN_POSITIVE));
    if near.to_f32() < scale {
        bf16::from_bits(near.to_bits() + 1).to_f32()
    } else {
        near.to_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_divided_into_blocks() {
        assert_eq!(scale_shape(&[30, 20], 0), Some(vec![30, 1]));
        assert_eq!(scale_shape(&[30, 20, 4], 1), Some(vec![1, 20, 1]));
        assert_eq!(scale_shape(&[30, 2], 0), None, "two values for each scale");
        assert_eq!(scale_shape(&[30, 2, 4], 0), Some(vec![30, 1, 1]));
        assert_eq!(scale_shape(&[432], 0), None, "a bias");
        assert_eq!(scale_shape(&[16_320], 0), Some(vec![255]), "a room");
        assert_eq!(scale_shape(&[16_319], 0), None, "a room of prime length");
    }

    #[test]
    fn scales_preserve_the_peak_or_minimise_the_error() {
        let scaling = |fit, asymmetric| Scaling {
            fit,
            per_tensor: false,
            asymmetric,
        };
        let values: Vec<f32> = (0..200)
            .map(|i| 0.01 * ((i * 7919) % 201) as f32 - 1.0)
            .collect();
        let (peak, zero) = block_scale(&values, scaling(ScaleFit::Peak, false));
        assert!((1.0..1.01).contains(&(peak * 127.0)) && zero == 0, "{peak}");
        assert_eq!(bf16::from_f32(peak).to_f32(), peak);
        // A single outlier matters less than all other values.
        let values: Vec<f32> = (0..4000)
            .map(|i| {
                if i == 7 {
                    5.0
                } else {
                    ((i * 7919) % 201) as f32 / 50.0 - 2.0
                }
            })
            .collect();
        let squares = |(scale, zero): (f32, i8)| -> f32 {
            let zero = f32::from(zero);
            let nearest =
                |value: f32| scale * (((value / scale).round() + zero).clamp(-127.0, 127.0) - zero);
            values
                .iter()
                .map(|&value| (value - nearest(value)).powi(2))
                .sum()
        };
        let [peak, least] = [ScaleFit::Peak, ScaleFit::LeastSquares]
            .map(|fit| block_scale(&values, scaling(fit, false)));
        assert!(
            least.0 < peak.0 && squares(least) < squares(peak),
            "{least:?} against {peak:?}"
        );
        let both = block_scale(&values, scaling(ScaleFit::Peak, true));
        assert!(
            both.1 < -40 && squares(both) < squares(peak),
            "{both:?}: from -2 to 5"
        );
        assert_eq!(block_scale(&[0.0; 5], Scaling::default()), (1.0, 0));
        assert!(block_scale(&[1e-44; 5], Scaling::default()).0.is_normal());
        // Values of one sign.
        let (scale, zero) = block_scale(&[1.0, 2.54, 0.3], scaling(ScaleFit::Peak, true));
        assert!(
            (0.01..0.0101).contains(&scale) && zero == -127 || zero == -126,
            "{scale} {zero}"
        );
    }

    #[test]
    fn a_weight_may_share_one_scale() {
        let values = (0..64)
            .map(|i| if i < 32 { 1.0 } else { -0.01 * i as f32 })
            .collect();
        let weight = Tensor::new(&[2, 32], values);
        let of = |per_tensor, asymmetric| {
            let scaling = Scaling {
                fit: ScaleFit::Peak,
                per_tensor,
                asymmetric,
            };
            let stored = stored(&weight, 0, WeightPrecision::Computed8, scaling);
            let quantized = stored.quantized().expect("it is in bytes");
            (
                quantized.scale_shape.clone(),
                quantized.scales.len(),
                quantized.zero_points.len(),
                quantized.int8_products,
            )
        };
        assert_eq!(of(false, false), (vec![2, 1], 2, 0, true));
        assert_eq!(of(true, false), (vec![1, 1], 1, 0, true));
        assert_eq!(
            of(false, true),
            (vec![2, 1], 2, 2, false),
            "products of bytes want 0 to be 0"
        );
    }
}
