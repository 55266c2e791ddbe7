//! Locations of signals in memory, which advance from chunk to chunk.

use crate::simd::LANES;

/// Signals of one stream, and where their buffers stand.
#[derive(Debug)]
pub struct StreamSignals<'a> {
    /// `[buffer]`: the frame at which the current chunk begins.
    pub positions: &'a [usize],
    /// The slice of all signals.
    pub signals: &'a mut [f32],
}

/// Rows of channels, `[channel][frame]`, in the slice of all signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelRows {
    /// Index of the first frame of the first channel.
    pub start: usize,
    /// Values from one channel to the next; no row is longer.
    pub stride: usize,
    /// Number of channels.
    pub channels: usize,
}

impl ChannelRows {
    /// Returns the rows without their first `frames` frames.
    #[inline(always)]
    #[must_use]
    pub fn skip(self, frames: usize) -> Self {
        Self {
            start: self.start + frames,
            ..self
        }
    }
}

/// View of some channels of a signal buffer; advances with the buffer's position and wraps in a
/// ring.
///
/// Positions are given to each call as `positions[buffer]`, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferView {
    /// The rows at position 0.
    pub(super) rows: ChannelRows,
    /// Index of the buffer in `positions`.
    pub(super) buffer: usize,
    /// Length of the ring in frames; 0 if the buffer is none.
    pub(super) ring_frames: usize,
    /// Frames at the start of the ring that are mirrored after its end.
    mirrored: usize,
    /// Index after the last row. Unsafe code relies on it: only [`BufferView::new`] sets it, and
    /// the rows never change.
    end: usize,
}

impl BufferView {
    /// Views these rows, which are those at position 0, of the buffer with that index in
    /// `positions`.
    pub fn new(rows: ChannelRows, buffer: usize) -> Self {
        let end = rows
            .stride
            .saturating_mul(rows.channels)
            .saturating_add(rows.start);
        Self {
            rows,
            buffer,
            ring_frames: 0,
            mirrored: 0,
            end,
        }
    }

    /// Makes the buffer a ring of `ring_frames` frames whose first `mirrored` frames are repeated
    /// after its end, so that every window is contiguous.
    ///
    /// `mirrored` must be at least the number of frames computed at a time. Both are multiples of
    /// [`FRAMES_PER_VECTOR`], and each row has room for one vector more.
    ///
    /// [`FRAMES_PER_VECTOR`]: crate::FRAMES_PER_VECTOR
    #[must_use]
    pub fn in_ring(self, ring_frames: usize, mirrored: usize) -> Self {
        Self {
            ring_frames,
            mirrored,
            ..self
        }
    }

    /// Returns the number of channels.
    #[inline(always)]
    pub fn channels(&self) -> usize {
        self.rows.channels
    }

    /// Returns the index after the last row.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns the rows at the current positions.
    ///
    /// # Panics
    /// If the buffer has no position.
    #[inline(always)]
    pub fn rows(&self, positions: &[usize]) -> ChannelRows {
        self.rows.skip(positions[self.buffer])
    }

    /// Copies the `frames` just written at the current position to the other side of the ring's
    /// seam. Does nothing where the buffer is no ring.
    ///
    /// # Panics
    /// If the buffer has no position, or whole vectors of these frames end beyond `signals`.
    #[inline(always)]
    pub fn mirror(&self, positions: &[usize], signals: &mut [f32], frames: usize) {
        let Self {
            rows,
            buffer,
            ring_frames,
            mirrored,
            ..
        } = *self;
        if ring_frames == 0 {
            return;
        }
        let position = positions[buffer];
        let end = position + frames;
        let (from, to) = if position < mirrored {
            (position..end.min(mirrored), ring_frames + position)
        } else if end > ring_frames {
            (ring_frames..end, 0)
        } else {
            return;
        };
        for channel in 0..rows.channels {
            let row = rows.start + channel * rows.stride;
            for at in (0..from.len()).step_by(LANES) {
                let vector = row + from.start + at;
                signals.copy_within(vector..vector + LANES, row + to + at);
            }
        }
    }
}

/// All views of a network with the current positions of their buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewsAt<'a> {
    pub views: &'a [BufferView],
    /// `[buffer]`: the frame at which the current chunk begins.
    pub positions: &'a [usize],
}

impl<'a> ViewsAt<'a> {
    /// Returns a view and the position of its buffer.
    #[inline(always)]
    pub fn get(self, view: usize) -> (&'a BufferView, usize) {
        let view = &self.views[view];
        (view, self.positions[view.buffer])
    }

    /// Returns the rows of a view at the current position.
    #[inline(always)]
    pub fn rows(self, view: usize) -> ChannelRows {
        self.views[view].rows(self.positions)
    }

    /// Calls [`BufferView::mirror`] for a view.
    #[inline(always)]
    pub fn mirror(self, view: usize, signals: &mut [f32], frames: usize) {
        self.views[view].mirror(self.positions, signals, frames);
    }
}
