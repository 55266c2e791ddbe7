//! Packed weights in eight bits, and the quantized columns that they multiply.

use crate::matrix::CacheLine;
use crate::simd::{LANES, PanelSums, QUAD, WeightQuads, ZERO_POINT};

/// Returns the length of a quantized frame of `channels` channels in bytes.
#[must_use]
pub const fn int8_frame_width(channels: usize) -> usize {
    channels.next_multiple_of(QUAD)
}

/// Maximum number of inputs per tap: the sum of more products may overflow 32 bits.
const MAX_INPUTS: usize = (i32::MAX / (255 * 127)) as usize;

/// Weights of a dense layer or convolution in eight bits, packed on construction: a quarter of the
/// memory of a [`crate::PackedMatrix`].
///
/// Outputs are in panels of 16 and inputs in groups of four: `[panel][tap][input / 4][16][4]`,
/// padded with zeros.
#[derive(Clone, Debug)]
pub struct Int8Matrix {
    outputs: usize,
    taps: usize,
    inputs_per_tap: usize,
    /// `[panel][tap][input / 4]`
    quads: Vec<WeightQuads>,
    /// `[panel][tap]`: −128 times the sums of the weights, which undoes the zero point of the
    /// codes.
    offsets: Vec<PanelSums>,
    /// `[panel]`
    scales: Vec<CacheLine>,
    /// `[panel]`
    bias: Vec<CacheLine>,
}

impl Int8Matrix {
    /// Packs `weights(output, tap, input)`, each from −127 to 127, with a scale and a bias per
    /// output.
    ///
    /// # Panics
    /// If a weight is −128, the length of `scales` or `bias` is not `outputs`, or a tap has more
    /// than 66,312 inputs.
    #[must_use]
    pub fn new(
        outputs: usize,
        taps: usize,
        inputs_per_tap: usize,
        weights: impl Fn(usize, usize, usize) -> i8,
        scales: &[f32],
        bias: &[f32],
    ) -> Int8Matrix {
        assert_eq!(scales.len(), outputs, "a scale per output");
        assert_eq!(bias.len(), outputs, "a bias per output");
        assert!(
            inputs_per_tap <= MAX_INPUTS,
            "sums of {inputs_per_tap} products do not fit"
        );
        let panels = outputs.div_ceil(LANES);
        let rows = taps
            .checked_mul(inputs_per_tap.div_ceil(QUAD))
            .and_then(|depth| depth.checked_mul(panels));
        let mut packed = Int8Matrix {
            outputs,
            taps,
            inputs_per_tap,
            quads: Vec::with_capacity(rows.expect("the matrix fits into memory")),
            offsets: Vec::with_capacity(panels * taps),
            scales: Vec::with_capacity(panels),
            bias: Vec::with_capacity(panels),
        };
        for panel in 0..panels {
            let first = panel * LANES;
            let fill = |values: &[f32]| {
                CacheLine(std::array::from_fn(|lane| {
                    values.get(first + lane).copied().unwrap_or(0.0)
                }))
            };
            packed.scales.push(fill(scales));
            packed.bias.push(fill(bias));
            for tap in 0..taps {
                let mut offsets = PanelSums([0; LANES]);
                for input in (0..inputs_per_tap).step_by(QUAD) {
                    let quads = WeightQuads(std::array::from_fn(|at| {
                        let (output, input) = (first + at / QUAD, input + at % QUAD);
                        if output < outputs && input < inputs_per_tap {
                            weights(output, tap, input)
                        } else {
                            0
                        }
                    }));
                    for (at, &weight) in quads.0.iter().enumerate() {
                        assert!(weight != i8::MIN, "a weight of -128 has no opposite");
                        offsets.0[at / QUAD] -= i32::from(ZERO_POINT) * i32::from(weight);
                    }
                    packed.quads.push(quads);
                }
                packed.offsets.push(offsets);
            }
        }
        packed
    }

    /// Returns the rows of the matrix: the values per column of the product.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the taps of the convolution; 1 for a dense layer.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Returns the inputs per tap.
    #[must_use]
    pub fn inputs_per_tap(&self) -> usize {
        self.inputs_per_tap
    }

    /// Returns the memory of weights, offsets, scales and bias in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.quads)
            + size_of_val(&*self.offsets)
            + size_of_val(&*self.scales)
            + size_of_val(&*self.bias)
    }

    pub(crate) fn panels(&self) -> usize {
        self.bias.len()
    }

    /// Returns the groups of four inputs per tap.
    pub(crate) fn depth(&self) -> usize {
        self.inputs_per_tap.div_ceil(QUAD)
    }

    /// Returns the weights of a panel's tap, `[input / 4]`.
    #[inline(always)]
    pub(crate) fn tap(&self, panel: usize, tap: usize) -> &[WeightQuads] {
        let depth = self.depth();
        &self.quads[(panel * self.taps + tap) * depth..][..depth]
    }

    #[inline(always)]
    pub(crate) fn offsets(&self, panel: usize, tap: usize) -> &PanelSums {
        &self.offsets[panel * self.taps + tap]
    }

    #[inline(always)]
    pub(crate) fn scales(&self, panel: usize) -> &CacheLine {
        &self.scales[panel]
    }

    #[inline(always)]
    pub(crate) fn bias(&self, panel: usize) -> &CacheLine {
        &self.bias[panel]
    }
}

/// Columns of a product in eight bits: windows into frames quantized by
/// [`crate::Kernels::quantize`].
///
/// Tap `t` of column `c` reads frame `c * stride + t * tap_stride` from channel `first` on. A dense
/// layer has one tap; a convolution has its hop as `stride` and its dilation as `tap_stride`.
#[derive(Clone, Copy, Debug)]
pub struct Int8Columns<'a> {
    /// `[frame][width]`
    pub codes: &'a [u8],
    /// `[frame]`
    pub scales: &'a [f32],
    /// Bytes per frame: [`int8_frame_width`] of its channels.
    pub width: usize,
    /// First channel that is read.
    pub first: usize,
    /// Number of columns.
    pub count: usize,
    /// Frames from one column to the next.
    pub stride: usize,
    /// Frames from one tap to the next.
    pub tap_stride: usize,
}
