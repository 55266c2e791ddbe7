//! The audio thread's end of a model that a worker plays.
//!
//! Input goes through the session's [`History`](super::history::History), which holds it by its sample numbers; cues go through
//! a ring, and sound comes back through one. Sound that is not there when it is needed is late, and is dropped when it comes:
//! the latency stays what it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringbuf::traits::{Consumer, Observer, Producer};
use ringbuf::{HeapCons, HeapProd};

use super::health::Meter;
use super::lane::{Block, Failure};
use crate::pipeline::Cue;

/// What both ends know.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Number of the sample up to which there is input, and all cues of which are in the ring.
    pub given: AtomicU64,
    /// Number of the sample up to which there is sound in the ring.
    pub done: AtomicU64,
    /// Number of the sample up to which the session has played, with or without sound.
    pub taken: AtomicU64,
    /// The model was in time once. Before that it warms up: it plays in full, however late.
    pub warm: AtomicBool,
    /// The session wants no more.
    pub leaving: AtomicBool,
    /// The model's code broke down.
    pub failed: AtomicBool,
}

/// The audio thread's end.
pub(super) struct Queue {
    pub wire: Arc<Wire>,
    pub cues: HeapProd<Cue>,
    pub sound: HeapCons<f32>,
    /// Number of the next sample in the ring, as the model's input counts them.
    pub next: u64,
    /// Number of the first sample that there will ever be sound for.
    pub start: u64,
    /// Host samples of time for the worker.
    pub delay: usize,
    pub model_latency: usize,
    pub tail: usize,
    /// The worker, and the one for models that are too slow for it.
    pub workers: [Thread; 2],
}

impl Queue {
    pub fn latency_samples(&self) -> usize {
        self.model_latency + self.delay
    }

    pub fn tail_samples(&self) -> usize {
        self.tail
    }

    pub fn handle(&mut self, cue: Cue) -> bool {
        self.cues.try_push(cue).is_ok()
    }

    /// Gives the worker a block and takes what it made of an earlier one. Gives how many samples are there from the start of
    /// `out`, or none before there can be any.
    pub fn play(&mut self, block: &Block<'_>, out: &mut [f32], meter: &Meter) -> Result<Option<usize>, Failure> {
        let end = block.at + out.len() as u64;
        self.wire.given.store(end, Ordering::Release);
        let delay = self.delay as u64;
        // The first sound may begin within this block.
        let lead = (self.start + delay).saturating_sub(block.at) as usize;
        let needed = (block.at + lead as u64).saturating_sub(delay);
        // What came too late makes room before more is made.
        self.drop_stale(needed);
        self.workers[usize::from(meter.is_aside())].unpark();
        if end <= self.start + delay {
            return Ok(None);
        }
        while block.patient && self.wire.done.load(Ordering::Acquire) < end - delay {
            if self.wire.failed.load(Ordering::Relaxed) {
                return Err(Failure::Panicked);
            }
            if self.drop_stale(needed) {
                self.workers[usize::from(meter.is_aside())].unpark();
            }
            // Only where the host is not in a hurry.
            std::thread::sleep(Duration::from_micros(50));
        }
        if self.wire.failed.load(Ordering::Relaxed) {
            return Err(Failure::Panicked);
        }
        self.drop_stale(needed);
        out[..lead].fill(0.0);
        let there = if self.next == needed { self.sound.pop_slice(&mut out[lead..]) } else { 0 };
        self.next += there as u64;
        if lead + there == out.len() {
            self.wire.warm.store(true, Ordering::Relaxed);
        }
        self.wire.taken.store(end - delay, Ordering::Relaxed);
        meter.set_queued(end.saturating_sub(self.wire.done.load(Ordering::Relaxed)));
        Ok(Some(lead + there))
    }

    /// Drops the sound before sample `needed`. Gives whether there was any.
    fn drop_stale(&mut self, needed: u64) -> bool {
        let stale = needed.saturating_sub(self.next).min(self.sound.occupied_len() as u64);
        self.next += self.sound.skip(stale as usize) as u64;
        stale > 0
    }
}

impl Drop for Queue {
    /// The worker is told; nothing waits.
    fn drop(&mut self) {
        self.wire.leaving.store(true, Ordering::Release);
        self.workers.iter().for_each(Thread::unpark);
    }
}
