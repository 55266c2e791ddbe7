//! Packed weights, and the columns that they multiply.

use half::f16;

use crate::simd::{Array, LANES, Simd};

/// Vector on one cache line, so that no load straddles two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub Array);

/// Vector in half precision on half of a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct HalfLine(pub [f16; LANES]);

/// Vector of weights in memory.
pub(crate) trait WeightLine {
    /// Loads all lanes.
    fn load<S: Simd>(&self, s: S) -> S::V;
    /// Returns one lane.
    fn lane(&self, lane: usize) -> f32;
}

impl WeightLine for CacheLine {
    #[inline(always)]
    fn load<S: Simd>(&self, s: S) -> S::V {
        s.load(&self.0)
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> f32 {
        self.0[lane]
    }
}

impl WeightLine for HalfLine {
    #[inline(always)]
    fn load<S: Simd>(&self, s: S) -> S::V {
        s.load_f16(&self.0)
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> f32 {
        self.0[lane].to_f32()
    }
}

/// Weights of a dense layer or convolution, packed on construction.
///
/// Outputs are in *panels* of 16: `[panel][tap][input][16]`, the last panel padded with zeros. So a
/// vector of weights is multiplied by one input, and each output has its own chain of
/// multiply-adds. Weights in half precision take half of the memory, and are widened to `f32` where
/// they are loaded, which is exact.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    outputs: usize,
    taps: usize,
    inputs_per_tap: usize,
    rows: Rows,
    /// `[panel]`
    bias: Vec<CacheLine>,
}

/// `[panel][tap][input]`
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    F32(Vec<CacheLine>),
    F16(Vec<HalfLine>),
}

impl PackedMatrix {
    /// Packs `weights(output, tap, input)` and the bias, which is 0 if absent.
    ///
    /// # Panics
    /// If there is a bias and its length is not `outputs`, or the size overflows.
    pub fn new(
        outputs: usize,
        taps: usize,
        inputs_per_tap: usize,
        weights: impl Fn(usize, usize, usize) -> f32,
        bias: Option<&[f32]>,
    ) -> PackedMatrix {
        let rows = Rows::F32(pack(outputs, taps, inputs_per_tap, weights, CacheLine));
        PackedMatrix {
            outputs,
            taps,
            inputs_per_tap,
            rows,
            bias: pack_bias(outputs, bias),
        }
    }

    /// Packs weights in half precision and keeps them so; as [`PackedMatrix::new`].
    ///
    /// ```
    /// use half::f16;
    /// use ondes_kernels::{Columns, Kernels, PackedMatrix};
    ///
    /// let w = PackedMatrix::new_f16(1, 1, 2, |_, _, input| f16::from_f32([0.5, 2.0][input]), None);
    /// let mut y = [0.0];
    /// Kernels::detect().matmul(&w, Columns { data: &[3.0, 1.0], count: 1, stride: 2, tap_stride: 2 }, &mut y, 1);
    /// assert_eq!(y, [3.5]);
    /// ```
    ///
    /// # Panics
    /// If there is a bias and its length is not `outputs`, or the size overflows.
    pub fn new_f16(
        outputs: usize,
        taps: usize,
        inputs_per_tap: usize,
        weights: impl Fn(usize, usize, usize) -> f16,
        bias: Option<&[f32]>,
    ) -> PackedMatrix {
        let rows = Rows::F16(pack(outputs, taps, inputs_per_tap, weights, HalfLine));
        PackedMatrix {
            outputs,
            taps,
            inputs_per_tap,
            rows,
            bias: pack_bias(outputs, bias),
        }
    }

    /// Returns the rows of the matrix: the values per column of the product.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the taps of the convolution; 1 for a dense layer.
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Returns the inputs per tap.
    pub fn inputs_per_tap(&self) -> usize {
        self.inputs_per_tap
    }

    /// Returns the memory of weights and bias in bytes.
    pub fn bytes(&self) -> usize {
        let rows = match &self.rows {
            Rows::F32(rows) => size_of_val(&**rows),
            Rows::F16(rows) => size_of_val(&**rows),
        };
        rows + size_of_val(&*self.bias)
    }

    pub(crate) fn panels(&self) -> usize {
        self.bias.len()
    }

    #[inline(always)]
    pub(crate) fn bias_of(&self, panel: usize) -> &Array {
        &self.bias[panel].0
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// Packs weights as `[panel][tap][input]`.
fn pack<T: Default, L>(
    outputs: usize,
    taps: usize,
    inputs_per_tap: usize,
    weights: impl Fn(usize, usize, usize) -> T,
    line: impl Fn([T; LANES]) -> L,
) -> Vec<L> {
    let panels = outputs.div_ceil(LANES);
    let length = taps
        .checked_mul(inputs_per_tap)
        .and_then(|depth| depth.checked_mul(panels));
    let mut rows = Vec::with_capacity(length.expect("the matrix fits into memory"));
    for first in (0..outputs).step_by(LANES) {
        for tap in 0..taps {
            for input in 0..inputs_per_tap {
                rows.push(line(std::array::from_fn(|lane| {
                    let output = first + lane;
                    if output < outputs {
                        weights(output, tap, input)
                    } else {
                        T::default()
                    }
                })));
            }
        }
    }
    rows
}

/// Packs the bias as `[panel]`.
fn pack_bias(outputs: usize, bias: Option<&[f32]>) -> Vec<CacheLine> {
    if let Some(bias) = bias {
        assert_eq!(bias.len(), outputs, "a bias per output");
    }
    let value = |output: usize| {
        bias.and_then(|bias| bias.get(output))
            .copied()
            .unwrap_or(0.0)
    };
    (0..outputs)
        .step_by(LANES)
        .map(|first| CacheLine(std::array::from_fn(|lane| value(first + lane))))
        .collect()
}

/// Columns of a product: windows into one slice.
///
/// Tap `t` of column `c` reads `inputs_per_tap` values from `data[c * stride + t * tap_stride]` on.
/// A dense layer has one tap; a convolution over frames of `n` channels has `stride = n * hop` and
/// `tap_stride = n * dilation`.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Values that the columns read.
    pub data: &'a [f32],
    /// Number of columns.
    pub count: usize,
    /// Values from one column to the next.
    pub stride: usize,
    /// Values from one tap to the next.
    pub tap_stride: usize,
}
