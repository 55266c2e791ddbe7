//! Records when a core of the machine stood still.
//!
//! The host of a virtual machine sometimes suspends it for milliseconds, and nothing inside can be
//! in time then. On each core a thread of higher priority than ours asks to be woken often, and
//! records when it was not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a core must answer.
const EVERY: Duration = Duration::from_micros(500);
/// Delay from which an answer is recorded.
const LATE: Duration = Duration::from_millis(1);
/// Priority above the audio thread, and so above the worker.
#[cfg(target_os = "linux")]
const PRIORITY: u8 = 90;

/// Interval in which a core did not run its most urgent thread.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Time at which it should have run.
    pub from: Instant,
    /// Time at which it ran.
    pub until: Instant,
}

/// Watches one core until `over` is set. Returns `None` without permission for real-time priority.
pub fn watch(core: usize, over: &AtomicBool) -> Option<Vec<Stall>> {
    outrank(core)?;
    let mut stalls = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let from = Instant::now() + EVERY;
        std::thread::sleep(EVERY);
        let until = Instant::now();
        if until > from + LATE {
            stalls.push(Stall { from, until });
        }
    }
    Some(stalls)
}

#[cfg(target_os = "linux")]
fn outrank(core: usize) -> Option<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()?;
    super::raise(PRIORITY).then_some(())
}

#[cfg(not(target_os = "linux"))]
fn outrank(_core: usize) -> Option<()> {
    None
}

/// Dropouts of one session in a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    /// Length of the span.
    pub from: Instant,
    /// End of the span.
    pub until: Instant,
    /// Number of dropouts.
    pub count: u64,
}

/// Returns the number of dropouts while a core stood still, or at most `reach` later.
pub fn during_stalls(missed: &[Missed], stalls: &[Stall], reach: Duration) -> u64 {
    let touches = |miss: &&Missed| {
        stalls
            .iter()
            .any(|stall| stall.from <= miss.until && miss.from <= stall.until + reach)
    };
    missed.iter().filter(touches).map(|miss| miss.count).sum()
}
