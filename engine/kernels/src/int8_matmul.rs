//! Matrix products in eight bits.
//!
//! Blocks are those of `matmul`. The products of a tap are summed exactly as integers, then scaled
//! by the scale of the frame that the tap reads. These sums are added in the order of the taps;
//! output scales and bias come last. Each frame has its own scale, so a result does not depend on
//! the other frames of a call.

use crate::simd::{Int8Kernel, Int8Simd, LANES, QUAD, Simd, WeightQuads};
use crate::{Int8Columns, Int8Matrix, Kernels};

struct Int8Matmul<'a> {
    w: &'a Int8Matrix,
    x: Int8Columns<'a>,
    y: &'a mut [f32],
    y_stride: usize,
}

/// Panels per group: their weights stay in the nearest caches while all columns are multiplied.
const GROUP: usize = 8;

impl Int8Kernel for Int8Matmul<'_> {
    #[inline(always)]
    fn run<B: Int8Simd>(mut self, b: B) {
        let panels = self.w.panels();
        if B::Float::SMALL_TILES {
            for column in 0..self.x.count {
                for panel in 0..panels {
                    self.block::<B, 1, 1>(b, panel, column);
                }
            }
            return;
        }
        if self.x.count == 1 {
            return self.one_column(b, panels);
        }
        let mut first = 0;
        while first < panels {
            let group = GROUP.min(panels - first);
            let mut column = 0;
            while column < self.x.count {
                let left = self.x.count - column;
                column += if B::Float::MANY_REGISTERS {
                    match left {
                        8.. => self.columns::<B, 2, 8>(b, first, group, column),
                        4.. => self.columns::<B, 4, 4>(b, first, group, column),
                        2.. => self.columns::<B, 4, 2>(b, first, group, column),
                        _ => self.columns::<B, 4, 1>(b, first, group, column),
                    }
                } else {
                    match left {
                        4.. => self.columns::<B, 1, 4>(b, first, group, column),
                        2.. => self.columns::<B, 2, 2>(b, first, group, column),
                        _ => self.columns::<B, 4, 1>(b, first, group, column),
                    }
                };
            }
            first += group;
        }
    }
}

impl Int8Matmul<'_> {
    /// Multiplies a single column in blocks of many, about equally many panels: each weight is used
    /// once, so only independent sums hide the latency.
    #[inline(always)]
    fn one_column<B: Int8Simd>(&mut self, b: B, panels: usize) {
        let most = if B::Float::MANY_REGISTERS { 8 } else { 4 };
        let mut first = 0;
        while first < panels {
            let left = panels - first;
            let together = left.div_ceil(left.div_ceil(most));
            match together {
                8 => self.block::<B, 8, 1>(b, first, 0),
                7 => self.block::<B, 7, 1>(b, first, 0),
                6 => self.block::<B, 6, 1>(b, first, 0),
                5 => self.block::<B, 5, 1>(b, first, 0),
                4 => self.block::<B, 4, 1>(b, first, 0),
                3 => self.block::<B, 3, 1>(b, first, 0),
                2 => self.block::<B, 2, 1>(b, first, 0),
                _ => self.block::<B, 1, 1>(b, first, 0),
            }
            first += together;
        }
    }

    /// Multiplies `C` columns by a group of panels, `P` panels at a time. Returns `C`.
    #[inline(always)]
    fn columns<B: Int8Simd, const P: usize, const C: usize>(
        &mut self,
        b: B,
        first: usize,
        group: usize,
        column: usize,
    ) -> usize {
        let mut done = 0;
        while group - done >= P {
            self.block::<B, P, C>(b, first + done, column);
            done += P;
        }
        if P > 2 && group - done >= 2 {
            self.block::<B, 2, C>(b, first + done, column);
            done += 2;
        }
        if P > 1 && group - done >= 1 {
            self.block::<B, 1, C>(b, first + done, column);
        }
        C
    }

    #[inline(always)]
    fn block<B: Int8Simd, const P: usize, const C: usize>(
        &mut self,
        b: B,
        panel: usize,
        column: usize,
    ) {
        let s = b.float();
        let depth = self.w.depth();
        let mut totals = [[s.splat(0.0); P]; C];
        for tap in 0..self.w.taps() {
            let mut sums = [[b.initial_sums(self.w.offsets(panel, tap)); P]; C];
            let mut rows: [&[WeightQuads]; P] = [&[]; P];
            for p in 0..P {
                rows[p] = &self.w.tap(panel + p, tap)[..depth];
                let begin = b.initial_sums(self.w.offsets(panel + p, tap));
                for c in 0..C {
                    sums[c][p] = begin;
                }
            }
            let frame = |c: usize| (column + c) * self.x.stride + tap * self.x.tap_stride;
            let mut x: [&[[u8; QUAD]]; C] = [&[]; C];
            for c in 0..C {
                let bytes = &self.x.codes[frame(c) * self.x.width + self.x.first..][..depth * QUAD];
                x[c] = &bytes.as_chunks().0[..depth];
            }
            for quad in 0..depth {
                let mut row = [b.load(&rows[0][quad]); P];
                for p in 1..P {
                    row[p] = b.load(&rows[p][quad]);
                }
                for c in 0..C {
                    let values = b.splat(x[c][quad]);
                    for p in 0..P {
                        sums[c][p] = b.dot(sums[c][p], row[p], values);
                    }
                }
            }
            for c in 0..C {
                let scale = s.splat(self.x.scales[frame(c)]);
                for p in 0..P {
                    totals[c][p] = s.fma(b.to_floats(sums[c][p]), scale, totals[c][p]);
                }
            }
        }
        for p in 0..P {
            let at = (panel + p) * LANES;
            let used = LANES.min(self.w.outputs() - at);
            let (scales, bias) = (
                s.load(&self.w.scales(panel + p).0),
                s.load(&self.w.bias(panel + p).0),
            );
            for c in 0..C {
                let y = &mut self.y[(column + c) * self.y_stride + at..][..used];
                s.store_partial(s.fma(totals[c][p], scales, bias), y);
            }
        }
    }
}

