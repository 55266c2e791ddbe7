//! Where a signal of a network lies: with enough of its past for whoever looks back.

use ondes_kernels::FRAMES_OF_A_VECTOR;

/// Frames computed at a time: enough to spread what a pass costs, few enough that a pass stays in the nearest cache.
pub const CHUNK: usize = 128;

/// The place of a signal, `[channel][frame]`. Frames of a chunk lie one after another from [`Home::now`] on, and so do those
/// that lie `delay` frames before them.
#[derive(Clone, Debug)]
pub struct Home {
    start: usize,
    pub channels: usize,
    /// Frames before the newest chunk that are still looked at.
    reach: usize,
    /// Frames until a ring comes round; 0 where the past is short and is moved to the front now and then.
    pub round: usize,
    /// From one channel to the next, in values.
    pub stride: usize,
}

/// Chunks before a short past is moved to the front; and chunks that a ring has beside its past, since its seam costs as much
/// each time round.
const CHUNKS: usize = 4;

impl Home {
    pub fn new(start: usize, channels: usize, reach: usize) -> Self {
        let line = FRAMES_OF_A_VECTOR;
        // A past is moved as a whole, all at one time: that must not be long.
        let round = if reach > CHUNK { (reach + CHUNKS * CHUNK).next_multiple_of(CHUNK) } else { 0 };
        let chunks = if reach == 0 { 1 } else { CHUNKS };
        let frames = if round > 0 { round + CHUNK } else { first(reach) + chunks * CHUNK };
        // An odd number of cache lines: equal frames of all channels must not fall into one set of the cache.
        let stride = (frames.div_ceil(line) | 1) * line;
        Self { start, channels, reach, round, stride }
    }

    /// Values that it takes.
    pub fn length(&self) -> usize {
        self.stride * self.channels
    }

    /// Where the first chunk goes, as a frame: the past lies before it.
    pub fn first(&self) -> usize {
        first(self.reach)
    }

    /// Whether anybody looks at more of it than the newest chunk.
    pub fn has_past(&self) -> bool {
        self.reach > 0
    }

    /// Where the row of a channel begins.
    pub fn row(&self, channel: usize) -> usize {
        self.start + channel * self.stride
    }

    /// Makes room for the next chunk after one of so many frames. Returns where that begins.
    pub fn advance(&self, signals: &mut [f32], now: usize, frames: usize) -> usize {
        if self.round > 0 {
            return if now + frames >= self.round { now + frames - self.round } else { now + frames };
        }
        let next = now + frames;
        if self.reach == 0 {
            return now;
        }
        if next + CHUNK <= self.stride {
            return next;
        }
        for row in signals[self.start..][..self.length()].chunks_exact_mut(self.stride) {
            row.copy_within(next - self.reach..next, self.first() - self.reach);
        }
        self.first()
    }
}

/// Where the first chunk goes when so many frames lie before it: on a cache line.
fn first(reach: usize) -> usize {
    reach.next_multiple_of(FRAMES_OF_A_VECTOR)
}
