//! The same model in fewer bits: its graph stays, its weights are stored otherwise.
//!
//! Which nodes, and how, the caller chooses ([`Model::compressed`]); what of a node goes into eight bits is decided here. Matrices
//! and kernels do, with a scale for each output, and long responses, with a scale for each stretch; what is short (biases, gains,
//! initial states) goes into 16 bits, since nothing would be won.

use std::collections::BTreeSet;

use half::bf16;

use super::{FORMAT, FORMAT_COMPRESSED, ModelError, Model, Op, Storage, Tensor, Weights};

/// How the weights of a node are to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// Eight bits with scales; computed in 32-bit floats.
    Stored8,
    /// Eight bits with scales; products may be computed on bytes, too.
    Computed8,
}

/// How weights are given scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scaling {
    /// How one is chosen.
    pub fit: ScaleFit,
    /// A whole weight shares one, rather than what makes one output.
    pub per_tensor: bool,
    /// 0 may be any byte, so that weights that lie to one side of it use all of them. Products are computed in floats then.
    pub asymmetric: bool,
}

/// How the scale of some weights is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleFit {
    /// The largest becomes the largest byte.
    Peak,
    /// The squares of the errors are least, were it at the cost of the largest.
    #[default]
    LeastSquares,
}

/// Fewest values for which a scale is worth its bytes.
const FEWEST: usize = 8;
/// Most values of a response that share a scale: a room fades out over many of them.
const STRETCH: usize = 64;
/// Scales that are tried, as shares of the one by the peak.
const SHARES: std::ops::RangeInclusive<u8> = 60..=100;

impl Model {
    /// The nodes that have weights, each once, in the order of the graph.
    #[must_use]
    pub fn layers(&self) -> Vec<(&str, &Op)> {
        let mut seen = BTreeSet::new();
        let nodes = self.header().methods.iter().flat_map(|method| &method.nodes);
        let weighted = |name: &str| self.weights().iter().any(|(weight, _)| belongs(weight, name));
        nodes
            .filter(|node| seen.insert(&node.name) && weighted(&node.name))
            .map(|node| (&*node.name, &node.op))
            .collect()
    }

    /// The same model with the weights of its nodes stored as `choose` says.
    ///
    /// # Errors
    /// [`ModelError`] when a weight is so large or small that it has no scale.
    pub fn compressed(&self, scaling: Scaling, choose: impl Fn(&str) -> Precision) -> Result<Self, ModelError> {
        let mut weights = Weights::default();
        for (node, op) in self.layers() {
            let precision = choose(node);
            for (name, tensor) in self.weights().iter().filter(|(name, _)| belongs(name, node)) {
                weights.insert(name, stored(tensor, output_axis(op), precision, scaling));
            }
        }
        let mut header = self.header().clone();
        header.format = if weights.are_f32() { FORMAT } else { FORMAT_COMPRESSED };
        Self::new(header, weights)
    }
}

/// Whether a weight is a parameter of a node: parameters have no dots in their names.
fn belongs(weight: &str, node: &str) -> bool {
    weight.rsplit_once('.').is_some_and(|(owner, _)| owner == node)
}

/// The axis of an op's matrices along which its outputs lie.
pub(crate) fn output_axis(op: &Op) -> usize {
    match op {
        Op::ConvTranspose1d { .. } => 1,
        _ => 0,
    }
}

fn stored(tensor: &Tensor, axis: usize, precision: Precision, scaling: Scaling) -> Tensor {
    let plain = || Tensor::new(tensor.shape(), tensor.floats().into_owned());
    let to_16_bit = |storage| tensor.to_16_bit(storage).unwrap_or_else(|_| plain());
    match (precision, scale_shape(tensor.shape(), axis)) {
        (Precision::F32, _) => plain(),
        (Precision::Bf16, _) => to_16_bit(Storage::Bf16),
        (Precision::F16, _) | (_, None) => to_16_bit(Storage::F16),
        (_, Some(shape)) => {
            let shape = if scaling.per_tensor { vec![1; shape.len()] } else { shape };
            let (scales, zeros): (Vec<f32>, Vec<i8>) = grids(tensor, &shape, scaling).into_iter().unzip();
            let zeros = if scaling.asymmetric { zeros } else { Vec::new() };
            let products = precision == Precision::Computed8 && !scaling.asymmetric;
            tensor.quantize(&shape, scales, zeros, products)
        }
    }
}

/// How many scales a weight gets along each axis; none where it is better left in floats.
fn scale_shape(shape: &[usize], axis: usize) -> Option<Vec<usize>> {
    let values: usize = shape.iter().product();
    match *shape {
        [length] => {
            let stretch = (FEWEST..=STRETCH).rev().find(|&stretch| length.is_multiple_of(stretch))?;
            (length > FEWEST * STRETCH).then(|| vec![length / stretch])
        }
        _ => {
            let each = shape.iter().enumerate().map(|(other, &extent)| if other == axis { extent } else { 1 });
            (values >= FEWEST * shape[axis]).then(|| each.collect())
        }
    }
}

/// The scales of all blocks, and the bytes that stand for 0.
fn grids(tensor: &Tensor, scale_shape: &[usize], scaling: Scaling) -> Vec<(f32, i8)> {
    let (values, shape) = (tensor.floats(), tensor.shape());
    let mut blocks = vec![Vec::new(); scale_shape.iter().product()];
    for (at, &value) in values.iter().enumerate() {
        blocks[super::storage::block(at, shape, scale_shape)].push(value);
    }
    blocks.iter().map(|block| grid(block, scaling)).collect()
}

