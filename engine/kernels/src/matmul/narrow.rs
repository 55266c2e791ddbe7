//! Matrix products with few outputs, such as the last layer of an LSTM capture.
//!
//! Outputs would leave most lanes of a vector empty, so 16 columns lie across the lanes instead.
//! Each sum is the same chain as in other products.

use super::Matmul;
use crate::matrix::WeightLine;
use crate::simd::{LANES, Simd};

impl<L: WeightLine> Matmul<'_, L> {
    /// Multiplies columns in groups of 16 if outputs are few. Returns the number of columns done.
    #[inline(always)]
    pub(super) fn narrow<S: Simd>(&mut self, s: S) -> usize {
        let done = self.x.count / LANES * LANES;
        match self.w.outputs() {
            1 => self.sixteens::<S, 1>(s, done),
            2 => self.sixteens::<S, 2>(s, done),
            3 => self.sixteens::<S, 3>(s, done),
            4 => self.sixteens::<S, 4>(s, done),
            // More outputs fill the lanes well enough.
            _ => return 0,
        }
        done
    }

    /// Computes `O` outputs of the first `columns` columns, a multiple of 16.
    #[inline(always)]
    fn sixteens<S: Simd, const O: usize>(&mut self, s: S, columns: usize) {
        let mut sum = [[0.0; LANES]; O];
        for first in (0..columns).step_by(LANES) {
            let mut sums = [s.splat(0.0); O];
            for o in 0..O {
                sums[o] = s.splat(self.w.bias_of(0)[o]);
            }
            for tap in 0..self.taps {
                let weights = &self.panel(0)[tap * self.inputs..][..self.inputs];
                for (part, weights) in weights.chunks(LANES).enumerate() {
                    let mut rows = [s.splat(0.0); LANES];
                    for c in 0..LANES {
                        let at =
                            (first + c) * self.x.stride + tap * self.x.tap_stride + part * LANES;
                        // May load values after the last input, which are not used.
                        rows[c] = match self.x.data[at..].first_chunk() {
                            Some(whole) => s.load(whole),
                            None => s.load_padded(&self.x.data[at..], 0.0),
                        };
                    }
                    let inputs = s.transpose(rows);
                    for k in 0..LANES {
                        let Some(weight) = weights.get(k) else { break };
                        for o in 0..O {
                            sums[o] = s.fma(s.splat(weight.lane(o)), inputs[k], sums[o]);
                        }
                    }
                }
            }
            for o in 0..O {
                s.store(sums[o], &mut sum[o]);
            }
            for c in 0..LANES {
                let y = &mut self.y[(first + c) * self.y_stride..][..O];
                for o in 0..O {
                    y[o] = sum[o][c];
                }
            }
        }
    }
}
