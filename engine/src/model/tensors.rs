//! Conversion between weights and the tensors of a safetensors file.
//!
//! An 8-bit weight is stored as two tensors: `NODE.PARAMETER`, I8, and `NODE.PARAMETER_scale`, BF16
//! or F32, whose extents divide those of the first ([`QuantizedValues`]). An asymmetric weight has
//! a third, `NODE.PARAMETER_zero`, I8, of the shape of the scales. The value is (code − zero point)
//! · scale.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use bytemuck::{Pod, Zeroable};
use half::bf16;
use safetensors::tensor::{Dtype, Metadata};

use super::storage::{QuantizedValues, Storage, Values};
use super::{ModelError, Tensor, Weights, limits};

/// Suffix of the scales' name.
const SCALE: &str = "_scale";
/// Suffix of the zero points' name.
const ZERO: &str = "_zero";

/// Tensor of 8-bit integers as it is stored.
struct Bytes {
    shape: Vec<usize>,
    codes: Vec<i8>,
}

/// Reads all weights; `products` names those that may be multiplied in 8 bits. Values are read to
/// where they stay.
pub(super) fn read(
    metadata: &Metadata,
    data: &mut impl Read,
    products: &BTreeSet<String>,
) -> Result<Weights, ModelError> {
    let mut infos = metadata.tensors();
    let mut bytes: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut floats: BTreeMap<String, Tensor> = BTreeMap::new();
    for name in metadata.offset_keys() {
        ModelError::limit(
            "the length of a weight's name",
            name.len(),
            limits::NAME_BYTES,
        )?;
        let Some(info) = infos.remove(&name) else {
            continue;
        };
        let (shape, count) = (&info.shape, info.shape.iter().product());
        let values = match info.dtype {
            Dtype::F32 => Values::F32(values(data, count)?),
            Dtype::F16 => Values::F16(values(data, count)?),
            Dtype::BF16 => Values::Bf16(values(data, count)?),
            Dtype::I8 => {
                bytes.insert(
                    name,
                    Bytes {
                        shape: shape.clone(),
                        codes: values(data, count)?,
                    },
                );
                continue;
            }
            other => {
                return Err(ModelError::weight(
                    &name,
                    format!("is {other:?}; expected F32, F16, BF16 or I8"),
                ));
            }
        };
        floats.insert(name, Tensor::stored(shape, values));
    }
    if let Some(name) = products
        .iter()
        .find(|name| !bytes.contains_key(name.as_str()))
    {
        return Err(ModelError::weight(
            name,
            "is marked for 8-bit products, but is not stored in 8 bits",
        ));
    }
    let of_zeros = |name: &String| {
        name.strip_suffix(ZERO)
            .is_some_and(|weight| bytes.contains_key(weight))
    };
    let names: BTreeSet<String> = bytes
        .keys()
        .filter(|name| of_zeros(name))
        .cloned()
        .collect();
    let (mut zeros, bytes): (BTreeMap<_, _>, BTreeMap<_, _>) = bytes
        .into_iter()
        .partition(|(name, _)| names.contains(name));
    let mut weights = Weights::default();
    for (name, Bytes { shape, codes }) in bytes {
        let scale = format!("{name}{SCALE}");
        let missing = || {
            ModelError::weight(
                &name,
                format!("is I8, but its scales {scale:?} are missing or also I8"),
            )
        };
        let scales = floats.remove(&scale).ok_or_else(missing)?;
        let zeros = zeros.remove(&format!("{name}{ZERO}"));
        if zeros
            .as_ref()
            .is_some_and(|zeros| zeros.shape != scales.shape())
        {
            return Err(ModelError::weight(
                &name,
                "has zero points of another shape than its scales",
            ));
        }
        let quantized = QuantizedValues {
            codes,
            scale_shape: scales.shape().to_vec(),
            scales: scales.floats().into_owned(),
            zero_points: zeros.map_or_else(Vec::new, |zeros| zeros.codes),
            int8_products: products.contains(&name),
        };
        weights.insert(name, Tensor::stored(&shape, Values::I8(quantized)));
    }
    floats
        .into_iter()
        .for_each(|(name, tensor)| weights.insert(name, tensor));
    Ok(weights)
}

/// Reads the next `count` values.
fn values<T: Pod + Zeroable>(data: &mut impl Read, count: usize) -> io::Result<Vec<T>> {
    let mut values = bytemuck::zeroed_vec(count);
    data.read_exact(bytemuck::cast_slice_mut(&mut values))?;
    Ok(values)
}

/// Tensor to write.
pub(super) struct EncodedTensor<'a> {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Cow<'a, [u8]>,
}

/// Encodes named weights as tensors.
pub(super) fn write<'a>(
    weights: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Vec<EncodedTensor<'a>> {
    let mut written = Vec::new();
    for (name, tensor) in weights {
        let dtype = match tensor.values().storage() {
            Storage::F32 => Dtype::F32,
            Storage::F16 => Dtype::F16,
            Storage::Bf16 => Dtype::BF16,
            Storage::I8 => Dtype::I8,
        };
        let (shape, bytes) = (
            tensor.shape().to_vec(),
            Cow::Borrowed(tensor.values().bytes()),
        );
        written.push(EncodedTensor {
            name: name.to_owned(),
            dtype,
            shape,
            bytes,
        });
        if let Some(quantized) = tensor.quantized() {
            let halves: Vec<bf16> = quantized
                .scales
                .iter()
                .map(|&scale| bf16::from_f32(scale))
                .collect();
            // BF16 only if it is lossless.
            let exact = halves
                .iter()
                .zip(&quantized.scales)
                .all(|(half, &scale)| half.to_f32() == scale);
            let (dtype, bytes) = if exact {
                (
                    Dtype::BF16,
                    Cow::Owned(bytemuck::cast_slice(&halves).to_vec()),
                )
            } else {
                (
                    Dtype::F32,
                    Cow::Borrowed(bytemuck::cast_slice(&quantized.scales)),
                )
            };
            let shape = &quantized.scale_shape;
            written.push(EncodedTensor {
                name: format!("{name}{SCALE}"),
                dtype,
                shape: shape.clone(),
                bytes,
            });
            if !quantized.zero_points.is_empty() {
                let bytes = Cow::Borrowed(bytemuck::cast_slice(&quantized.zero_points));
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
    let in_bytes = |tensor: &Tensor| {
        tensor
            .quantized()
            .is_some_and(|quantized| quantized.int8_products)
    };
    weights
        .iter()
        .filter(|(_, tensor)| in_bytes(tensor))
        .map(|(name, _)| name.to_owned())
        .collect()
}
