//! The device code allocates nothing on the audio thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use ondes::devices::{Audio, MidiInputs};
use ondes::io::{AudioChoice, Callback, MidiChoice, MidiReceiver};

use crate::alsa::{card, with_card};
use crate::audio::jack;
use crate::peer::Peer;
use crate::server::{PATIENCE, Server, alone};

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

/// Blocks whose allocations are counted, from the first message on.
const BLOCKS: usize = 300;

/// Plays the input and receives MIDI; after some blocks it reports the allocations made by itself
/// and its surroundings.
struct Witness {
    receiver: Option<MidiReceiver>,
    block: usize,
    before: u64,
    told: SyncSender<u64>,
}

impl Callback for Witness {
    fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        for (output, input) in output.iter_mut().zip(input) {
            output.copy_from_slice(input);
        }
        let mut messages = 0;
        if let Some(receiver) = &mut self.receiver {
            receiver.receive(output[0].len(), |_, _| messages += 1);
        }
        match self.block {
            0 if messages == 0 => return,
            0 => self.before = COUNT.get(),
            BLOCKS => self.told.try_send(COUNT.get() - self.before).unwrap(),
            _ => {}
        }
        self.block += 1;
    }
}

fn allocations(choice: AudioChoice) -> u64 {
    let (told, hear) = sync_channel(1);
    let midi = Arc::new(MidiInputs::open(MidiChoice::default()));
    let lent = midi.clone();
    let factory = move |opened: &ondes::devices::Opened| {
        let receiver = lent.receiver(opened.sample_rate, opened.max_block);
        let witness = Witness {
            receiver,
            block: 0,
            before: 0,
            told: told.clone(),
        };
        Ok(Box::new(witness) as Box<dyn Callback>)
    };
    let audio = Audio::open_with_midi(choice, &midi, Box::new(factory));
    let (_keyboard, queue) = Peer::keyboard("keyboard");
    queue
        .lock()
        .unwrap()
        .extend((0..20_000).map(|_| vec![0x90, 60, 1]));
    let heard = hear.recv_timeout(PATIENCE);
    heard.unwrap_or_else(|_| panic!("{:?}", audio.status()))
}

#[test]
fn nothing_is_allocated_on_jack() {
    alone("allocation::nothing_is_allocated_on_jack", || {
        let _server = Server::start();
        assert_eq!(
            allocations(AudioChoice {
                input_channels: Some(2),
                ..jack()
            }),
            0
        );
    });
}

#[test]
fn nothing_is_allocated_on_alsa() {
    with_card("allocation::nothing_is_allocated_on_alsa", || {
        let _server = Server::start();
        let choice = AudioChoice {
            input: Some("ondes_card".into()),
            ..card("ondes_card")
        };
        assert_eq!(allocations(choice), 0);
    });
}
