//! The audio thread's end of the recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

/// Jumps of the clock that can wait for the writer.
const BREAKS: usize = 1_024;

/// Where an audio callback puts its sound. Never waits, allocates or locks.
pub struct Tap {
    channels: usize,
    samples: HeapProd<f32>,
    breaks: HeapProd<Break>,
    wire: Arc<Wire>,
    /// Frames ever put into the ring.
    sent: u64,
    /// Number of the frame that follows the last one in the ring.
    next: Option<u64>,
}

/// The writer's end of a [`Tap`].
pub(super) struct Outlet {
    pub channels: usize,
    pub samples: HeapCons<f32>,
    pub breaks: HeapCons<Break>,
    pub wire: Arc<Wire>,
}

/// A place in the ring where frames do not follow each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Break {
    /// Frames put into the ring before it.
    pub at: u64,
    /// Number of the frame behind it.
    pub clock: u64,
}

/// What both ends, and the recorder, know.
#[derive(Debug)]
pub(super) struct Wire {
    /// Number of the frame up to which the tap was given sound; [`NEVER`](Self::NEVER) before the first.
    end: AtomicU64,
    /// Frames that found no room.
    pub dropped: AtomicU64,
}

impl Wire {
    const NEVER: u64 = u64::MAX;

    /// Number of the frame up to which the tap was given sound.
    pub fn end(&self) -> Option<u64> {
        Some(self.end.load(Ordering::Acquire)).filter(|&end| end != Self::NEVER)
    }
}

impl Tap {
    /// With a ring for so many frames.
    pub(super) fn new(channels: usize, frames: usize) -> (Self, Outlet) {
        let (samples, samples_out) = HeapRb::new(channels * frames.max(1)).split();
        let (breaks, breaks_out) = HeapRb::new(BREAKS).split();
        let wire = Arc::new(Wire { end: AtomicU64::new(Wire::NEVER), dropped: AtomicU64::new(0) });
        let outlet = Outlet { channels, samples: samples_out, breaks: breaks_out, wire: Arc::clone(&wire) };
        (Self { channels, samples, breaks, wire, sent: 0, next: None }, outlet)
    }

    /// Channels of every block.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Takes a block, `[channel][frame]`, whose first frame has the number `clock`.
    ///
    /// The clock is the same for all taps of a recorder and counts frames without end. Frames that it leaves out are recorded
    /// as silence, and so are channels and frames that the block lacks. Where the ring is full the rest of the block is
    /// dropped: it becomes silence, too, and is counted. Where the clock goes back, or on by more than 10 minutes, a recording
    /// ends.
    pub fn push(&mut self, clock: u64, block: &[&[f32]]) {
        let frames = block.iter().map(|channel| channel.len()).max().unwrap_or(0);
        if frames == 0 {
            return;
        }
        // Before the sound: whoever takes that out of the ring knows of an end that is not before it.
        self.wire.end.store(clock.saturating_add(frames as u64), Ordering::Release);
        let mut taken = frames.min(self.samples.vacant_len() / self.channels);
        let follows = self.next == Some(clock);
        if taken > 0 && !follows && self.breaks.try_push(Break { at: self.sent, clock }).is_err() {
            taken = 0;
        }
        if taken > 0 {
            let sample = |frame: usize, channel: usize| block.get(channel)?.get(frame).copied();
            let frame = |frame: usize| (0..self.channels).map(move |channel| sample(frame, channel).unwrap_or(0.0));
            self.samples.push_iter((0..taken).flat_map(frame));
            self.sent += taken as u64;
            self.next = Some(clock.wrapping_add(taken as u64));
        }
        if taken < frames {
            self.wire.dropped.fetch_add((frames - taken) as u64, Ordering::Relaxed);
        }
    }
}

impl Outlet {
    /// Frames in the ring. The breaks before them are there, too.
    pub fn waiting(&self) -> u64 {
        (self.samples.occupied_len() / self.channels) as u64
    }

    /// Drops frames that are waiting.
    pub fn skip(&mut self, frames: u64) {
        self.samples.skip(frames as usize * self.channels);
    }

    /// Fills `interleaved` with frames that are waiting.
    pub fn take(&mut self, interleaved: &mut [f32]) {
        let taken = self.samples.pop_slice(interleaved);
        debug_assert_eq!(taken, interleaved.len(), "only what is waiting is asked for");
    }
}
