//! Audio thread: a slot for the callback, independent of the sound system.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arrayvec::ArrayVec;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::status::Drift;
use crate::io::Callback;
use ondes_engine::panics;

/// Largest number of channels in one direction: a MADI interface.
pub(super) const MAX_CHANNELS: usize = 64;

/// Largest block of a callback, frames; longer buffers of a device are split. Some sound servers
/// use buffers of seconds.
pub(super) const MAX_BLOCK: usize = 4096;

/// Counters that the audio thread publishes.
#[derive(Debug, Default)]
pub(super) struct StreamStats {
    blocks: AtomicU64,
    xruns: AtomicU64,
    dropped_frames: AtomicU64,
    inserted_frames: AtomicU64,
    output_latency_frames: AtomicUsize,
    input_latency_frames: AtomicUsize,
    stopping: AtomicBool,
}

impl StreamStats {
    /// Returns the number of blocks played so far, silent ones included.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    pub fn xruns(&self) -> u64 {
        self.xruns.load(Relaxed)
    }

    pub fn drift(&self) -> Drift {
        Drift {
            dropped_frames: self.dropped_frames.load(Relaxed),
            inserted_frames: self.inserted_frames.load(Relaxed),
        }
    }

    /// Returns the latencies of output and input in frames, as the system reported them last.
    pub fn latencies(&self) -> (usize, usize) {
        (
            self.output_latency_frames.load(Relaxed),
            self.input_latency_frames.load(Relaxed),
        )
    }

    /// Returns whether the owner is closing the devices.
    pub fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub fn count_xrun(&self) {
        self.xruns.fetch_add(1, Relaxed);
    }

    pub fn count_dropped(&self, frames: usize) {
        self.dropped_frames.fetch_add(frames as u64, Relaxed);
    }

    pub fn count_inserted(&self, frames: usize) {
        self.inserted_frames.fetch_add(frames as u64, Relaxed);
    }

    pub fn set_output_latency(&self, frames: usize) {
        self.output_latency_frames.store(frames, Relaxed);
    }

    pub fn set_input_latency(&self, frames: usize) {
        self.input_latency_frames.store(frames, Relaxed);
    }
}

/// The audio thread's end: plays silence until a callback is installed.
pub(super) struct CallbackSlot {
    incoming: HeapCons<Box<dyn Callback>>,
    returned: HeapProd<ReturnedCallback>,
    callback: Option<Box<dyn Callback>>,
    max_block: usize,
    stats: Arc<StreamStats>,
}

/// The supervisor's end. Dropped after the stream, together with the callback.
pub(super) struct CallbackOwner {
    incoming: HeapProd<Box<dyn Callback>>,
    returned: HeapCons<ReturnedCallback>,
}

/// Callback on its way back, to be dropped by the supervisor.
struct ReturnedCallback {
    _callback: Box<dyn Callback>,
    panic: Option<Box<dyn Any + Send>>,
}

impl CallbackSlot {
    pub fn new(max_block: usize, stats: Arc<StreamStats>) -> (Self, CallbackOwner) {
        let (incoming_tx, incoming) = HeapRb::new(1).split();
        let (returned, returned_rx) = HeapRb::new(1).split();
        (
            Self {
                incoming,
                returned,
                callback: None,
                max_block,
                stats,
            },
            CallbackOwner {
                incoming: incoming_tx,
                returned: returned_rx,
            },
        )
    }

    /// Plays any number of frames, in blocks that the callback accepts.
    pub fn play(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        self.stats.blocks.fetch_add(1, Relaxed);
        if self.callback.is_none() {
            self.callback = self.incoming.try_pop();
        }
        let Some(callback) = &mut self.callback else {
            silence(output);
            return;
        };
        let frames = output
            .iter()
            .map(|channel| channel.len())
            .min()
            .unwrap_or(0);
        let max_block = self.max_block;
        let played = catch_unwind(AssertUnwindSafe(|| {
            for start in (0..frames).step_by(max_block) {
                let block = start..frames.min(start + max_block);
                let input: ArrayVec<&[f32], MAX_CHANNELS> =
                    input.iter().map(|all| &all[block.clone()]).collect();
                let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> = output
                    .iter_mut()
                    .map(|all| &mut all[block.clone()])
                    .collect();
                callback.process(&input, &mut output);
            }
        }));
        if let Err(panic) = played {
            silence(output);
            self.return_callback(Some(panic));
        }
    }

