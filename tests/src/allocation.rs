//! Counts and limits allocations, for tests of code that must not allocate, or not much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use ondes_engine::realtime::audio_callback;

thread_local! {
    /// True while this thread's calls are counted.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread allocated less those that it freed, and the most that there were.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Value of `LIVE` above which allocations fail.
    static LIMIT: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// System allocator that counts the calls of threads inside [`allocations`] or inside an audio
/// callback.
#[derive(Debug)]
pub struct CountingAllocator;

impl CountingAllocator {
    fn count() {
        if COUNTING.get() || audio_callback::is_inside() {
            CALLS.set(CALLS.get() + 1);
        }
    }

    /// Counts bytes before they are allocated; returns whether they may be.
    fn grow(bytes: usize) -> bool {
        let live = LIVE.get().saturating_add_unsigned(bytes);
        if live > LIMIT.get() {
            return false;
        }
        LIVE.set(live);
        PEAK.set(PEAK.get().max(live));
        true
    }

    fn shrink(bytes: usize) {
        LIVE.set(LIVE.get().saturating_sub_unsigned(bytes));
    }
}

// SAFETY: every call is passed to the system's allocator unchanged, or fails as an allocator may;
// counting uses thread-local cells only, which are initialised at compile time and have no
// destructor, so that counting itself never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        if Self::grow(layout.size()) {
            // SAFETY: the caller upholds the contract of the system's allocator.
            unsafe { System.alloc(layout) }
        } else {
            null_mut()
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count();
        if Self::grow(layout.size()) {
            // SAFETY: as above.
            unsafe { System.alloc_zeroed(layout) }
        } else {
            null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count();
        Self::shrink(layout.size());
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        if !Self::grow(size) {
            return null_mut();
        }
        Self::shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the number of allocations and deallocations of this thread in `work`. The program must
/// use [`CountingAllocator`].
pub fn allocations(work: impl FnOnce()) -> usize {
    CALLS.set(0);
    COUNTING.set(true);
    work();
    COUNTING.set(false);
    counted()
}

/// Returns the number of calls of this thread that were counted since it started or last entered
/// [`allocations`].
#[must_use]
pub fn counted() -> usize {
    CALLS.get()
}

/// Returns the result of `work` and the most bytes that this thread held for it at once.
/// Allocations beyond `limit` bytes fail; for most code this ends the process. The program must use
/// [`CountingAllocator`].
pub fn limited<T>(limit: usize, work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    LIMIT.set(before.saturating_add_unsigned(limit));
    let result = work();
    LIMIT.set(isize::MAX);
    (result, PEAK.get().abs_diff(before))
}
