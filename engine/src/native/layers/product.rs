//! Products with matrices, on floats or on bytes.
//!
//! A weight that is stored in eight bits may be multiplied in them ([`crate::model::storage::QuantizedValues::int8_products`]): frames are then
//! brought to bytes, each with a scale of its own, so that what comes out of a frame depends on nothing but what went in. Whether
//! that is done is a matter of shapes alone, so that a model sounds the same on every machine.

use std::borrow::Cow;

use ondes_kernels::{Int8Columns, Int8Matrix, Columns, Kernels, PackedMatrix, int8_frame_width};

use crate::model::Tensor;

/// Fewest inputs of a tap from which on products of bytes pay for bringing frames to bytes.
const INPUTS: usize = 64;
/// Fewest rows, taps counted, that must share what that takes: 96 rows of 64 inputs are a tenth faster in bytes.
const ROWS: usize = 96;

/// The extents of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub outputs: usize,
    pub taps: usize,
    pub inputs: usize,
}

/// A weight as the rows of one or several matrices of the same frames.
pub(super) struct Rows<'a> {
    values: RowValues<'a>,
}

enum RowValues<'a> {
    Floats(Cow<'a, [f32]>),
    /// With the scale of each row of all matrices.
    Bytes(&'a [i8], Vec<f32>),
}

impl<'a> Rows<'a> {
    /// The rows of a weight whose outputs lie along an axis, once or several times over. `groups` matrices share a frame's
    /// channels.
    pub fn new(tensor: &'a Tensor, axis: usize, groups: usize, extents: Extents) -> Self {
        let whole = groups == 1 || extents.inputs.is_multiple_of(4);
        let pays = extents.inputs >= INPUTS && extents.outputs * extents.taps >= ROWS;
        let quantized = tensor.quantized().filter(|quantized| quantized.int8_products && whole && pays);
        let outputs = tensor.shape()[axis];
        let in_bytes = quantized.and_then(|quantized| Some((&quantized.codes, quantized.scales_along(axis, outputs)?)));
        let values = match in_bytes {
            Some((steps, scales)) => RowValues::Bytes(steps, scales.repeat(groups * extents.outputs / outputs)),
            None => RowValues::Floats(tensor.floats()),
        };
        Self { values }
    }

    pub fn in_bytes(&self) -> bool {
        matches!(self.values, RowValues::Bytes(..))
    }

    /// Packs the matrix that begins with row `first`; `at(output, tap, input)` is where a value lies in the weight.
    pub fn pack(
        &self,
        extents: Extents,
        first: usize,
        at: impl Fn(usize, usize, usize) -> usize,
        bias: &[f32],
    ) -> Matrix {
        let Extents { outputs, taps, inputs } = extents;
        match &self.values {
            RowValues::Floats(floats) => {
                Matrix::Floats(PackedMatrix::new(outputs, taps, inputs, |o, t, i| floats[at(o, t, i)], Some(bias)))
            }
            RowValues::Bytes(steps, scales) => {
                let scales = &scales[first..][..outputs];
                Matrix::Bytes(Int8Matrix::new(outputs, taps, inputs, |o, t, i| steps[at(o, t, i)], scales, bias))
            }
        }
    }
}

/// A packed matrix.
pub(super) enum Matrix {
    Floats(PackedMatrix),
    Bytes(Int8Matrix),
}

/// Frames that a matrix multiplies, `[frame][channel]`.
#[derive(Clone, Copy)]
pub(super) enum Frames<'a> {
    Floats(&'a [f32]),
    /// As [`Kernels::quantize`] makes them.
    Bytes {
        bytes: &'a [u8],
        scales: &'a [f32],
    },
}

/// Which frames and channels: tap `t` of column `c` reads frame `c * stride + t * dilation` from channel `first` on.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// Of each frame.
    pub channels: usize,
    pub first: usize,
    pub count: usize,
    pub stride: usize,
    pub dilation: usize,
}

impl Matrix {
    pub fn outputs(&self) -> usize {
        match self {
            Self::Floats(matrix) => matrix.outputs(),
            Self::Bytes(matrix) => matrix.outputs(),
        }
    }

    pub fn inputs(&self) -> usize {
        match self {
            Self::Floats(matrix) => matrix.inputs_per_tap(),
            Self::Bytes(matrix) => matrix.inputs_per_tap(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::Floats(matrix) => matrix.bytes(),
            Self::Bytes(matrix) => matrix.bytes(),
        }
    }

    /// One column of `y` for each column of the window; the frames are those that this matrix was made for.
    pub fn multiply(&self, kernels: Kernels, frames: Frames<'_>, window: Window, y: &mut [f32], y_stride: usize) {
        let Window { channels, first, count, stride, dilation } = window;
        match (self, frames) {
            (Self::Floats(matrix), Frames::Floats(data)) => {
                let (stride, tap_stride) = (stride * channels, dilation * channels);
                kernels.matmul(matrix, Columns { data: &data[first..], count, stride, tap_stride }, y, y_stride);
            }
            (Self::Bytes(matrix), Frames::Bytes { bytes, scales }) => {
                let width = int8_frame_width(channels);
                let x = Int8Columns { bytes, scales, width, first, count, stride, tap_stride: dilation };
                kernels.int8_matmul(matrix, x, y, y_stride);
            }
            _ => unreachable!("frames of another kind than the matrix"),
        }
    }
}

/// A dense product: one matrix over all frames, with room for these as bytes.
pub(super) struct Dense {
    matrix: Matrix,
    bytes: Vec<u8>,
    scales: Vec<f32>,
}

impl Dense {
    /// Packs a weight `[outputs][inputs]` and a bias `[outputs]` for up to so many frames at a time.
    pub fn new(weight: &Tensor, bias: &Tensor, frames: usize) -> Self {
        let [outputs, inputs] = *weight.shape() else { unreachable!("a checked model's matrix has two extents") };
        let extents = Extents { outputs, taps: 1, inputs };
        let rows = Rows::new(weight, 0, 1, extents);
        let room = if rows.in_bytes() { frames } else { 0 };
        Self {
            matrix: rows.pack(extents, 0, |o, _, i| o * inputs + i, &bias.floats()),
            bytes: vec![0; room * int8_frame_width(inputs)],
            scales: vec![0.0; room],
        }
    }

    pub fn outputs(&self) -> usize {
        self.matrix.outputs()
    }

    pub fn in_bytes(&self) -> bool {
        matches!(self.matrix, Matrix::Bytes(_))
    }

    /// `y [frame][output]` of `x [frame][input]`.
    pub fn run(&mut self, kernels: Kernels, x: &[f32], y: &mut [f32]) {
        let channels = self.matrix.inputs();
        let count = x.len() / channels;
        let window = Window { channels, first: 0, count, stride: 1, dilation: 1 };
        let frames = if self.in_bytes() {
            let (bytes, scales) = (&mut self.bytes[..count * int8_frame_width(channels)], &mut self.scales[..count]);
            kernels.quantize(x, channels, bytes, scales);
            Frames::Bytes { bytes, scales }
        } else {
            Frames::Floats(x)
        };
        self.matrix.multiply(kernels, frames, window, y, self.matrix.outputs());
    }

    pub fn bytes(&self) -> usize {
        self.matrix.bytes() + self.bytes.len() + size_of_val(self.scales.as_slice())
    }
}
