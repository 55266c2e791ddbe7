//! Matrix products in `f32` or in eight bits.
//!
//! Large weights that are stored as F16 stay so in memory and are widened where they are
//! multiplied, which gives the same bits: a large model is bound by the memory that it reads.
//!
//! A weight stored in eight bits may be multiplied in eight bits too
//! ([`crate::model::storage::QuantizedValues::int8_products`]). Frames are then quantized with a
//! scale each, so that the output of a frame depends on that frame alone. The choice depends on
//! shapes only, so a model sounds the same on every machine.

use std::borrow::Cow;

use half::f16;
use ondes_kernels::{Columns, Int8Columns, Int8Matrix, Kernels, PackedMatrix, int8_frame_width};

use crate::model::Tensor;
use crate::model::storage::Values;

/// Minimum number of inputs per tap for which products in eight bits repay the quantization of the
/// frames.
const MIN_INT8_INPUTS: usize = 64;
/// Minimum number of rows, times taps, that share one quantization: 96 rows of 64 inputs are a
/// tenth faster in eight bits.
const MIN_INT8_ROWS: usize = 96;

/// Minimum number of values that stay in half precision: smaller weights are read from a nearby
/// cache, where widening costs more than it saves.
const MIN_F16_VALUES: usize = 1 << 15;

/// Dimensions of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Extents {
    pub outputs: usize,
    pub taps: usize,
    pub inputs: usize,
}

/// A weight as the rows of one or several matrices that multiply the same frames.
pub(crate) struct WeightRows<'a> {
    values: RowValues<'a>,
}

enum RowValues<'a> {
    F32(Cow<'a, [f32]>),
    F16(&'a [f16]),
    Int8 {
        codes: &'a [i8],
        /// `[row]`, of all matrices.
        scales: Vec<f32>,
    },
}

impl<'a> WeightRows<'a> {
    /// Splits a weight whose outputs lie along `axis`. `groups` matrices share the channels of a
    /// frame; their rows may repeat the outputs several times.
    pub fn new(tensor: &'a Tensor, axis: usize, groups: usize, extents: Extents) -> Self {
        let is_aligned = groups == 1 || extents.inputs.is_multiple_of(4);
        let pays =
            extents.inputs >= MIN_INT8_INPUTS && extents.outputs * extents.taps >= MIN_INT8_ROWS;
        let quantized = tensor
            .quantized()
            .filter(|quantized| quantized.int8_products && is_aligned && pays);
        let outputs = tensor.shape()[axis];
        let int8 = quantized
            .and_then(|quantized| Some((&quantized.codes, quantized.scales_along(axis, outputs)?)));
        let values = match int8 {
            Some((codes, scales)) => RowValues::Int8 {
                codes,
                scales: scales.repeat(groups * extents.outputs / outputs),
            },
            None => match tensor.values() {
                Values::F16(halves) if halves.len() >= MIN_F16_VALUES => RowValues::F16(halves),
                _ => RowValues::F32(tensor.floats()),
            },
        };
        Self { values }
    }

    pub fn uses_int8(&self) -> bool {
        matches!(self.values, RowValues::Int8 { .. })
    }

    /// Packs the matrix whose first row is `first`; `at(output, tap, input)` is the index of a
    /// value in the weight.
    pub fn pack(
        &self,
        extents: Extents,
        first: usize,
        at: impl Fn(usize, usize, usize) -> usize,
        bias: &[f32],
    ) -> Matrix {
        let Extents {
            outputs,
            taps,
            inputs,
        } = extents;
        match &self.values {
            RowValues::F32(floats) => Matrix::F32(PackedMatrix::new(
                outputs,
                taps,
                inputs,
                |o, t, i| floats[at(o, t, i)],
                Some(bias),
            )),
            RowValues::F16(halves) => Matrix::F32(PackedMatrix::new_f16(
                outputs,
                taps,
                inputs,
                |o, t, i| halves[at(o, t, i)],
                Some(bias),
            )),
            RowValues::Int8 { codes, scales } => {
                let scales = &scales[first..][..outputs];
                Matrix::Int8(Int8Matrix::new(
                    outputs,
                    taps,
                    inputs,
                    |o, t, i| codes[at(o, t, i)],
                    scales,
                    bias,
                ))
            }
        }
    }
}

/// Packed matrix.
pub(crate) enum Matrix {
    /// Multiplied in `f32`; the weights may be in half precision.
    F32(PackedMatrix),
    Int8(Int8Matrix),
}

/// Frames that a matrix multiplies, `[frame][channel]`.
#[derive(Clone, Copy)]
pub(crate) enum Frames<'a> {
    F32(&'a [f32]),
    /// As [`Kernels::quantize`] gives them.
    Int8 {
        codes: &'a [u8],
        scales: &'a [f32],
    },
}

/// Columns of a product: tap `t` of column `c` reads frame `c * stride + t * dilation` from channel
/// `first` on.
#[derive(Clone, Copy)]
pub(crate) struct ColumnLayout {
    /// Channels per frame.
    pub channels: usize,
    /// First channel that is read.
    pub first: usize,
    /// Number of columns.
    pub count: usize,
    pub stride: usize,
    pub dilation: usize,
}

impl Matrix {
    pub fn outputs(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.outputs(),
            Self::Int8(matrix) => matrix.outputs(),
        }
    }

    pub fn inputs(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.inputs_per_tap(),
            Self::Int8(matrix) => matrix.inputs_per_tap(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.bytes(),
            Self::Int8(matrix) => matrix.bytes(),
        }
    }

    /// Computes one column of `y` per column. The frames must have the matrix's number type.
    pub fn multiply(
        &self,
        kernels: Kernels,
        frames: Frames<'_>,
        columns: ColumnLayout,
        y: &mut [f32],
        y_stride: usize,
    ) {
        let ColumnLayout {
            channels,
            first,
            count,
            stride,
            dilation,
        } = columns;
        match (self, frames) {
            (Self::F32(matrix), Frames::F32(data)) => {
                // Of a single tap no dilation is too large, since it is multiplied by 0.
                let (stride, tap_stride) = (stride * channels, dilation.saturating_mul(channels));
                kernels.matmul(
                    matrix,
                    Columns {
                        data: &data[first..],
                        count,
                        stride,
                        tap_stride,
                    },
                    y,
                    y_stride,
                );
            }
            (Self::Int8(matrix), Frames::Int8 { codes, scales }) => {
                let width = int8_frame_width(channels);
                let x = Int8Columns {
                    codes,
                    scales,
                    width,
                    first,
                    count,
                    stride,
                    tap_stride: dilation,
                };
                kernels.int8_matmul(matrix, x, y, y_stride);
            }
            (Self::F32(_), Frames::Int8 { .. }) | (Self::Int8(_), Frames::F32(_)) => {
                unreachable!("frames of another number type than the matrix")
            }
        }
    }
}

