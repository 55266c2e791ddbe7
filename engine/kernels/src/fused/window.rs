//! Bounds-checked windows into the slice of all signals.
//!
//! Bounds are checked once per window; a check per weight would cost more than the arithmetic where
//! channels are few.

use std::cell::Cell;
use std::marker::PhantomData;

use super::buffer_view::BufferView;
use crate::simd::{Array, LANES, Simd};

/// The slice of all signals, shared by windows that may overlap.
#[derive(Clone, Copy)]
pub(super) struct SignalMemory<'a> {
    start: *mut f32,
    length: usize,
    slice: PhantomData<&'a Cell<f32>>,
}

/// F vectors of each of W rows, all inside the slice.
#[derive(Clone, Copy)]
pub(super) struct SignalWindow<'a, const W: usize, const F: usize> {
    start: *mut f32,
    stride: usize,
    slice: PhantomData<&'a Cell<f32>>,
}

/// W rows of a signal that can be read at any delay.
#[derive(Clone, Copy)]
pub(super) struct DelayedWindow<'a, const W: usize, const F: usize> {
    /// The window at position 0. It and all windows up to `last` frames later lie inside the slice.
    first: SignalWindow<'a, W, F>,
    last: usize,
    position: usize,
    ring_frames: usize,
}

impl<'a> SignalMemory<'a> {
    #[inline(always)]
    pub fn new(slice: &'a mut [f32]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            length: slice.len(),
            slice: PhantomData,
        }
    }

    /// Returns the window on W rows of a view from `channel` on, `at` frames after the position of
    /// its buffer.
    ///
    /// # Panics
    /// If the rows or the slice end before the window does.
    #[inline(always)]
    pub fn window<const W: usize, const F: usize>(
        self,
        view: &BufferView,
        channel: usize,
        position: usize,
        at: usize,
    ) -> SignalWindow<'a, W, F> {
        self.delayed(view, channel, position, at).at(position)
    }

    /// Returns W rows of a view from `channel` on, `at` frames after the position of its buffer, to
    /// be read at any delay.
    ///
    /// # Panics
    /// If the rows or the slice end before the window at position 0 does.
    #[inline(always)]
    pub fn delayed<const W: usize, const F: usize>(
        self,
        view: &BufferView,
        channel: usize,
        position: usize,
        at: usize,
    ) -> DelayedWindow<'a, W, F> {
        let rows = view.rows;
        // Saturates; the assertion below rejects the overflow.
        let skip = at.saturating_add(F * LANES);
        let fits = view.end() <= self.length && W <= rows.channels && channel <= rows.channels - W;
        assert!(fits && skip <= rows.stride, "rows beyond the slice");
        let start = self
            .start
            .wrapping_add(rows.start + channel * rows.stride + at);
        let first = SignalWindow {
            start,
            stride: rows.stride,
            slice: PhantomData,
        };
        DelayedWindow {
            first,
            last: rows.stride - skip,
            position,
            ring_frames: view.ring_frames,
        }
    }
}

impl<'a, const W: usize, const F: usize> DelayedWindow<'a, W, F> {
    /// Returns the window `delay` frames earlier.
    ///
    /// # Panics
    /// If it lies outside the rows.
    #[inline(always)]
    pub fn before(&self, delay: usize) -> SignalWindow<'a, W, F> {
        // Wraps in a ring where the delay exceeds the position. Branch-free: the branch would flip
        // at another time for each tap and be mispredicted.
        let frame = self.position.wrapping_sub(delay);
        self.at(
            frame.wrapping_add(self.ring_frames & ((frame as isize >> (isize::BITS - 1)) as usize))
        )
    }

    /// Returns the window at a position of the buffer.
    #[inline(always)]
    fn at(&self, frame: usize) -> SignalWindow<'a, W, F> {
        assert!(frame <= self.last, "a frame beyond the rows");
        SignalWindow {
            start: self.first.start.wrapping_add(frame),
            ..self.first
        }
    }
}

impl<const W: usize, const F: usize> SignalWindow<'_, W, F> {
    /// Returns the address of a vector of a row.
    #[inline(always)]
    fn address(self, row: usize, vector: usize) -> *mut Array {
        assert!(row < W && vector < F, "beyond the window");
        self.start
            .wrapping_add(row * self.stride + vector * LANES)
            .cast()
    }

    /// Loads one row.
    #[inline(always)]
    pub fn load<S: Simd>(self, s: S, row: usize) -> [S::V; F] {
        let mut values = [s.splat(0.0); F];
        for f in 0..F {
            // SAFETY: all vectors of all rows lie inside the slice. While windows exist only they
            // access it, and none of them keeps a reference.
            values[f] = s.load(unsafe { &*self.address(row, f) });
        }
        values
    }

    /// Stores one row; windows that overlap load the new values.
    #[inline(always)]
    pub fn store<S: Simd>(self, s: S, values: [S::V; F], row: usize) {
        for f in 0..F {
            // SAFETY: as in `load`.
            s.store(values[f], unsafe { &mut *self.address(row, f) });
        }
    }
}
