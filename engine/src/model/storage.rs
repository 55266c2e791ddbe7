//! How the values of a weight are stored: as they are, in half the bits, or in eight with scales.

use std::borrow::Cow;

use half::{bf16, f16};

use super::ModelError;

/// What a weight's values are stored as, in a file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// 32-bit floats.
    F32,
    /// 16-bit floats of IEEE 754: 11 bits, magnitudes from 6·10⁻⁸ to 65504.
    F16,
    /// The upper halves of 32-bit floats: 8 bits.
    Bf16,
    /// Signed bytes times scales.
    I8,
}

impl Storage {
    /// Bytes of a number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// Its name in safetensors files.
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

/// The values of a tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// As [`Storage::F32`].
    F32(Vec<f32>),
    /// As [`Storage::F16`].
    F16(Vec<f16>),
    /// As [`Storage::Bf16`].
    Bf16(Vec<bf16>),
    /// As [`Storage::I8`].
    I8(QuantizedValues),
}

impl Values {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::I8(quantized) => quantized.codes.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they are stored as.
    #[must_use]
    pub fn storage(&self) -> Storage {
        match self {
            Self::F32(_) => Storage::F32,
            Self::F16(_) => Storage::F16,
            Self::Bf16(_) => Storage::Bf16,
            Self::I8(_) => Storage::I8,
        }
    }

    /// Their little-endian bytes, without scales.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Bf16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::I8(quantized) => quantized.codes.iter().map(|code| code.cast_unsigned()).collect(),
        }
    }

    /// The numbers that they stand for; `shape` is the tensor's.
    pub(super) fn floats(&self, shape: &[usize]) -> Cow<'_, [f32]> {
        match self {
            Self::F32(values) => Cow::Borrowed(values),
            Self::F16(values) => values.iter().map(|value| value.to_f32()).collect(),
            Self::Bf16(values) => values.iter().map(|value| value.to_f32()).collect(),
            Self::I8(quantized) => quantized.floats(shape),
        }
    }

    /// Why they cannot be a weight's values, if so.
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

/// Signed bytes from −127 to 127: each, less the zero of its block where it has one, times the block's scale.
///
/// A tensor is cut evenly into blocks along each of its axes, and the scales have the shape of that: of a matrix
/// `[rows][columns]`, scales `[rows][1]` are one for each row, `[1][1]` one for all, `[rows][columns / 64]` one for each 64
/// values of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedValues {
    /// `shape.iter().product()` bytes.
    pub codes: Vec<i8>,
    /// How many scales there are along each axis of the tensor: divisors of its extents.
    pub scale_shape: Vec<usize>,
    /// Row-major.
    pub scales: Vec<f32>,
    /// The byte that stands for 0, one for each scale; empty where that is 0 for all. Bytes that are multiplied have none.
    pub zero_points: Vec<i8>,
    /// Whether products with this weight may be computed on bytes, by bringing what it multiplies to eight bits, too, each
    /// frame with a scale of its own.
    pub int8_products: bool,
}

impl QuantizedValues {
    /// The nearest bytes to those values, halves to even.
    ///
    /// # Panics
    /// When the scales do not fit the shape, or the shape the values.
    #[must_use]
    pub fn quantize(
        values: &[f32],
        shape: &[usize],
        scale_shape: &[usize],
        scales: Vec<f32>,
        zero_points: Vec<i8>,
        int8_products: bool,
    ) -> Self {
        let mut quantized = Self { codes: Vec::new(), scale_shape: scale_shape.to_vec(), scales, zero_points, int8_products };
        assert!(quantized.fits(shape), "scales of shape {scale_shape:?} do not fit {shape:?}");
        assert_eq!(values.len(), shape.iter().product::<usize>(), "shape and values must agree");
        let quantize = |at: usize| {
            let block = block(at, shape, scale_shape);
            (values[at] / quantized.scales[block]).round_ties_even() + quantized.zero_point(block)
        };
        quantized.codes = (0..values.len()).map(|at| quantize(at).clamp(-127.0, 127.0) as i8).collect();
        quantized
    }

    /// The byte that stands for 0 in a block.
    fn zero_point(&self, block: usize) -> f32 {
        self.zero_points.get(block).copied().map_or(0.0, f32::from)
    }

    /// The scale of each place along one axis, where scales differ along no other.
    #[must_use]
    pub fn scales_along(&self, axis: usize, extent: usize) -> Option<Vec<f32>> {
        let others = self.scale_shape.iter().enumerate().all(|(other, &count)| other == axis || count == 1);
        let each = |at: usize| self.scales[at * self.scale_shape[axis] / extent];
        others.then(|| (0..extent).map(each).collect())
    }