/// Dense layer: one matrix over all frames, with room for quantized frames.
pub(crate) struct Dense {
    matrix: Matrix,
    codes: Vec<u8>,
    scales: Vec<f32>,
}

impl Dense {
    /// Packs a weight `[outputs][inputs]` and a bias `[outputs]` for up to `frames` frames at a
    /// time.
    pub fn new(weight: &Tensor, bias: &Tensor, frames: usize) -> Self {
        let [outputs, inputs] = *weight.shape() else {
            unreachable!("a checked model's matrix has two extents")
        };
        let extents = Extents {
            outputs,
            taps: 1,
            inputs,
        };
        let rows = WeightRows::new(weight, 0, 1, extents);
        let quantized_frames = if rows.uses_int8() { frames } else { 0 };
        Self {
            matrix: rows.pack(extents, 0, |o, _, i| o * inputs + i, &bias.floats()),
            codes: vec![0; quantized_frames * int8_frame_width(inputs)],
            scales: vec![0.0; quantized_frames],
        }
    }

    pub fn outputs(&self) -> usize {
        self.matrix.outputs()
    }

    pub fn uses_int8(&self) -> bool {
        matches!(self.matrix, Matrix::Int8(_))
    }

    /// Computes `y [frame][output]` from `x [frame][input]`.
    pub fn run(&mut self, kernels: Kernels, x: &[f32], y: &mut [f32]) {
        let channels = self.matrix.inputs();
        let count = x.len() / channels;
        let columns = ColumnLayout {
            channels,
            first: 0,
            count,
            stride: 1,
            dilation: 1,
        };
        let frames = if self.uses_int8() {
            let (codes, scales) = (
                &mut self.codes[..count * int8_frame_width(channels)],
                &mut self.scales[..count],
            );
            kernels.quantize(x, channels, codes, scales);
            Frames::Int8 { codes, scales }
        } else {
            Frames::F32(x)
        };
        self.matrix
            .multiply(kernels, frames, columns, y, self.matrix.outputs());
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.matrix.bytes() + self.codes.len() + size_of_val(self.scales.as_slice())
    }
}
