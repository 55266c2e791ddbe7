//! Rows of which it is seen once that they lie in the slice: where channels are few, seeing to it for each weight would take longer
//! than the sums do.

use std::cell::Cell;
use std::marker::PhantomData;

use super::places::Place;
use crate::simd::{Array, LANES, Simd};

/// The slice of all signals, of which several windows may show the same.
#[derive(Clone, Copy)]
pub(super) struct Signals<'a> {
    start: *mut f32,
    length: usize,
    slice: PhantomData<&'a Cell<f32>>,
}

/// F vectors of each of W rows. All of them lie in the slice.
#[derive(Clone, Copy)]
pub(super) struct Window<'a, const W: usize, const F: usize> {
    start: *mut f32,
    stride: usize,
    slice: PhantomData<&'a Cell<f32>>,
}

/// W rows of a signal, at any delay.
#[derive(Clone, Copy)]
pub(super) struct Past<'a, const W: usize, const F: usize> {
    /// What is seen where the signal stands at frame 0. That window and each to the right of it, up to `last`, lies in the slice.
    first: Window<'a, W, F>,
    last: usize,
    now: usize,
    round: usize,
}

impl<'a> Signals<'a> {
    /// Those of a slice.
    #[inline(always)]
    pub fn of(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), length: slice.len(), slice: PhantomData }
    }

    /// A window on the rows of a place from a channel on, where its signal stands `now`, from frame `at` of the chunk on.
    ///
    /// # Panics
    /// Where these rows or the slice end before.
    #[inline(always)]
    pub fn window<const W: usize, const F: usize>(
        self,
        place: &Place,
        channel: usize,
        now: usize,
        at: usize,
    ) -> Window<'a, W, F> {
        self.past(place, channel, now, at).at(now)
    }

    /// The rows of a place from a channel on at any delay, where its signal stands `now`, from frame `at` of the chunk on.
    ///
    /// # Panics
    /// Where these rows or the slice end before.
    #[inline(always)]
    pub fn past<const W: usize, const F: usize>(
        self,
        place: &Place,
        channel: usize,
        now: usize,
        at: usize,
    ) -> Past<'a, W, F> {
        let rows = place.rows;
        // Where that is too much for a number it is too much for the rows.
        let skip = at.saturating_add(F * LANES);
        let fits = place.end() <= self.length && W <= rows.channels && channel <= rows.channels - W;
        assert!(fits && skip <= rows.stride, "rows beyond the slice");
        let start = self.start.wrapping_add(rows.start + channel * rows.stride + at);
        let first = Window { start, stride: rows.stride, slice: PhantomData };
        Past { first, last: rows.stride - skip, now, round: place.round }
    }
}

impl<'a, const W: usize, const F: usize> Past<'a, W, F> {
    /// What is seen so many frames before.
    ///
    /// # Panics
    /// Where that lies outside the rows.
    #[inline(always)]
    pub fn before(&self, delay: usize) -> Window<'a, W, F> {
        // Where the delay is longer than the way from the beginning, it comes round. No branch: it would be taken now and then,
        // at each tap at another time.
        let frame = self.now.wrapping_sub(delay);
        self.at(frame.wrapping_add(self.round & ((frame as isize >> (isize::BITS - 1)) as usize)))
    }

    /// What is seen where the signal stands at that frame.
    #[inline(always)]
    fn at(&self, frame: usize) -> Window<'a, W, F> {
        assert!(frame <= self.last, "a frame beyond the rows");
        Window { start: self.first.start.wrapping_add(frame), ..self.first }
    }
}

impl<const W: usize, const F: usize> Window<'_, W, F> {
    /// Where a vector of a row lies.
    #[inline(always)]
    fn place(self, row: usize, vector: usize) -> *mut Array {
        assert!(row < W && vector < F, "beyond the window");
        self.start.wrapping_add(row * self.stride + vector * LANES).cast()
    }

    /// One row.
    #[inline(always)]
    pub fn load<S: Simd>(self, s: S, row: usize) -> [S::V; F] {
        let mut values = [s.splat(0.0); F];
        for f in 0..F {
            // SAFETY: all vectors of all rows lie in the slice; nothing but windows looks at it while there are any, and none of
            // them keeps a reference.
            values[f] = s.load(unsafe { &*self.place(row, f) });
        }
        values
    }

    /// What is loaded from then on, by whatever window.
    #[inline(always)]
    pub fn store<S: Simd>(self, s: S, values: [S::V; F], row: usize) {
        for f in 0..F {
            // SAFETY: as above.
            s.store(values[f], unsafe { &mut *self.place(row, f) });
        }
    }
}
