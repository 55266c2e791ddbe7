//! The one gate through which all sound processing on a host's thread goes.

use std::cell::Cell;
use std::time::Instant;

use ondes_kernels::FlushToZero;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static SPENT_NS: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread is in an audio callback: a test's allocator asks, and forbids what must not happen there.
#[must_use]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// What one thread has spent in audio callbacks that are over, whoever plays in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    /// Which thread: no two that live have the same number.
    pub thread: usize,
    /// Nanoseconds; wraps around.
    pub ns: u64,
}

/// What this thread has spent.
pub(super) fn spent() -> Spent {
    SPENT_NS.with(|ns| Spent { thread: std::ptr::from_ref(ns).addr(), ns: ns.get() })
}

/// Runs an audio callback: subnormal numbers, which would cost a hundred times the others, count as zero. A session enters by
/// itself; who does more than that in a callback enters before, so that all of it is inside.
pub fn enter<R>(callback: impl FnOnce() -> R) -> R {
    /// None where another callback was entered before.
    struct Leave(Option<Instant>);
    impl Drop for Leave {
        fn drop(&mut self) {
            if let Some(begun) = self.0 {
                SPENT_NS.set(SPENT_NS.get().wrapping_add(begun.elapsed().as_nanos() as u64));
                INSIDE.set(false);
            }
        }
    }
    let _leave = Leave((!INSIDE.replace(true)).then(Instant::now));
    let _flush = FlushToZero::on();
    callback()
}