    fn fits(&self, shape: &[usize]) -> bool {
        self.scale_shape.len() == shape.len()
            && self.scales.len() == self.scale_shape.iter().product::<usize>()
            && (self.zero_points.is_empty() || self.zero_points.len() == self.scales.len())
            && self.scale_shape.iter().zip(shape).all(|(&count, &extent)| count > 0 && extent.is_multiple_of(count))
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
            return Some("has scales or zeros that do not divide its shape");
        }
        if self.int8_products && !self.zero_points.is_empty() {
            return Some("is to be multiplied in bytes, but 0 is not 0 there");
        }
        // As far from zero as two bytes are from one another.
        if !self.scales.iter().all(|&scale| scale.is_normal() && scale > 0.0 && (scale * 255.0).is_finite()) {
            return Some("has a scale that is no positive number");
        }
        self.codes.contains(&i8::MIN).then_some("holds -128, which has no opposite")
    }
}

/// The index of the scale of a value.
pub(super) fn block(mut at: usize, shape: &[usize], scale_shape: &[usize]) -> usize {
    let (mut index, mut stride) = (0, 1);
    for (&extent, &count) in shape.iter().zip(scale_shape).rev() {
        index += (at % extent) * count / extent * stride;
        stride *= count;
        at /= extent;
    }
    index
}

/// The numbers in 16 bits, or why not.
pub(super) fn to_16_bit(values: &[f32], storage: Storage) -> Result<Values, ModelError> {
    let halves = match storage {
        Storage::Bf16 => Values::Bf16(values.iter().map(|&value| bf16::from_f32(value)).collect()),
        _ => Values::F16(values.iter().map(|&value| f16::from_f32(value)).collect()),
    };
    match halves.invalid_reason(&[]) {
        None => Ok(halves),
        Some(_) => Err(ModelError::Header(format!("a value is too large for {}", storage.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_scale() {
        let shape = [2, 6];
        let blocks = |scale_shape: &[usize]| (0..12).map(|at| block(at, &shape, scale_shape)).collect::<Vec<_>>();
        assert_eq!(blocks(&[1, 1]), [0; 12]);
        assert_eq!(blocks(&[2, 1]), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(blocks(&[1, 6]), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        assert_eq!(blocks(&[2, 2]), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn bytes_are_the_nearest() {
        let values = [1.0, -0.25, 0.375, 300.0, -5.0, 0.0];
        let quantized = QuantizedValues::quantize(&values, &[2, 3], &[2, 1], vec![0.25, 2.0], Vec::new(), false);
        // Halves to even: 1.5 steps are 2, −2.5 are −2; what is beyond the largest byte is cut off.
        assert_eq!(quantized.codes, [4, -1, 2, 127, -2, 0]);
        assert_eq!(*quantized.floats(&[2, 3]), [1.0, -0.25, 0.5, 254.0, -4.0, 0.0]);
        assert_eq!(quantized.scales_along(0, 2), Some(vec![0.25, 2.0]));
        assert_eq!(quantized.scales_along(1, 3), None);
        // What lies to one side of zero uses both sides of the bytes.
        let values = [0.0, 1.0, 2.54, 5.0, -5.0, 20.4];
        let quantized = QuantizedValues::quantize(&values, &[2, 3], &[2, 1], vec![0.01, 0.1], vec![-127, -77], false);
        assert_eq!(quantized.codes, [-127, -27, 127, -27, -127, 127]);
        assert_eq!(*quantized.floats(&[2, 3]), [0.0, 1.0, 2.54, 5.0, -5.0, 20.4]);
    }

    #[test]
    fn what_cannot_be_stored() {
        assert!(to_16_bit(&[7e4], Storage::F16).is_err() && to_16_bit(&[7e4], Storage::Bf16).is_ok());
        let whole = QuantizedValues::quantize(&[1.0; 6], &[2, 3], &[2, 1], vec![0.25, 2.0], Vec::new(), false);
        let with_zeros = |zero_points, int8_products| QuantizedValues { zero_points, int8_products, ..whole.clone() };
        assert_eq!(with_zeros(vec![3, -7], false).invalid_reason(&[2, 3]), None);
        assert!(
            with_zeros(vec![3], false).invalid_reason(&[2, 3]).is_some()
                && with_zeros(vec![3, 7], true).invalid_reason(&[2, 3]).is_some()
        );
        assert_eq!(whole.invalid_reason(&[2, 3]), None);
        assert!(whole.invalid_reason(&[3, 2]).is_some() && whole.invalid_reason(&[6]).is_some() && whole.invalid_reason(&[1, 6]).is_some());
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX, 1e-40] {
            let broken = QuantizedValues { scales: vec![0.25, scale], ..whole.clone() };
            assert!(broken.invalid_reason(&[2, 3]).is_some(), "{scale}");
        }
        let mut lowest = whole;
        lowest.codes[5] = -128;
        assert!(lowest.invalid_reason(&[2, 3]).is_some());
    }
}
