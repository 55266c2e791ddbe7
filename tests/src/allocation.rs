//! Counts allocations, for tests of code that must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ondes_engine::realtime::audio_callback;

thread_local! {
    /// True while this thread's calls are counted.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// System allocator that counts the calls of threads inside [`allocations`] or inside an audio callback.
#[derive(Debug)]
pub struct CountingAllocator;

impl CountingAllocator {
    fn count() {
        if COUNTING.get() || audio_callback::is_inside() {
            CALLS.set(CALLS.get() + 1);
        }
    }
}

// SAFETY: every call is passed to the system's allocator unchanged; counting uses thread-local cells only, which are
// initialised at compile time and have no destructor, so that counting itself never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller upholds the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count();
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the number of allocations and deallocations of this thread in `work`. The program must use
/// [`CountingAllocator`].
pub fn allocations(work: impl FnOnce()) -> usize {
    CALLS.set(0);
    COUNTING.set(true);
    work();
    COUNTING.set(false);
    counted()
}

/// Returns the number of calls of this thread that were counted since it started or last entered [`allocations`].
#[must_use]
pub fn counted() -> usize {
    CALLS.get()
}
