//! Nothing on the audio thread takes or gives back memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ondes_engine::pipeline::{Pipeline, PipelineOptions, Source};
use ondes_tests::{random_events, random_splits, untrained_instrument};

thread_local! {
    /// Whether this thread must not allocate now, and how often it did all the same.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static BROKEN: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what guarded threads do.
struct Guard;

impl Guard {
    fn note() {
        if GUARDED.get() {
            BROKEN.set(BROKEN.get() + 1);
        }
    }
}

// SAFETY: every call is handed on to the system's allocator as it came; counting touches thread-local cells only, which are
// initialised at compile time and have no destructor, so that counting itself never allocates.
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

/// How often `work` allocates or frees.
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
fn playing_does_not_allocate() {
    let model = untrained_instrument(1);
    for source in [Source::Notes, Source::Sound] {
        for sample_rate in [44_100, 48_000, 96_000] {
            let options = PipelineOptions { sample_rate, source, ..PipelineOptions::default() };
            let mut pipeline = Pipeline::new(&model, &options).expect("it plays");
            let length = 60_000;
            let events = random_events(4, length as u64);
            let input: Vec<f32> = (0..length).map(|n| 0.3 * (n as f32 * 0.03).sin()).collect();
            let mut output = vec![0.0; length];
            let blocks = random_splits(5, length, 8192);
            let count = allocations(|| {
                let mut start = 0;
                let mut events = events.iter().peekable();
                for &block in &blocks {
                    while let Some(event) = events.next_if(|event| event.at < (start + block) as u64) {
                        assert!(pipeline.handle(*event).is_ok());
                    }
                    assert!(pipeline.set_control("room", 0.5).is_ok());
                    pipeline.process(&input[start..start + block], &mut output[start..start + block]);
                    start += block;
                }
            });
            assert_eq!(count, 0, "{source:?} at {sample_rate} Hz");
        }
    }
}
