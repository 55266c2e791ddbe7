//! Conversion between weights and the tensors of a safetensors file.
//!
//! An 8-bit weight is stored as two tensors: `NODE.PARAMETER`, I8, and `NODE.PARAMETER_scale`, BF16 or F32, whose
//! extents divide those of the first ([`QuantizedValues`]). An asymmetric weight has a third, `NODE.PARAMETER_zero`,
//! I8, of the shape of the scales. The value is (code − zero point) · scale.

use std::collections::{BTreeMap, BTreeSet};

use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::storage::{QuantizedValues, Storage, Values};
use super::{ModelError, Tensor, Weights, limits};

/// Suffix of the scales' name.
const SCALE: &str = "_scale";
/// Suffix of the zero points' name.
const ZERO: &str = "_zero";

/// Reads all weights; `products` names those that may be multiplied in 8 bits.
pub(super) fn read(tensors: &SafeTensors<'_>, products: &BTreeSet<String>) -> Result<Weights, ModelError> {
    let views = tensors.iter();
    let (mut bytes, mut views): (BTreeMap<_, _>, BTreeMap<_, _>) =
        views.partition(|(_, view)| view.dtype() == Dtype::I8);
    for name in bytes.keys().chain(views.keys()) {
        ModelError::limit("the length of a weight's name", name.len(), limits::NAME_BYTES)?;
    }
    if let Some(name) = products.iter().find(|name| !bytes.contains_key(name.as_str())) {
        return Err(ModelError::weight(name, "is marked for 8-bit products, but is not stored in 8 bits"));
    }
    let of_zeros = |name: &str| name.strip_suffix(ZERO).is_some_and(|weight| bytes.contains_key(weight));
    let names: Vec<&str> = bytes.keys().copied().filter(|name| of_zeros(name)).collect();
    let zeros: BTreeMap<&str, _> = names.into_iter().filter_map(|name| bytes.remove_entry(name)).collect();
    let signed = |data: &[u8]| data.iter().map(|byte| byte.cast_signed()).collect::<Vec<i8>>();
    let mut weights = Weights::default();
    for (name, view) in bytes {
        let scale = format!("{name}{SCALE}");
        let missing = || ModelError::weight(name, format!("is I8, but its scales {scale:?} are missing or also I8"));
        let scales = views.remove(scale.as_str()).ok_or_else(missing)?;
        let zeros = zeros.get(format!("{name}{ZERO}").as_str());
        if zeros.is_some_and(|zeros| zeros.shape() != scales.shape()) {
            return Err(ModelError::weight(name, "has zero points of another shape than its scales"));
        }
        let quantized = QuantizedValues {
            codes: signed(view.data()),
            scale_shape: scales.shape().to_vec(),
            scales: floats(&scale, &scales)?.floats(&[]).into_owned(),
            zero_points: zeros.map_or_else(Vec::new, |zeros| signed(zeros.data())),
            int8_products: products.contains(name),
        };
        weights.insert(name, Tensor::stored(view.shape(), Values::I8(quantized)));
    }
    for (name, view) in views {
        weights.insert(name, Tensor::stored(view.shape(), floats(name, &view)?));
    }
    Ok(weights)
}

fn floats(name: &str, view: &TensorView<'_>) -> Result<Values, ModelError> {
    let (pairs, fours) = (view.data().as_chunks().0, view.data().as_chunks().0);
    match view.dtype() {
        Dtype::F32 => Ok(Values::F32(fours.iter().map(|value| f32::from_le_bytes(*value)).collect())),
        Dtype::F16 => Ok(Values::F16(pairs.iter().map(|value| f16::from_le_bytes(*value)).collect())),
        Dtype::BF16 => Ok(Values::Bf16(pairs.iter().map(|value| bf16::from_le_bytes(*value)).collect())),
        other => Err(ModelError::weight(name, format!("is {other:?}; expected F32, F16, BF16 or I8"))),
    }
}

/// Tensor to write.
pub(super) struct EncodedTensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// Encodes all weights as tensors.
pub(super) fn write(weights: &Weights) -> Vec<EncodedTensor> {
    let mut written = Vec::new();
    for (name, tensor) in weights.iter() {
        let dtype = match tensor.values().storage() {
            Storage::F32 => Dtype::F32,
            Storage::F16 => Dtype::F16,
            Storage::Bf16 => Dtype::BF16,
            Storage::I8 => Dtype::I8,
        };
        let (shape, bytes) = (tensor.shape().to_vec(), tensor.values().bytes());
        written.push(EncodedTensor { name: name.to_owned(), dtype, shape, bytes });
        if let Some(quantized) = tensor.quantized() {
            let halves: Vec<bf16> = quantized.scales.iter().map(|&scale| bf16::from_f32(scale)).collect();
            // BF16 only if it is lossless.
            let exact = halves.iter().zip(&quantized.scales).all(|(half, &scale)| half.to_f32() == scale);
            let (dtype, bytes) = if exact {
                (Dtype::BF16, Values::Bf16(halves).bytes())
            } else {
                (Dtype::F32, Values::F32(quantized.scales.clone()).bytes())
            };
            let shape = &quantized.scale_shape;
            written.push(EncodedTensor { name: format!("{name}{SCALE}"), dtype, shape: shape.clone(), bytes });
            if !quantized.zero_points.is_empty() {
                let bytes = quantized.zero_points.iter().map(|zero| zero.cast_unsigned()).collect();
                written.push(EncodedTensor {
                    name: format!("{name}{ZERO}"),
                    dtype: Dtype::I8,
                    shape: shape.clone(),
                    bytes,
                });
            }
        }
    }
    written
}

/// Returns the names of the weights that may be multiplied in 8 bits.
pub(super) fn products(weights: &Weights) -> BTreeSet<String> {
    let in_bytes = |tensor: &Tensor| tensor.quantized().is_some_and(|quantized| quantized.int8_products);
    weights.iter().filter(|(_, tensor)| in_bytes(tensor)).map(|(name, _)| name.to_owned()).collect()
}
