//! The rack allocates nothing while it plays.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ondes_player::product::Product;

use crate::rack::{Hands, message};

thread_local! {
    /// Allocations and deallocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// System allocator that counts.
struct Counting;

// SAFETY: every call is handed on to the system's allocator as it came; counting touches a
// thread-local cell only, which is initialised at compile time and has no destructor, so that
// counting itself never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the allocations and deallocations during `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

#[test]
fn a_playing_rack_does_not_allocate() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))) >= 2);
    let mut hands = Hands::new(3);
    let track = hands.mixer.track(1).unwrap();
    assert!(track.instance.midi_bindings.learn("transpose"));
    hands.open();
    let mut sound = hands.block();
    let messages = [
        [0x90, 60, 90],
        [0xB0, 20, 77],
        [0x91, 64, 90],
        [0xE0, 0, 80],
        [0xF2, 0, 1],
    ];
    let messages: Vec<_> = messages.iter().map(|bytes| message(bytes)).collect();
    let start = message(&[0xFA]);
    let clock = message(&[0xF8]);
    for round in 0..40 {
        match round {
            10 => hands.mixer.remove(0),
            20 => drop(hands.mixer.add(Product::Effect).unwrap()),
            25 => hands.mixer.set_midi_channels(1, 1).unwrap(),
            30 => (0..hands.mixer.tracks().count()).for_each(|place| hands.mixer.remove(place)),
            _ => {}
        }
        let rack = hands.rack();
        let taken = allocations(|| {
            rack.receive_midi(0, &start);
            for message in &messages {
                rack.receive_midi(3, message);
                rack.receive_midi(4, &clock);
            }
            sound.play(rack);
        });
        assert_eq!(taken, 0, "round {round}");
        hands.mixer.tick();
    }
}