/// The scale of values that share one, such that a file has room for it, and the byte that stands for 0.
fn grid(values: &[f32], scaling: Scaling) -> (f32, i8) {
    // 0 stays 0 exactly.
    let extent = |[low, high]: [f32; 2], value: &f32| [low.min(*value), high.max(*value)];
    let [low, high] = values.iter().fold([0.0; 2], extent);
    let (half, middle) =
        if scaling.asymmetric { (0.5 * (high - low), 0.5 * (high + low)) } else { (high.max(-low), 0.0) };
    if half == 0.0 {
        return (1.0, 0);
    }
    let zero = |scale: f32| (-middle / scale).round_ties_even().clamp(-127.0, 127.0);
    let error = |scale: f32| -> f64 {
        let zero = zero(scale);
        let nearest = |value: f32| scale * (((value / scale).round_ties_even() + zero).clamp(-127.0, 127.0) - zero);
        values.iter().map(|&value| f64::from(value - nearest(value)).powi(2)).sum()
    };
    let scale = |share: u8| at_least(f32::from(share) / 100.0 * half / 127.0);
    let scale = match scaling.fit {
        ScaleFit::Peak => scale(100),
        ScaleFit::LeastSquares => {
            let tried = SHARES.map(|share| (scale(share), error(scale(share))));
            tried.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(scale(100), |(scale, _)| scale)
        }
    };
    (scale, zero(scale) as i8)
}

/// The least number of 16 bits that is normal and not below that one.
fn at_least(scale: f32) -> f32 {
    let near = bf16::from_f32(scale.max(f32::MIN_POSITIVE));
    if near.to_f32() < scale { bf16::from_bits(near.to_bits() + 1).to_f32() } else { near.to_f32() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_a_scale() {
        assert_eq!(scale_shape(&[30, 20], 0), Some(vec![30, 1]));
        assert_eq!(scale_shape(&[30, 20, 4], 1), Some(vec![1, 20, 1]));
        assert_eq!(scale_shape(&[30, 2], 0), None, "two values for each scale");
        assert_eq!(scale_shape(&[30, 2, 4], 0), Some(vec![30, 1, 1]));
        assert_eq!(scale_shape(&[432], 0), None, "a bias");
        assert_eq!(scale_shape(&[16_320], 0), Some(vec![255]), "a room");
        assert_eq!(scale_shape(&[16_319], 0), None, "a room of prime length");
    }

    #[test]
    fn scales_hold_the_peak_or_err_least() {
        let scaling = |fit, asymmetric| Scaling { fit, per_tensor: false, asymmetric };
        let values: Vec<f32> = (0..200).map(|i| 0.01 * ((i * 7919) % 201) as f32 - 1.0).collect();
        let (peak, zero) = grid(&values, scaling(ScaleFit::Peak, false));
        assert!((1.0..1.01).contains(&(peak * 127.0)) && zero == 0, "{peak}");
        assert_eq!(bf16::from_f32(peak).to_f32(), peak);
        // One value far beyond the others is worth less than all of them.
        let values: Vec<f32> =
            (0..4000).map(|i| if i == 7 { 5.0 } else { ((i * 7919) % 201) as f32 / 50.0 - 2.0 }).collect();
        let squares = |(scale, zero): (f32, i8)| -> f32 {
            let zero = f32::from(zero);
            let nearest = |value: f32| scale * (((value / scale).round() + zero).clamp(-127.0, 127.0) - zero);
            values.iter().map(|&value| (value - nearest(value)).powi(2)).sum()
        };
        let [peak, least] = [ScaleFit::Peak, ScaleFit::LeastSquares].map(|fit| grid(&values, scaling(fit, false)));
        assert!(least.0 < peak.0 && squares(least) < squares(peak), "{least:?} against {peak:?}");
        let both = grid(&values, scaling(ScaleFit::Peak, true));
        assert!(both.1 < -40 && squares(both) < squares(peak), "{both:?}: from -2 to 5");
        assert_eq!(grid(&[0.0; 5], Scaling::default()), (1.0, 0));
        assert!(grid(&[1e-44; 5], Scaling::default()).0.is_normal());
        // All to one side.
        let (scale, zero) = grid(&[1.0, 2.54, 0.3], scaling(ScaleFit::Peak, true));
        assert!((0.01..0.0101).contains(&scale) && zero == -127 || zero == -126, "{scale} {zero}");
    }

    #[test]
    fn a_weight_may_share_one_scale() {
        let values = (0..64).map(|i| if i < 32 { 1.0 } else { -0.01 * i as f32 }).collect();
        let weight = Tensor::new(&[2, 32], values);
        let of = |per_tensor, asymmetric| {
            let scaling = Scaling { fit: ScaleFit::Peak, per_tensor, asymmetric };
            let stored = stored(&weight, 0, Precision::Computed8, scaling);
            let quantized = stored.quantized().expect("it is in bytes");
            (quantized.scale_shape.clone(), quantized.scales.len(), quantized.zero_points.len(), quantized.int8_products)
        };
        assert_eq!(of(false, false), (vec![2, 1], 2, 0, true));
        assert_eq!(of(true, false), (vec![1, 1], 1, 0, true));
        assert_eq!(of(false, true), (vec![2, 1], 2, 2, false), "products of bytes want 0 to be 0");
    }
}
