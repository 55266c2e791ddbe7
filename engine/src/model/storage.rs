//! Storage formats of weight values: 32-bit, 16-bit, or 8-bit with scales.

use std::borrow::Cow;

use half::{bf16, f16};

use super::ModelError;

/// Files are little-endian; weights are read, hashed and written as they lie in memory.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "big-endian machines are not supported"
);

/// Storage format of a weight, in a file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// 32-bit float.
    F32,
    /// IEEE 754 half precision: 11 significant bits, magnitudes from 6·10⁻⁸ to 65504.
    F16,
    /// bfloat16, the upper half of a 32-bit float: 8 significant bits.
    Bf16,
    /// Signed 8-bit integers with scales.
    I8,
}

impl Storage {
    /// Returns the bytes per value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// Returns the name of the data type in safetensors files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::I8 => "I8",
        }
    }
}

/// Values of a tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// See [`Storage::F32`].
    F32(Vec<f32>),
    /// See [`Storage::F16`].
    F16(Vec<f16>),
    /// See [`Storage::Bf16`].
    Bf16(Vec<bf16>),
    /// See [`Storage::I8`].
    I8(QuantizedValues),
}

impl Values {
    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::I8(quantized) => quantized.codes.len(),
        }
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the storage format.
    #[must_use]
    pub fn storage(&self) -> Storage {
        match self {
            Self::F32(_) => Storage::F32,
            Self::F16(_) => Storage::F16,
            Self::Bf16(_) => Storage::Bf16,
            Self::I8(_) => Storage::I8,
        }
    }

    /// Returns the values or codes as they are stored in files, without scales.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::F16(values) => bytemuck::cast_slice(values),
            Self::Bf16(values) => bytemuck::cast_slice(values),
            Self::I8(quantized) => bytemuck::cast_slice(&quantized.codes),
        }
    }

    /// Returns the values as floats; `shape` is that of the tensor.
    pub(super) fn floats(&self, shape: &[usize]) -> Cow<'_, [f32]> {
        match self {
            Self::F32(values) => Cow::Borrowed(values),
            Self::F16(values) => values.iter().map(|value| value.to_f32()).collect(),
            Self::Bf16(values) => values.iter().map(|value| value.to_f32()).collect(),
            Self::I8(quantized) => quantized.floats(shape),
        }
    }

    /// Returns why these values are invalid for a tensor of shape `shape`, or `None` if they are
    /// valid.
    pub(super) fn invalid_reason(&self, shape: &[usize]) -> Option<&'static str> {
        let finite = match self {
            Self::F32(values) => values.iter().all(|value| value.is_finite()),
            Self::F16(values) => values.iter().all(|value| value.is_finite()),
            Self::Bf16(values) => values.iter().all(|value| value.is_finite()),
            Self::I8(quantized) => return quantized.invalid_reason(shape),
        };
        (!finite).then_some("holds a NaN or an infinity")
    }
}

/// 8-bit values: codes from −127 to 127, minus the zero point of their block, times the scale of
/// their block.
///
/// A tensor is divided evenly into blocks along each axis; the scales have the shape of the grid of
/// blocks. For a matrix `[rows][columns]`, scales `[rows][1]` are one per row, `[1][1]` one for the
/// tensor, and `[rows][columns / 64]` one for each 64 values of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedValues {
    /// Codes, `shape.iter().product()` of them.
    pub codes: Vec<i8>,
    /// Number of scales along each axis of the tensor; each divides the axis' extent.
    pub scale_shape: Vec<usize>,
    /// Scales, row-major.
    pub scales: Vec<f32>,
    /// Code that represents 0, for each scale; empty if it is 0 in all blocks.
    pub zero_points: Vec<i8>,
    /// Allows products with this weight to be computed in 8 bits; the other operand is then
    /// quantized with a scale per frame. Requires zero points of 0.
    pub int8_products: bool,
}

impl QuantizedValues {
    /// Quantizes values to the nearest codes, ties to even.
    ///
    /// # Panics
    /// If the scales do not fit the shape, or the shape does not fit the values.
    #[must_use]
    pub fn quantize(
        values: &[f32],
        shape: &[usize],
        scale_shape: &[usize],
        scales: Vec<f32>,
        zero_points: Vec<i8>,
        int8_products: bool,
    ) -> Self {
        let mut quantized = Self {
            codes: Vec::new(),
            scale_shape: scale_shape.to_vec(),
            scales,
            zero_points,
            int8_products,
        };
        assert!(
            quantized.fits(shape),
            "scales of shape {scale_shape:?} do not fit {shape:?}"
        );
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "the number of values must fit the shape"
        );
        let quantize = |at: usize| {
            let block = block(at, shape, scale_shape);
            (values[at] / quantized.scales[block]).round_ties_even() + quantized.zero_point(block)
        };
        quantized.codes = (0..values.len())
            .map(|at| quantize(at).clamp(-127.0, 127.0) as i8)
            .collect();
        quantized
    }

    /// Returns the zero point of a block.
    fn zero_point(&self, block: usize) -> f32 {
        self.zero_points.get(block).copied().map_or(0.0, f32::from)
    }

    /// Returns the scale of each index along one axis; `None` if scales vary along another axis.
    #[must_use]
    pub fn scales_along(&self, axis: usize, extent: usize) -> Option<Vec<f32>> {
        let others = self
            .scale_shape
            .iter()
            .enumerate()
            .all(|(other, &count)| other == axis || count == 1);
        let each = |at: usize| self.scales[at * self.scale_shape[axis] / extent];
        others.then(|| (0..extent).map(each).collect())
    }

    fn fits(&self, shape: &[usize]) -> bool {
        self.scale_shape.len() == shape.len()
            && self.scales.len() == self.scale_shape.iter().product::<usize>()
            && (self.zero_points.is_empty() || self.zero_points.len() == self.scales.len())
            && self
                .scale_shape
                .iter()
                .zip(shape)
                .all(|(&count, &extent)| count > 0 && extent.is_multiple_of(count))
    }

    fn floats(&self, shape: &[usize]) -> Cow<'_, [f32]> {
        let value = |(at, &code): (usize, &i8)| {
            let block = block(at, shape, &self.scale_shape);
            (f32::from(code) - self.zero_point(block)) * self.scales[block]
        };
        self.codes.iter().enumerate().map(value).collect()
    }

    fn invalid_reason(&self, shape: &[usize]) -> Option<&'static str> {
        if !self.fits(shape) {
            return Some("has scales or zero points whose shape does not divide its own");
        }
        if self.int8_products && !self.zero_points.is_empty() {
            return Some("has zero points, but is marked for 8-bit products, which require 0");
        }
        // The largest difference of two codes is 254; one more for safety against overflow.
        if !self
            .scales
            .iter()
            .all(|&scale| scale.is_normal() && scale > 0.0 && (scale * 255.0).is_finite())
        {
            return Some("has a scale that is not a positive normal number");
        }
        self.codes
            .contains(&i8::MIN)
            .then_some("contains the code -128, which is not allowed")
    }
}

