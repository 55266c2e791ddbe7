//! Rows of which it is seen once that they lie in the slice: where channels are few, seeing to it for each weight would take longer
//! than the sums do.

use super::places::Rows;
use crate::simd::{Array, LANES, Simd};

/// Where F vectors still fit into a slice.
#[derive(Clone, Copy)]
pub(super) struct Room<const F: usize> {
    length: usize,
    /// The last place.
    last: usize,
}

/// F vectors of each of W rows, which all lie in a slice of the length that it was made for.
#[derive(Clone, Copy)]
pub(super) struct Window<const W: usize, const F: usize> {
    start: usize,
    stride: usize,
    length: usize,
}

impl<const F: usize> Room<F> {
    /// # Panics
    /// Where there is none.
    #[inline(always)]
    pub fn of(signals: &[f32]) -> Self {
        let length = signals.len();
        Self { length, last: length.checked_sub(F * LANES).expect("whole vectors in the slice") }
    }

    /// A window on the first frames of some rows.
    ///
    /// # Panics
    /// Where the slice ends before.
    #[inline(always)]
    pub fn window<const W: usize>(self, Rows { start, stride, .. }: Rows) -> Window<W, F> {
        let fits = start <= self.last && (W == 1 || stride <= (self.last - start) / (W - 1));
        assert!(fits, "range end index beyond the slice");
        Window { start, stride, length: self.length }
    }
}

impl<const W: usize, const F: usize> Window<W, F> {
    /// Where a vector of a row lies.
    #[inline(always)]
    fn place(self, signals: &[f32], row: usize, vector: usize) -> usize {
        assert!(row < W && vector < F && signals.len() == self.length, "beyond the window");
        self.start + row * self.stride + vector * LANES
    }

    /// One row.
    #[inline(always)]
    pub fn load<S: Simd>(self, s: S, signals: &[f32], row: usize) -> [S::V; F] {
        let mut values = [s.splat(0.0); F];
        for f in 0..F {
            let from = signals.as_ptr().wrapping_add(self.place(signals, row, f)).cast::<Array>();
            // SAFETY: all vectors of all rows lie in a slice of this length, as was seen when the window was made.
            values[f] = s.load(unsafe { &*from });
        }
        values
    }

    /// What is loaded from then on.
    #[inline(always)]
    pub fn store<S: Simd>(self, s: S, values: [S::V; F], signals: &mut [f32], row: usize) {
        for f in 0..F {
            let place = self.place(signals, row, f);
            let to = signals.as_mut_ptr().wrapping_add(place).cast::<Array>();
            // SAFETY: all vectors of all rows lie in a slice of this length, as was seen when the window was made.
            s.store(values[f], unsafe { &mut *to });
        }
    }
}
