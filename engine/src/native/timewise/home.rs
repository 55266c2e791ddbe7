//! Where a signal of a network lies: with enough of its past for whoever looks back.

use ondes_kernels::FRAMES_OF_A_VECTOR;

/// Frames computed at a time at most: enough to spread what a pass costs, few enough that a pass stays in the nearest cache.
pub const CHUNK: usize = 128;

/// The place of a signal, `[channel][frame]`. Frames of a chunk lie one after another, and so do those that lie `delay` frames before
/// them: a long past is a ring, of which the first chunk lies behind the end as well, a short one is moved to the front now and then.
#[derive(Clone, Debug)]
pub struct Home {
    start: usize,
    pub channels: usize,
    /// Frames before the newest chunk that are still looked at.
    reach: usize,
    /// Frames until a ring comes round; 0 where it is none.
    pub round: usize,
    /// Frames of a chunk at most, in whole vectors.
    pub chunk: usize,
    /// From there on no chunk begins.
    end: usize,
    /// From one channel to the next, in values.
    pub stride: usize,
}

/// Frames beside the past of a signal: what it costs to come round, it costs each time.
const SPARE: usize = 4 * CHUNK;

impl Home {
    /// For chunks of so many frames at most, and a signal of which so many before the newest one are looked at.
    pub fn new(start: usize, channels: usize, reach: usize, chunk: usize) -> Self {
        let line = FRAMES_OF_A_VECTOR;
        let chunk = chunk.next_multiple_of(line);
        // A past is moved as a whole, all at one time: that must not be long.
        let round = if reach > CHUNK { (reach + SPARE).next_multiple_of(CHUNK) } else { 0 };
        let end = match reach {
            0 => 0,
            _ if round > 0 => round,
            _ => reach.next_multiple_of(line) + SPARE,
        };
        // One vector more, for what lies beside the last frame, and an odd number of cache lines: equal frames of all channels must
        // not fall into one set of the cache.
        let stride = (((end + chunk) / line + 1) | 1) * line;
        Self { start, channels, reach, round, chunk, end, stride }
    }

    /// Values that it takes.
    pub fn length(&self) -> usize {
        self.stride * self.channels
    }

    /// Where the first chunk goes, as a frame: the past lies before it, or comes round.
    pub fn first(&self) -> usize {
        if self.round > 0 { 0 } else { self.reach.next_multiple_of(FRAMES_OF_A_VECTOR) }
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
    #[inline]
    pub fn advance(&self, signals: &mut [f32], now: usize, frames: usize) -> usize {
        let next = now + frames;
        if next < self.end { next } else { self.come_round(signals, next) }
    }

    fn come_round(&self, signals: &mut [f32], next: usize) -> usize {
        if self.round > 0 {
            return next - self.round;
        }
        if self.reach > 0 {
            for row in signals[self.start..][..self.length()].chunks_exact_mut(self.stride) {
                row.copy_within(next - self.reach..next, self.first() - self.reach);
            }
        }
        self.first()
    }
}
