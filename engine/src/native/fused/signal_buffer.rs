//! Memory of one signal, with as much of its past as is read.

use ondes_kernels::FRAMES_PER_VECTOR;

/// Maximum number of frames computed at a time: enough to amortise the cost of a pass, few enough
/// for the nearest cache.
pub const CHUNK: usize = 128;

/// Spare frames beside the past of a signal; the past is moved, or the ring wraps, once per this
/// many frames.
const SPARE: usize = 4 * CHUNK;

/// Buffer of one signal, `[channel][frame]`, in which the frames of a chunk and those `delay`
/// frames before them are contiguous.
///
/// Long histories use a ring whose first chunk is mirrored after its end; short ones are moved to
/// the front periodically.
#[derive(Clone, Debug)]
pub struct SignalBuffer {
    start: usize,
    pub channels: usize,
    /// Frames before the newest chunk that are still read.
    reach: usize,
    /// Length of the ring in frames; 0 if it is none.
    pub ring_frames: usize,
    /// Maximum length of a chunk in frames, a multiple of the vector length.
    pub chunk: usize,
    /// Frame from which on no chunk begins.
    end: usize,
    /// Values from one channel to the next.
    pub stride: usize,
}

impl SignalBuffer {
    /// Lays out a buffer from index `start` on, for chunks of up to `chunk` frames and delays of up
    /// to `reach` frames.
    pub fn new(start: usize, channels: usize, reach: usize, chunk: usize) -> Self {
        let chunk = chunk.next_multiple_of(FRAMES_PER_VECTOR);
        // A long past would take too long to move at once.
        let ring_frames = if reach > CHUNK {
            (reach + SPARE).next_multiple_of(CHUNK)
        } else {
            0
        };
        let end = match reach {
            0 => 0,
            _ if ring_frames > 0 => ring_frames,
            _ => reach.next_multiple_of(FRAMES_PER_VECTOR) + SPARE,
        };
        // One more vector for the lanes beyond the last frame, and an odd number of cache lines:
        // equal frames of all channels must not share one cache set.
        let stride = (((end + chunk) / FRAMES_PER_VECTOR + 1) | 1) * FRAMES_PER_VECTOR;
        Self {
            start,
            channels,
            reach,
            ring_frames,
            chunk,
            end,
            stride,
        }
    }

    /// Returns the length in values.
    pub fn length(&self) -> usize {
        self.stride * self.channels
    }

    /// Returns the position of the first chunk, which leaves room for the past before it, unless
    /// that wraps.
    pub fn first_position(&self) -> usize {
        if self.ring_frames > 0 {
            0
        } else {
            self.reach.next_multiple_of(FRAMES_PER_VECTOR)
        }
    }

    /// Returns whether frames before the newest chunk are read.
    pub fn has_past(&self) -> bool {
        self.reach > 0
    }

    /// Returns the index of a channel's row.
    pub fn row(&self, channel: usize) -> usize {
        self.start + channel * self.stride
    }

    /// Makes room for the chunk after one of `frames` frames at `position`, and returns the
    /// position of that next chunk.
    #[inline]
    pub fn advance(&self, signals: &mut [f32], position: usize, frames: usize) -> usize {
        let next = position + frames;
        if next < self.end {
            next
        } else {
            self.wrap(signals, next)
        }
    }

    fn wrap(&self, signals: &mut [f32], next: usize) -> usize {
        if self.ring_frames > 0 {
            return next - self.ring_frames;
        }
        if self.reach > 0 {
            for row in signals[self.start..][..self.length()].chunks_exact_mut(self.stride) {
                row.copy_within(next - self.reach..next, self.first_position() - self.reach);
            }
        }
        self.first_position()
    }
}
