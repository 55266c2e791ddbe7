//! The audio thread's end of a model that the worker plays.
//!
//! Input goes through the session's [`InputHistory`](super::history::InputHistory), which holds it
//! by sample number; commands and output go through ring buffers. Output that is not there when it
//! is needed is dropped when it arrives: the latency stays constant.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringbuf::traits::{Consumer, Observer, Producer};
use ringbuf::{HeapCons, HeapProd};

use super::guard::Failed;
use super::health::InstanceMetrics;
use super::inline_model::HostBlock;
use crate::pipeline::TimedCommand;

/// Interval at which a non-realtime session looks for the worker's output.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Positions and flags that both ends share.
#[derive(Debug, Default)]
pub(super) struct SharedProgress {
    /// Sample number up to which input and commands are available.
    pub input_end: AtomicU64,
    /// Sample number up to which output is in the ring.
    pub output_end: AtomicU64,
    /// Sample number up to which the session has played, with or without output.
    pub played_end: AtomicU64,
    /// Set once the model was in time. Before that it warms up: it processes everything, however
    /// late.
    pub is_warm: AtomicBool,
    /// Set when the session leaves.
    pub is_leaving: AtomicBool,
    /// Set when the model's code has panicked.
    pub has_failed: AtomicBool,
}

/// The audio thread's end.
pub(super) struct WorkerLink {
    pub progress: Arc<SharedProgress>,
    pub commands: HeapProd<TimedCommand>,
    /// `[channel]`
    pub output: Vec<HeapCons<f32>>,
    /// Number of the next sample in the output ring, counted by the model's input.
    pub next: u64,
    /// Number of the first sample that there will be output for.
    pub start: u64,
    /// Latency for the worker, in host samples.
    pub delay: usize,
    pub model_latency: usize,
    pub tail: usize,
    /// The worker, and the one for models that are too slow for it.
    pub workers: [Thread; 2],
}

impl WorkerLink {
    pub fn latency_samples(&self) -> usize {
        self.model_latency + self.delay
    }

    pub fn tail_samples(&self) -> usize {
        self.tail
    }

    /// Returns true if there was room for the command.
    pub fn handle(&mut self, command: TimedCommand) -> bool {
        self.commands.try_push(command).is_ok()
    }

    /// Hands a block to the worker and takes the output for an earlier one. Returns how many
    /// samples of `out` are available, or `None` before there can be any.
    pub fn play(
        &mut self,
        block: &HostBlock<'_>,
        [out, right]: [&mut [f32]; 2],
        metrics: &InstanceMetrics,
    ) -> Result<Option<usize>, Failed> {
        let end = block.at + out.len() as u64;
        self.progress.input_end.store(end, Ordering::Release);
        let delay = self.delay as u64;
        // The first output may begin within this block.
        let lead = (self.start + delay).saturating_sub(block.at) as usize;
        let needed = (block.at + lead as u64).saturating_sub(delay);
        // Before the worker makes more, so that it has room.
        self.drop_stale(needed);
        self.wake_worker(metrics);
        if end <= self.start + delay {
            return Ok(None);
        }
        while block.non_realtime && self.progress.output_end.load(Ordering::Acquire) < end - delay {
            if self.progress.has_failed.load(Ordering::Acquire) {
                return Err(Failed);
            }
            if self.drop_stale(needed) {
                self.wake_worker(metrics);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        if self.progress.has_failed.load(Ordering::Acquire) {
            return Err(Failed);
        }
        self.drop_stale(needed);
        let available = if self.next == needed {
            self.queued_samples().min(out.len() - lead)
        } else {
            0
        };
        for (output, side) in self.output.iter_mut().zip([&mut *out, right]) {
            side[..lead].fill(0.0);
            output.pop_slice(&mut side[lead..lead + available]);
        }
        self.next += available as u64;
        if lead + available == out.len() {
            self.progress.is_warm.store(true, Ordering::Relaxed);
        }
        self.progress
            .played_end
            .store(end - delay, Ordering::Relaxed);
        metrics.set_queued(end.saturating_sub(self.progress.output_end.load(Ordering::Relaxed)));
        Ok(Some(lead + available))
    }

    fn wake_worker(&self, metrics: &InstanceMetrics) {
        self.workers[usize::from(metrics.is_on_slow_worker())].unpark();
    }

    /// Drops the output before sample `needed`. Returns true if there was any.
    fn drop_stale(&mut self, needed: u64) -> bool {
        let stale = needed
            .saturating_sub(self.next)
            .min(self.queued_samples() as u64);
        self.next += stale;
        for output in &mut self.output {
            output.skip(stale as usize);
        }
        stale > 0
    }

    /// Returns the number of samples that all channels have; the worker writes one channel after
    /// the other.
    fn queued_samples(&self) -> usize {
        self.output
            .iter()
            .map(Observer::occupied_len)
            .min()
            .unwrap_or(0)
    }
}

impl Drop for WorkerLink {
    /// Tells the worker, without waiting for it.
    fn drop(&mut self) {
        self.progress.is_leaving.store(true, Ordering::Release);
        self.workers.iter().for_each(Thread::unpark);
    }
}
