//! Matrix products.
//!
//! A *block* is P panels by C columns of sums, held in registers while all inputs are added. Each
//! sum is one chain, so a block needs enough chains to hide the latency of a multiply-add (4 cycles
//! at two per cycle: 8 registers), and each loaded weight should be used for as many columns as
//! fit.

mod narrow;

use crate::matrix::{Rows, WeightLine};
use crate::simd::{Kernel, LANES, Simd};
use crate::{Columns, Kernels, PackedMatrix};

struct Matmul<'a, L> {
    w: &'a PackedMatrix,
    /// `[panel][tap][input]`
    rows: &'a [L],
    x: Columns<'a>,
    y: &'a mut [f32],
    y_stride: usize,
    /// Taps and inputs per tap as computed: adjacent taps count as one.
    taps: usize,
    inputs: usize,
}

/// Panels per group: their weights stay in the nearest caches while all columns are multiplied.
const GROUP: usize = 4;

impl<L: WeightLine> Kernel for Matmul<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let done = self.narrow(s);
        let panels = self.w.panels();
        if S::SMALL_TILES {
            for column in done..self.x.count {
                for panel in 0..panels {
                    self.block::<S, 1, 1>(s, panel, column);
                }
            }
            return;
        }
        if self.x.count - done == 1 {
            return self.one_column(s, panels, done);
        }
        let mut first = 0;
        while first < panels {
            let group = GROUP.min(panels - first);
            let mut column = done;
            while column < self.x.count {
                let left = self.x.count - column;
                column += if S::MANY_REGISTERS {
                    match left {
                        8.. => self.columns::<S, 2, 8>(s, first, group, column),
                        4.. => self.columns::<S, 4, 4>(s, first, group, column),
                        2.. => self.columns::<S, 4, 2>(s, first, group, column),
                        _ => self.columns::<S, 4, 1>(s, first, group, column),
                    }
                } else {
                    match left {
                        // Eight are faster as two fours than as six and two.
                        6 | 7 | 9.. => self.columns::<S, 1, 6>(s, first, group, column),
                        4.. => self.columns::<S, 1, 4>(s, first, group, column),
                        2.. => self.columns::<S, 2, 2>(s, first, group, column),
                        _ => self.columns::<S, 4, 1>(s, first, group, column),
                    }
                };
            }
            first += group;
        }
    }
}

impl<L: WeightLine> Matmul<'_, L> {
    /// Returns the weights of one panel: `[tap][input]`.
    #[inline(always)]
    fn panel(&self, panel: usize) -> &[L] {
        let depth = self.taps * self.inputs;
        &self.rows[panel * depth..][..depth]
    }

    /// Multiplies a single column in blocks of many, about equally many panels: each weight is used
    /// once, so only independent chains hide the latency.
    #[inline(always)]
    fn one_column<S: Simd>(&mut self, s: S, panels: usize, column: usize) {
        let most = if S::MANY_REGISTERS { 8 } else { 6 };
        let mut first = 0;
        while first < panels {
            let left = panels - first;
            let together = left.div_ceil(left.div_ceil(most));
            match together {
                8 => self.block::<S, 8, 1>(s, first, column),
                7 => self.block::<S, 7, 1>(s, first, column),
                6 => self.block::<S, 6, 1>(s, first, column),
                5 => self.block::<S, 5, 1>(s, first, column),
                4 => self.block::<S, 4, 1>(s, first, column),
                3 => self.block::<S, 3, 1>(s, first, column),
                2 => self.block::<S, 2, 1>(s, first, column),
                _ => self.block::<S, 1, 1>(s, first, column),
            }
            first += together;
        }
    }

    /// Multiplies `C` columns by a group of panels, `P` panels at a time. Returns `C`.
    #[inline(always)]
    fn columns<S: Simd, const P: usize, const C: usize>(
        &mut self,
        s: S,
        first: usize,
        group: usize,
        column: usize,
    ) -> usize {
        let mut done = 0;
        while group - done >= P {
            self.block::<S, P, C>(s, first + done, column);
            done += P;
        }
        if P > 2 && group - done >= 2 {
            self.block::<S, 2, C>(s, first + done, column);
            done += 2;
        }
        if P > 1 && group - done >= 1 {
            self.block::<S, 1, C>(s, first + done, column);
        }
        C
    }

    #[inline(always)]
    fn block<S: Simd, const P: usize, const C: usize>(
        &mut self,
        s: S,
        panel: usize,
        column: usize,
    ) {
        let mut sums = [[s.splat(0.0); P]; C];
        let mut weights: [&[L]; P] = [&[]; P];
        for p in 0..P {
            weights[p] = self.panel(panel + p);
            let bias = s.load(self.w.bias_of(panel + p));
            for c in 0..C {
                sums[c][p] = bias;
            }
        }
        let inputs = self.inputs;
        for tap in 0..self.taps {
            let mut rows: [&[L]; P] = [&[]; P];
            for p in 0..P {
                rows[p] = &weights[p][tap * inputs..][..inputs];
            }
            let mut x: [&[f32]; C] = [&[]; C];
            for c in 0..C {
                x[c] = &self.x.data[(column + c) * self.x.stride + tap * self.x.tap_stride..]
                    [..inputs];
            }
            for input in 0..inputs {
                let mut row = [s.splat(0.0); P];
                for p in 0..P {
                    row[p] = rows[p][input].load(s);
                }
                for c in 0..C {
                    let value = s.splat(x[c][input]);
                    for p in 0..P {
                        sums[c][p] = s.fma(row[p], value, sums[c][p]);
                    }
                }
            }
        }
        for c in 0..C {
            let y = &mut self.y[(column + c) * self.y_stride..];
            for p in 0..P {
                let at = (panel + p) * LANES;
                let used = LANES.min(self.w.outputs() - at);
                s.store_partial(sums[c][p], &mut y[at..at + used]);
            }
        }
    }
}

