//! Pushing does not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ondes::record::{Recorder, RecorderSetup, RecordingFormat};

thread_local! {
    /// Guard of this thread while it must not allocate, and its allocations.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static BROKEN: Cell<usize> = const { Cell::new(0) };
}

/// System allocator that counts allocations of guarded threads.
struct Guard;

impl Guard {
    fn note() {
        if GUARDED.get() {
            BROKEN.set(BROKEN.get() + 1);
        }
    }
}

// SAFETY: every call is handed on to the system's allocator as it came; counting touches thread-local cells only, which
// are initialised at compile time and have no destructor, so that counting itself never allocates.
unsafe impl GlobalAlloc for Guard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::note();
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Guard = Guard;

/// Returns the allocations and deallocations during `work`.
fn allocations(work: impl FnOnce()) -> usize {
    BROKEN.set(0);
    GUARDED.set(true);
    work();
    GUARDED.set(false);
    BROKEN.get()
}

#[test]
fn the_guard_sees_allocations() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 2);
}

#[test]
fn pushing_does_not_allocate() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let setup = RecorderSetup { sample_rate: 48_000, channels: vec![2, 64], preroll_s: 1.0, ring_s: 0.1 };
    let (mut recorder, mut taps) = Recorder::new(&setup).expect("there is memory");
    let files = (0..2).map(|tap| (tap, folder.path().join(format!("{tap}.wav"))));
    let block = vec![0.5_f32; 10_000];
    let mut clock = 0;
    let mut play = |frames: usize| {
        let blocks = [&block[..frames]; 64];
        for n in 0..50 {
            taps[0].push(clock, &blocks[..2]);
            taps[1].push(clock, &blocks);
            // Sometimes a callback is skipped.
            clock += (if n % 7 == 0 { 2 * frames } else { frames }) as u64;
        }
    };
    assert_eq!(allocations(|| play(64)), 0);
    recorder.start(files, RecordingFormat::Float32, true).expect("it starts");
    assert_eq!(allocations(|| play(64)), 0);
    // More than the rings hold.
    assert_eq!(allocations(|| play(10_000)), 0);
    assert!(recorder.status().dropped > 0);
    assert_eq!(recorder.status().error, None);
}
