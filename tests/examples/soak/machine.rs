//! Watches the machine itself: when one of its cores stood still, whatever plays on it.
//!
//! A virtual machine is put aside by its host now and then, for milliseconds; nothing that runs inside can be in time then. On
//! each core a thread that outranks all of ours asks to be woken often, and notes when it was not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a core has to answer.
const EVERY: Duration = Duration::from_micros(500);
/// An answer that comes so much too late is noted.
const LATE: Duration = Duration::from_millis(1);
/// Above the audio thread, and so above the worker.
#[cfg(target_os = "linux")]
const PRIORITY: u8 = 90;

/// Time in which a core did not run its most urgent thread.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// When it should have.
    pub from: Instant,
    /// When it did.
    pub until: Instant,
}

/// Watches one core until it is over. Without the right to outrank others nothing can be told, and nothing is.
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

/// Misses of one session that were seen in a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    /// The span.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
    /// How many.
    pub count: u64,
}

/// How many of the misses came while a core stood still, or at most `reach` after.
pub fn during_stalls(missed: &[Missed], stalls: &[Stall], reach: Duration) -> u64 {
    let touches =
        |miss: &&Missed| stalls.iter().any(|stall| stall.from <= miss.until && miss.from <= stall.until + reach);
    missed.iter().filter(touches).map(|miss| miss.count).sum()
}
