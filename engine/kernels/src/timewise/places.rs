//! Where signals lie, from chunk to chunk.

use crate::simd::LANES;

/// Rows in the slice that holds all signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Where the first frame of the first channel lies.
    pub start: usize,
    /// From one channel to the next: no row is longer.
    pub stride: usize,
    /// How many channels.
    pub channels: usize,
}

impl Rows {
    /// The same without so many frames at the beginning.
    #[inline(always)]
    #[must_use]
    pub fn skip(self, frames: usize) -> Self {
        Self { start: self.start + frames, ..self }
    }
}

/// Part of a signal, which moves on with each chunk and comes round where it lies in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it would lie if the signal stood at frame 0.
    pub(super) rows: Rows,
    /// Which signal it is, of those of which it is told where they stand.
    pub(super) signal: usize,
    /// Frames after which the signal comes round; 0 where it does not.
    pub(super) round: usize,
    /// Frames at the beginning of a ring that lie behind its end as well.
    overlap: usize,
    /// Where the last row ends: unsafe code relies on it, so it is made by [`Place::new`] alone, and the rows stay as they are.
    end: usize,
}

impl Place {
    /// A place that moves along its rows with its signal: where it would lie if that stood at frame 0.
    pub fn new(rows: Rows, signal: usize) -> Self {
        let end = rows.stride.saturating_mul(rows.channels).saturating_add(rows.start);
        Self { rows, signal, round: 0, overlap: 0, end }
    }

    /// The same in a ring that comes round after so many frames. So that whatever is looked at lies in one piece, some frames of
    /// its beginning lie behind its end as well: at least as many as are computed at a time. Both are whole vectors, and a row has
    /// room for one more.
    #[must_use]
    pub fn in_ring(self, round: usize, overlap: usize) -> Self {
        Self { round, overlap, ..self }
    }

    /// How many channels.
    #[inline(always)]
    pub fn channels(&self) -> usize {
        self.rows.channels
    }

    /// Where the last row ends.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Where it lies, of the frames at which all signals stand.
    ///
    /// # Panics
    /// When its signal is not among them.
    #[inline(always)]
    pub fn rows(&self, now: &[usize]) -> Rows {
        self.rows.skip(now[self.signal])
    }

    /// Makes whole what lies on both sides of the seam of a ring, after so many frames were written where it lies `now`.
    ///
    /// # Panics
    /// When its signal is not among those, or whole vectors of these frames lie outside the slice.
    #[inline(always)]
    pub fn close(&self, now: &[usize], signals: &mut [f32], frames: usize) {
        let Self { rows, signal, round, overlap, .. } = *self;
        if round == 0 {
            return;
        }
        let now = now[signal];
        let end = now + frames;
        let (from, to) = if now < overlap {
            (now..end.min(overlap), round + now)
        } else if end > round {
            (round..end, 0)
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

/// What steps read and write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    /// All of it.
    pub list: &'a [Place],
    /// For each signal the frame at which the chunk at hand begins.
    pub now: &'a [usize],
}

impl<'a> Places<'a> {
    /// One of the list, and where its signal stands now.
    #[inline(always)]
    pub fn get(self, place: usize) -> (&'a Place, usize) {
        let place = &self.list[place];
        (place, self.now[place.signal])
    }

    /// Where that of the list lies now.
    #[inline(always)]
    pub fn rows(self, place: usize) -> Rows {
        self.list[place].rows(self.now)
    }

    /// [`Place::close`] for one of the list.
    #[inline(always)]
    pub fn close(self, place: usize, signals: &mut [f32], frames: usize) {
        self.list[place].close(self.now, signals, frames);
    }
}
