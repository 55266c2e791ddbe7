//! The audio thread's end of the recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

/// Capacity of the queue of clock jumps.
const MAX_JUMPS: usize = 1_024;

/// Ring that an audio callback pushes its sound into. Never waits, allocates or locks.
pub struct Tap {
    channels: usize,
    samples: HeapProd<f32>,
    jumps: HeapProd<ClockJump>,
    progress: Arc<TapProgress>,
    /// Frames pushed into the ring so far.
    sent: u64,
    /// Clock of the frame after the last one in the ring.
    next: Option<u64>,
}

/// The writer's end of a [`Tap`].
pub(crate) struct TapConsumer {
    pub channels: usize,
    pub samples: HeapCons<f32>,
    pub jumps: HeapCons<ClockJump>,
    pub progress: Arc<TapProgress>,
}

/// Position in the ring at which the clock jumps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockJump {
    /// Frames in the ring before the jump.
    pub at: u64,
    /// Clock of the frame after the jump.
    pub clock: u64,
}

/// Progress of a tap, visible to both ends and the recorder.
#[derive(Debug)]
pub(crate) struct TapProgress {
    /// Clock of the frame after the last one pushed; [`NEVER`](Self::NEVER) before the first.
    end: AtomicU64,
    /// Frames dropped because the ring was full.
    pub dropped: AtomicU64,
}

impl TapProgress {
    const NEVER: u64 = u64::MAX;

    /// Returns the clock of the frame after the last one pushed.
    pub fn end(&self) -> Option<u64> {
        Some(self.end.load(Ordering::Acquire)).filter(|&end| end != Self::NEVER)
    }
}

impl Tap {
    /// Creates a tap with a ring of `frames`.
    pub(crate) fn new(channels: usize, frames: usize) -> (Self, TapConsumer) {
        let (samples, samples_out) = HeapRb::new(channels * frames.max(1)).split();
        let (jumps, breaks_out) = HeapRb::new(MAX_JUMPS).split();
        let progress = Arc::new(TapProgress {
            end: AtomicU64::new(TapProgress::NEVER),
            dropped: AtomicU64::new(0),
        });
        let consumer = TapConsumer {
            channels,
            samples: samples_out,
            jumps: breaks_out,
            progress: Arc::clone(&progress),
        };
        (
            Self {
                channels,
                samples,
                jumps,
                progress,
                sent: 0,
                next: None,
            },
            consumer,
        )
    }

    /// Returns the number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Pushes a block, `[channel][frame]`, whose first frame has the number `clock`.
    ///
    /// All taps of a recorder use the same clock, which counts frames without end. Skipped frames
    /// are recorded as silence, as are missing channels and frames of a block. If the ring is full
    /// the rest of the block is dropped: it is silence, too, and is counted. If the clock jumps
    /// back, or ahead by more than 10 minutes, the recording ends.
    pub fn push(&mut self, clock: u64, block: &[&[f32]]) {
        let frames = block.iter().map(|channel| channel.len()).max().unwrap_or(0);
        if frames == 0 {
            return;
        }
        // Stored before the sound is pushed, so that a reader of the sound never sees an older end.
        self.progress
            .end
            .store(clock.saturating_add(frames as u64), Ordering::Release);
        let mut accepted = frames.min(self.samples.vacant_len() / self.channels);
        let follows = self.next == Some(clock);
        if accepted > 0
            && !follows
            && self
                .jumps
                .try_push(ClockJump {
                    at: self.sent,
                    clock,
                })
                .is_err()
        {
            accepted = 0;
        }
        if accepted > 0 {
            let sample = |frame: usize, channel: usize| block.get(channel)?.get(frame).copied();
            let frame = |frame: usize| {
                (0..self.channels).map(move |channel| sample(frame, channel).unwrap_or(0.0))
            };
            self.samples.push_iter((0..accepted).flat_map(frame));
            self.sent += accepted as u64;
            self.next = Some(clock.wrapping_add(accepted as u64));
        }
        if accepted < frames {
            self.progress
                .dropped
                .fetch_add((frames - accepted) as u64, Ordering::Relaxed);
        }
    }
}

impl TapConsumer {
    /// Returns the number of frames in the ring; the jumps before them are in their queue.
    pub fn waiting(&self) -> u64 {
        (self.samples.occupied_len() / self.channels) as u64
    }

    /// Drops frames from the ring.
    pub fn skip(&mut self, frames: u64) {
        self.samples.skip(frames as usize * self.channels);
    }

    /// Fills `interleaved` with frames from the ring.
    pub fn take(&mut self, interleaved: &mut [f32]) {
        let accepted = self.samples.pop_slice(interleaved);
        debug_assert_eq!(
            accepted,
            interleaved.len(),
            "at most the frames in the ring are requested"
        );
    }
}