/// Products in eight bits.
impl Kernels {
    /// Computes
    /// `y[c * y_stride + o] = bias[o] + scale[o] * Σ_tap scale[frame] * Σ_i w[o][tap][i] * (codes[frame][first + i] − 128)`
    /// with `frame = c * x.stride + tap * x.tap_stride`.
    ///
    /// The inner sum is exact; the rest is fused multiply-adds in that order. Values of `y` between
    /// the columns are not written.
    ///
    /// ```
    /// use ondes_kernels::{Int8Columns, Int8Matrix, Kernels, int8_frame_width};
    ///
    /// let kernels = Kernels::detect();
    /// let frame = [1.0, -0.5, 0.25];
    /// let (mut codes, mut scales) = (vec![0; int8_frame_width(3)], [0.0]);
    /// kernels.quantize(&frame, 3, &mut codes, &mut scales);
    ///
    /// // One output: 0.01 · (100 x₀ + 50 x₁ + 20 x₂) + 1.
    /// let w = Int8Matrix::new(1, 1, 3, |_, _, input| [100, 50, 20][input], &[0.01], &[1.0]);
    /// let width = codes.len();
    /// let (codes, scales) = (&codes, &scales);
    /// let x = Int8Columns { codes, scales, width, first: 0, count: 1, stride: 1, tap_stride: 1 };
    /// let mut y = [0.0];
    /// kernels.int8_matmul(&w, x, &mut y, 1);
    /// assert!((y[0] - 1.8).abs() < 0.01);
    /// ```
    ///
    /// # Panics
    /// If a column ends beyond the last frame or the end of `y`, a tap ends beyond its frame, fewer
    /// scales are given than frames are read, or `y_stride` is less than `w.outputs()` with more
    /// than one column.
    pub fn int8_matmul(self, w: &Int8Matrix, x: Int8Columns<'_>, y: &mut [f32], y_stride: usize) {
        if x.count == 0 || w.outputs() == 0 {
            return;
        }
        let outputs = w.outputs();
        assert!(
            x.count == 1 || y_stride >= outputs,
            "columns of {outputs} outputs overlap at a stride of {y_stride}"
        );
        let y_end = (x.count - 1)
            .checked_mul(y_stride)
            .and_then(|last| last.checked_add(outputs));
        assert!(
            y_end.is_some_and(|end| end <= y.len()),
            "product ends at {y_end:?}, y at {}",
            y.len()
        );
        if w.taps() > 0 {
            let read = x.first.checked_add(w.depth() * QUAD);
            assert!(
                read.is_some_and(|end| end <= x.width),
                "a tap ends at {read:?} of a frame of {} bytes",
                x.width
            );
            let tap = (w.taps() - 1).checked_mul(x.tap_stride);
            let last = (x.count - 1)
                .checked_mul(x.stride)
                .zip(tap)
                .and_then(|(column, tap)| column.checked_add(tap));
            let frames = x.scales.len().min(x.codes.len() / x.width.max(1));
            assert!(
                last.is_some_and(|last| last < frames),
                "columns end in frame {last:?} of {frames}"
            );
        }
        self.run_int8(Int8Matmul { w, x, y, y_stride });
    }
}
