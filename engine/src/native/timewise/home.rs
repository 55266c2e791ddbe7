//! Where a signal of a network lies: with enough of its past for whoever looks back.

use ondes_kernels::FRAMES_OF_A_VECTOR;

/// Frames computed at a time: enough to spread what a pass costs, few enough that a pass stays in the nearest cache.
pub const CHUNK: usize = 128;

/// The place of a signal, `[channel][frame]`. Where its past is looked at it is a ring, of which the first chunk lies behind the end
/// as well: so frames of a chunk lie one after another, and so do those that lie `delay` frames before them.
#[derive(Clone, Debug)]
pub struct Home {
    start: usize,
    pub channels: usize,
    /// Frames until the ring comes round; 0 where nobody looks at more than the newest chunk.
    pub round: usize,
    /// From one channel to the next, in values.
    pub stride: usize,
}

/// Chunks that a ring has beside its past, since its seam costs as much each time round.
const CHUNKS: usize = 4;

impl Home {
    /// For a signal of which so many frames before the newest chunk are looked at.
    pub fn new(start: usize, channels: usize, reach: usize) -> Self {
        let round = if reach > 0 { (reach + CHUNKS * CHUNK).next_multiple_of(CHUNK) } else { 0 };
        // An odd number of cache lines: equal frames of all channels must not fall into one set of the cache. Chunks are an even
        // number, so there is room for what lies beside the last frame in its vector.
        let stride = ((round + CHUNK) / FRAMES_OF_A_VECTOR | 1) * FRAMES_OF_A_VECTOR;
        Self { start, channels, round, stride }
    }

    /// Values that it takes.
    pub fn length(&self) -> usize {
        self.stride * self.channels
    }

    /// Whether anybody looks at more of it than the newest chunk.
    pub fn has_past(&self) -> bool {
        self.round > 0
    }

    /// Where the row of a channel begins.
    pub fn row(&self, channel: usize) -> usize {
        self.start + channel * self.stride
    }

    /// Where the chunk begins that follows one of so many frames, up to [`CHUNK`].
    #[inline]
    pub fn after(&self, now: usize, frames: usize) -> usize {
        let next = now + frames;
        match self.round {
            0 => 0,
            round if next < round => next,
            round => next - round,
        }
    }
}