    fn return_callback(&mut self, panic: Option<Box<dyn Any + Send>>) {
        let Some(callback) = self.callback.take() else {
            return;
        };
        // There is room: a slot has one callback in its lifetime.
        let left = self.returned.try_push(ReturnedCallback {
            _callback: callback,
            panic,
        });
        debug_assert!(left.is_ok());
    }
}

impl Drop for CallbackSlot {
    fn drop(&mut self) {
        self.return_callback(None);
    }
}

impl CallbackOwner {
    /// Installs the callback; once per slot.
    pub fn install(&mut self, callback: Box<dyn Callback>) {
        let seated = self.incoming.try_push(callback);
        debug_assert!(seated.is_ok());
    }

    /// Returns the panic message of the callback in one line, if it has panicked.
    pub fn panic(&mut self) -> Option<String> {
        Some(panics::message(&*self.returned.try_pop()?.panic?))
    }
}

fn silence(output: &mut [&mut [f32]]) {
    for channel in output {
        channel.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::thread::ThreadId;

    /// Numbers all frames, and records the thread that dropped it.
    struct Counter {
        next: f32,
        longest: usize,
        panic_at: f32,
        dropped_on: Arc<Mutex<Option<ThreadId>>>,
    }

    impl Callback for Counter {
        fn process(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
            assert!(output[0].len() <= self.longest);
            for frame in 0..output[0].len() {
                output[0][frame] = self.next;
                output[1][frame] = input[0][frame];
                self.next += 1.0;
                assert!(self.next < self.panic_at, "enough at {}", self.panic_at);
            }
        }
    }

    impl Drop for Counter {
        fn drop(&mut self) {
            *self.dropped_on.lock().unwrap() = Some(std::thread::current().id());
        }
    }

    fn play(slot: &mut CallbackSlot, frames: usize) -> [Vec<f32>; 2] {
        let input: Vec<f32> = (0..frames).map(|frame| -(frame as f32)).collect();
        let mut output = [vec![9.0; frames], vec![9.0; frames]];
        let [left, right] = &mut output;
        slot.play(&[&input], &mut [left, right]);
        output
    }

    #[test]
    fn long_buffers_are_split_without_loss() {
        let (mut slot, mut owner) = CallbackSlot::new(7, Arc::default());
        assert_eq!(play(&mut slot, 10)[0], [0.0; 10]);
        let dropped_on = Arc::default();
        owner.install(Box::new(Counter {
            next: 0.0,
            longest: 7,
            panic_at: 1e9,
            dropped_on,
        }));
        let mut expected = 0.0;
        for frames in [1, 7, 8, 30, 0, 3] {
            let [left, right] = play(&mut slot, frames);
            for frame in 0..frames {
                assert_eq!(left[frame], expected);
                assert_eq!(right[frame], -(frame as f32));
                expected += 1.0;
            }
        }
        assert_eq!(owner.panic(), None);
    }

    #[test]
    fn a_panic_is_silenced_and_reported() {
        let (mut slot, mut owner) = CallbackSlot::new(16, Arc::default());
        let dropped_on = Arc::<Mutex<Option<ThreadId>>>::default();
        owner.install(Box::new(Counter {
            next: 0.0,
            longest: 16,
            panic_at: 5.0,
            dropped_on: dropped_on.clone(),
        }));
        assert_eq!(play(&mut slot, 16), [[0.0; 16], [0.0; 16]]);
        assert_eq!(play(&mut slot, 16), [[0.0; 16], [0.0; 16]]);
        assert!(dropped_on.lock().unwrap().is_none());
        assert_eq!(owner.panic().as_deref(), Some("enough at 5"));
        assert!(dropped_on.lock().unwrap().is_some());
    }

    #[test]
    fn the_callback_is_not_dropped_by_the_audio_thread() {
        let (mut slot, mut owner) = CallbackSlot::new(16, Arc::default());
        let dropped_on = Arc::<Mutex<Option<ThreadId>>>::default();
        owner.install(Box::new(Counter {
            next: 0.0,
            longest: 16,
            panic_at: 1e9,
            dropped_on: dropped_on.clone(),
        }));
        let audio = std::thread::spawn(move || {
            play(&mut slot, 4);
            drop(slot);
        });
        audio.join().unwrap();
        assert!(dropped_on.lock().unwrap().is_none());
        drop(owner);
        assert_eq!(
            *dropped_on.lock().unwrap(),
            Some(std::thread::current().id())
        );
    }
}