/// Matrix products.
impl Kernels {
    /// Computes
    /// `y[c * y_stride + o] = bias[o] + Σ_tap Σ_i w[o][tap][i] * x.data[c * x.stride + tap * x.tap_stride + i]`.
    ///
    /// Each output is one chain of fused multiply-adds that starts from the bias, in the order of
    /// the sums. Values of `y` between the columns are not written.
    ///
    /// ```
    /// use ondes_kernels::{Columns, Kernels, PackedMatrix};
    ///
    /// // A convolution of three taps, one channel and one output: the sum of neighbouring samples.
    /// let w = PackedMatrix::new(1, 3, 1, |_, _, _| 1.0, None);
    /// let x = Columns { data: &[1.0, 2.0, 3.0, 4.0], count: 2, stride: 1, tap_stride: 1 };
    /// let mut y = [0.0; 2];
    /// Kernels::detect().matmul(&w, x, &mut y, 1);
    /// assert_eq!(y, [6.0, 9.0]);
    /// ```
    ///
    /// # Panics
    /// If a column ends beyond `x.data` or `y`, or `y_stride` is less than `w.outputs()` with more
    /// than one column.
    pub fn matmul(self, w: &PackedMatrix, x: Columns<'_>, y: &mut [f32], y_stride: usize) {
        if x.count == 0 || w.outputs() == 0 {
            return;
        }
        let (outputs, taps, inputs) = (w.outputs(), w.taps(), w.inputs_per_tap());
        assert!(
            x.count == 1 || y_stride >= outputs,
            "columns of {outputs} outputs overlap at a stride of {y_stride}"
        );
        let y_end = end(x.count, y_stride, outputs);
        assert!(
            y_end.is_some_and(|end| end <= y.len()),
            "product ends at {y_end:?}, y at {}",
            y.len()
        );
        if taps > 0 && inputs > 0 {
            let x_end =
                end(taps, x.tap_stride, inputs).and_then(|column| end(x.count, x.stride, column));
            assert!(
                x_end.is_some_and(|end| end <= x.data.len()),
                "columns end at {x_end:?}, x at {}",
                x.data.len()
            );
        }
        let (taps, inputs) = if inputs == 0 || taps == 0 {
            (0, 0)
        } else if x.tap_stride == inputs {
            (1, taps * inputs)
        } else {
            (taps, inputs)
        };
        match w.rows() {
            Rows::F32(rows) => self.run(Matmul {
                w,
                rows,
                x,
                y,
                y_stride,
                taps,
                inputs,
            }),
            Rows::F16(rows) => self.run(Matmul {
                w,
                rows,
                x,
                y,
                y_stride,
                taps,
                inputs,
            }),
        }
    }
}

/// Returns the end of the last of `count` > 0 pieces of `length`, `stride` apart; `None` on
/// overflow.
fn end(count: usize, stride: usize, length: usize) -> Option<usize> {
    (count - 1).checked_mul(stride)?.checked_add(length)
}
