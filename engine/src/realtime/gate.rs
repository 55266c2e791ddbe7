//! The one gate through which all sound processing on a host's thread goes.

use std::cell::Cell;

use ondes_kernels::FlushToZero;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in an audio callback: a test's allocator asks, and forbids what must not happen there.
#[must_use]
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Runs an audio callback: subnormal numbers, which would cost a hundred times the others, count as zero. A session enters by
/// itself; who does more than that in a callback enters before, so that all of it is inside.
pub fn enter<R>(callback: impl FnOnce() -> R) -> R {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _leave = Leave(INSIDE.replace(true));
    let _flush = FlushToZero::on();
    callback()
}
