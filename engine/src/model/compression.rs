//! The same model in fewer bits: its graph stays, its weights are stored otherwise.
//!
//! Which nodes, and how, the caller chooses ([`Model::compressed`]); what of a node goes into eight bits is decided here. Matrices
//! and kernels do, with a scale for each output, and long responses, with a scale for each stretch; what is short (biases, gains,
//! initial states) goes into 16 bits, since nothing would be won.

use std::collections::BTreeSet;

use half::bf16;

use super::{FORMAT, FORMAT_COMPRESSED, Fault, Model, Op, Storage, Tensor, Weights};

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

/// How the scale of some weights is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
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
    /// [`Fault`] when a weight is so large or small that it has no scale.
    pub fn compressed(&self, scaling: Scaling, choose: impl Fn(&str) -> Precision) -> Result<Self, Fault> {
        let mut weights = Weights::default();
        for (node, op) in self.layers() {
            let precision = choose(node);
            for (name, tensor) in self.weights().iter().filter(|(name, _)| belongs(name, node)) {
                weights.insert(name, stored(tensor, output_axis(op), precision, scaling));
            }
        }
        let mut header = self.header().clone();
        header.format = if weights.are_plain() { FORMAT } else { FORMAT_COMPRESSED };
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
    let halved = |storage| tensor.halved(storage).unwrap_or_else(|_| plain());
    match (precision, scale_shape(tensor.shape(), axis)) {
        (Precision::F32, _) => plain(),
        (Precision::Bf16, _) => halved(Storage::Bf16),
        (Precision::F16, _) | (_, None) => halved(Storage::F16),
        (_, Some(shape)) => {
            let scales = scales(tensor, &shape, scaling);
            tensor.scaled_by(&shape, scales, precision == Precision::Computed8)
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

/// The scales of all blocks.
fn scales(tensor: &Tensor, scale_shape: &[usize], scaling: Scaling) -> Vec<f32> {
    let (values, shape) = (tensor.floats(), tensor.shape());
    let mut blocks = vec![Vec::new(); scale_shape.iter().product()];
    for (at, &value) in values.iter().enumerate() {
        blocks[super::storage::block(at, shape, scale_shape)].push(value);
    }
    blocks.iter().map(|block| scale(block, scaling)).collect()
}

/// The scale of values that share one, such that a file has room for it.
fn scale(values: &[f32], scaling: Scaling) -> f32 {
    let peak = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    if peak == 0.0 {
        return 1.0;
    }
    let largest = at_least(peak / 127.0);
    if scaling == Scaling::Peak {
        return largest;
    }
    let error = |scale: f32| -> f64 {
        let nearest = |value: f32| scale * (value / scale).round_ties_even().clamp(-127.0, 127.0);
        values.iter().map(|&value| f64::from(value - nearest(value)).powi(2)).sum()
    };
    let tried = SHARES.map(|share| at_least(f32::from(share) / 100.0 * peak / 127.0));
    tried.map(|scale| (scale, error(scale))).min_by(|a, b| a.1.total_cmp(&b.1)).map_or(largest, |(scale, _)| scale)
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
        let values: Vec<f32> = (0..200).map(|i| 0.01 * ((i * 7919) % 201) as f32 - 1.0).collect();
        let peak = scale(&values, Scaling::Peak);
        assert!((1.0..1.01).contains(&(peak * 127.0)), "{peak}");
        assert_eq!(bf16::from_f32(peak).to_f32(), peak);
        // One value far beyond the others is worth less than all of them.
        let values: Vec<f32> =
            (0..4000).map(|i| if i == 7 { 5.0 } else { ((i * 7919) % 201) as f32 / 50.0 - 2.0 }).collect();
        let squares = |scale: f32| -> f32 {
            let nearest = |value: f32| scale * (value / scale).round().clamp(-127.0, 127.0);
            values.iter().map(|&value| (value - nearest(value)).powi(2)).sum()
        };
        let (peak, least) = (scale(&values, Scaling::Peak), scale(&values, Scaling::LeastSquares));
        assert!(least < peak && squares(least) < squares(peak), "{least} against {peak}");
        assert_eq!(scale(&[0.0; 5], Scaling::LeastSquares), 1.0);
        assert!(scale(&[1e-44; 5], Scaling::LeastSquares).is_normal());
    }
}
