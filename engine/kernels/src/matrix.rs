//! Packed weights, and the columns that they multiply.

use crate::simd::{Array, LANES};

/// Vector on one cache line, so that no load straddles two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub Array);

/// Weights of a dense layer or convolution, packed on construction.
///
/// Outputs are in *panels* of 16: `[panel][tap][input][16]`, the last panel padded with zeros. So a vector of weights
/// is multiplied by one input, and each output has its own chain of multiply-adds.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    outputs: usize,
    taps: usize,
    inputs_per_tap: usize,
    /// `[panel][tap][input]`
    rows: Vec<CacheLine>,
    /// `[panel]`
    bias: Vec<CacheLine>,
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
        if let Some(bias) = bias {
            assert_eq!(bias.len(), outputs, "a bias per output");
        }
        let panels = outputs.div_ceil(LANES);
        let rows = taps.checked_mul(inputs_per_tap).and_then(|depth| depth.checked_mul(panels));
        let mut packed = PackedMatrix {
            outputs,
            taps,
            inputs_per_tap,
            rows: Vec::with_capacity(rows.expect("the matrix fits into memory")),
            bias: Vec::with_capacity(panels),
        };
        for panel in 0..panels {
            let first = panel * LANES;
            let used = LANES.min(outputs - first);
            let fill = |value: &dyn Fn(usize) -> f32| {
                CacheLine(std::array::from_fn(|lane| if lane < used { value(first + lane) } else { 0.0 }))
            };
            packed.bias.push(fill(&|output| bias.map_or(0.0, |bias| bias[output])));
            for tap in 0..taps {
                for input in 0..inputs_per_tap {
                    packed.rows.push(fill(&|output| weights(output, tap, input)));
                }
            }
        }
        packed
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
        size_of_val(&*self.rows) + size_of_val(&*self.bias)
    }

    pub(crate) fn panels(&self) -> usize {
        self.bias.len()
    }

    #[inline(always)]
    pub(crate) fn bias_of(&self, panel: usize) -> &Array {
        &self.bias[panel].0
    }

    /// The weights of one panel: `[tap][input]`.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &[CacheLine] {
        let depth = self.taps * self.inputs_per_tap;
        &self.rows[panel * depth..][..depth]
    }
}

/// Columns of a product: windows into one slice.
///
/// Tap `t` of column `c` reads `inputs_per_tap` values from `data[c * stride + t * tap_stride]` on. A dense layer has
/// one tap; a convolution over frames of `n` channels has `stride = n * hop` and `tap_stride = n * dilation`.
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
