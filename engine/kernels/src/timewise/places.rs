//! Where signals lie, from chunk to chunk.

/// Rows of one length, a fixed distance apart, in the slice that holds all signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Where the first frame of the first channel lies.
    pub start: usize,
    /// From one channel to the next.
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
    pub rows: Rows,
    /// Which signal it is, of those that [`Places::now`] tells of.
    pub signal: usize,
    /// Frames after which the signal comes round; 0 where it does not.
    pub round: usize,
}

impl Place {
    /// Where it lies `delay` frames before the frame at which its signal stands `now`.
    #[inline(always)]
    pub fn before(&self, now: usize, delay: usize) -> Rows {
        // Where the delay is longer than the way from the beginning, it comes round. No branch: it would be taken now and then,
        // at each tap at another time.
        let frame = now.wrapping_sub(delay);
        let round = self.round & ((frame as isize >> (isize::BITS - 1)) as usize);
        Rows { start: self.rows.start.wrapping_add(frame).wrapping_add(round), ..self.rows }
    }
}

/// What steps read and write.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// All of it.
    pub list: &'a [Place],
    /// For each signal the frame at which the chunk at hand begins.
    pub now: &'a [usize],
}

impl Places<'_> {
    /// Where that of the list lies now.
    #[inline(always)]
    pub fn rows(self, place: usize) -> Rows {
        let place = &self.list[place];
        place.before(self.now[place.signal], 0)
    }
}