/// Returns the index of the block of the value at index `at`.
pub(super) fn block(mut at: usize, shape: &[usize], scale_shape: &[usize]) -> usize {
    let (mut index, mut stride) = (0, 1);
    for (&extent, &count) in shape.iter().zip(scale_shape).rev() {
        index += (at % extent) * count / extent * stride;
        stride *= count;
        at /= extent;
    }
    index
}

/// Converts values to 16 bits; fails if one becomes infinite.
pub(super) fn to_16_bit(values: &[f32], storage: Storage) -> Result<Values, ModelError> {
    let halves = match storage {
        Storage::Bf16 => Values::Bf16(values.iter().map(|&value| bf16::from_f32(value)).collect()),
        _ => Values::F16(values.iter().map(|&value| f16::from_f32(value)).collect()),
    };
    match halves.invalid_reason(&[]) {
        None => Ok(halves),
        Some(_) => Err(ModelError::Header(format!(
            "a value is too large for {}",
            storage.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_own_scale() {
        let shape = [2, 6];
        let blocks = |scale_shape: &[usize]| {
            (0..12)
                .map(|at| block(at, &shape, scale_shape))
                .collect::<Vec<_>>()
        };
        assert_eq!(blocks(&[1, 1]), [0; 12]);
        assert_eq!(blocks(&[2, 1]), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(blocks(&[1, 6]), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        assert_eq!(blocks(&[2, 2]), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn values_are_quantized_to_the_nearest_code() {
        let values = [1.0, -0.25, 0.375, 300.0, -5.0, 0.0];
        let quantized = QuantizedValues::quantize(
            &values,
            &[2, 3],
            &[2, 1],
            vec![0.25, 2.0],
            Vec::new(),
            false,
        );
        // Ties to even: 1.5 becomes 2, −2.5 becomes −2. Values beyond the largest code are clamped.
        assert_eq!(quantized.codes, [4, -1, 2, 127, -2, 0]);
        assert_eq!(
            *quantized.floats(&[2, 3]),
            [1.0, -0.25, 0.5, 254.0, -4.0, 0.0]
        );
        assert_eq!(quantized.scales_along(0, 2), Some(vec![0.25, 2.0]));
        assert_eq!(quantized.scales_along(1, 3), None);
        // With a zero point, values of one sign use all codes.
        let values = [0.0, 1.0, 2.54, 5.0, -5.0, 20.4];
        let quantized = QuantizedValues::quantize(
            &values,
            &[2, 3],
            &[2, 1],
            vec![0.01, 0.1],
            vec![-127, -77],
            false,
        );
        assert_eq!(quantized.codes, [-127, -27, 127, -27, -127, 127]);
        assert_eq!(
            *quantized.floats(&[2, 3]),
            [0.0, 1.0, 2.54, 5.0, -5.0, 20.4]
        );
    }

    #[test]
    fn invalid_values_are_detected() {
        assert!(
            to_16_bit(&[7e4], Storage::F16).is_err() && to_16_bit(&[7e4], Storage::Bf16).is_ok()
        );
        let whole = QuantizedValues::quantize(
            &[1.0; 6],
            &[2, 3],
            &[2, 1],
            vec![0.25, 2.0],
            Vec::new(),
            false,
        );
        let with_zeros = |zero_points, int8_products| QuantizedValues {
            zero_points,
            int8_products,
            ..whole.clone()
        };
        assert_eq!(with_zeros(vec![3, -7], false).invalid_reason(&[2, 3]), None);
        assert!(
            with_zeros(vec![3], false).invalid_reason(&[2, 3]).is_some()
                && with_zeros(vec![3, 7], true)
                    .invalid_reason(&[2, 3])
                    .is_some()
        );
        assert_eq!(whole.invalid_reason(&[2, 3]), None);
        assert!(
            whole.invalid_reason(&[3, 2]).is_some()
                && whole.invalid_reason(&[6]).is_some()
                && whole.invalid_reason(&[1, 6]).is_some()
        );
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX, 1e-40] {
            let broken = QuantizedValues {
                scales: vec![0.25, scale],
                ..whole.clone()
            };
            assert!(broken.invalid_reason(&[2, 3]).is_some(), "{scale}");
        }
        let mut lowest = whole;
        lowest.codes[5] = -128;
        assert!(lowest.invalid_reason(&[2, 3]).is_some());
    }
}
