//! The single entry of all audio processing on a host's thread.

use std::cell::Cell;
use std::time::Instant;

use ondes_kernels::FlushToZero;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static SPENT_NS: Cell<u64> = const { Cell::new(0) };
}

/// Returns true while this thread is in an audio callback; allocators of tests forbid allocation
/// there.
#[must_use]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Time that a thread has spent in completed audio callbacks, for all processors together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeSpent {
    /// Identifies the thread; unique among living threads.
    pub thread: usize,
    /// Nanoseconds; wraps around.
    pub ns: u64,
}

/// Returns the time that this thread has spent in audio callbacks.
pub(super) fn time_spent() -> TimeSpent {
    SPENT_NS.with(|ns| TimeSpent {
        thread: std::ptr::from_ref(ns).addr(),
        ns: ns.get(),
    })
}

/// Runs an audio callback with subnormal numbers flushed to zero, as they would cost a hundred
/// times more. A session enters by itself; a caller with more work in the callback enters first, so
/// that all of it counts.
pub fn enter<R>(callback: impl FnOnce() -> R) -> R {
    /// `None` inside another callback.
    struct Leave(Option<Instant>);
    impl Drop for Leave {
        fn drop(&mut self) {
            if let Some(start) = self.0 {
                SPENT_NS.set(
                    SPENT_NS
                        .get()
                        .wrapping_add(start.elapsed().as_nanos() as u64),
                );
                INSIDE.set(false);
            }
        }
    }
    let _leave = Leave((!INSIDE.replace(true)).then(Instant::now));
    let _flush = FlushToZero::on();
    callback()
}
