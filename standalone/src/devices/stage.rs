//! What happens on the audio thread, whatever the sound system.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arrayvec::ArrayVec;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::audio::{Callback, Drift};

/// The most channels in one direction: those of a MADI interface.
pub(super) const MAX_CHANNELS: usize = 64;

/// The most frames that a callback gets at once; longer buffers of a device are cut. Some sound servers hand over seconds.
pub(super) const MAX_BLOCK: usize = 4096;

/// Figures that the audio thread leaves for everybody else.
#[derive(Debug, Default)]
pub(super) struct Meter {
    blocks: AtomicU64,
    xruns: AtomicU64,
    dropped_frames: AtomicU64,
    inserted_frames: AtomicU64,
    output_latency_frames: AtomicUsize,
    input_latency_frames: AtomicUsize,
    stopping: AtomicBool,
}

impl Meter {
    /// Blocks played so far, silent ones included.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    pub fn xruns(&self) -> u64 {
        self.xruns.load(Relaxed)
    }

    pub fn drift(&self) -> Drift {
        Drift { dropped_frames: self.dropped_frames.load(Relaxed), inserted_frames: self.inserted_frames.load(Relaxed) }
    }

    /// Latencies of output and input as the system told last, in frames.
    pub fn latencies(&self) -> (usize, usize) {
        (self.output_latency_frames.load(Relaxed), self.input_latency_frames.load(Relaxed))
    }

    /// Whether nobody waits for sound any more.
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

/// The audio thread's side: silence until a callback is seated.
pub(super) struct Stage {
    seat: HeapCons<Box<dyn Callback>>,
    home: HeapProd<Leaving>,
    callback: Option<Box<dyn Callback>>,
    max_block: usize,
    meter: Arc<Meter>,
}

/// The supervisor's side. Dropped after the stream, it takes the callback with it.
pub(super) struct Backstage {
    seat: HeapProd<Box<dyn Callback>>,
    home: HeapCons<Leaving>,
}

/// A callback on its way home, to be dropped there.
struct Leaving {
    _callback: Box<dyn Callback>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Stage {
    pub fn new(max_block: usize, meter: Arc<Meter>) -> (Self, Backstage) {
        let (seat_in, seat) = HeapRb::new(1).split();
        let (home, home_out) = HeapRb::new(1).split();
        (Self { seat, home, callback: None, max_block, meter }, Backstage { seat: seat_in, home: home_out })
    }

    /// Plays any number of frames, in blocks that the callback takes.
    pub fn play(&mut self, input: &[&[f32]], output: &mut [&mut [f32]]) {
        self.meter.blocks.fetch_add(1, Relaxed);
        if self.callback.is_none() {
            self.callback = self.seat.try_pop();
        }
        let Some(callback) = &mut self.callback else {
            silence(output);
            return;
        };
        let frames = output.iter().map(|channel| channel.len()).min().unwrap_or(0);
        let max_block = self.max_block;
        let played = catch_unwind(AssertUnwindSafe(|| {
            for start in (0..frames).step_by(max_block) {
                let block = start..frames.min(start + max_block);
                let input: ArrayVec<&[f32], MAX_CHANNELS> = input.iter().map(|all| &all[block.clone()]).collect();
                let mut output: ArrayVec<&mut [f32], MAX_CHANNELS> =
                    output.iter_mut().map(|all| &mut all[block.clone()]).collect();
                callback.process(&input, &mut output);
            }
        }));
        if let Err(panic) = played {
            silence(output);
            self.send_home(Some(panic));
        }
    }

    fn send_home(&mut self, panic: Option<Box<dyn Any + Send>>) {
        let Some(callback) = self.callback.take() else { return };
        // There is room: one callback is seated in a stage's life.
        let left = self.home.try_push(Leaving { _callback: callback, panic });
        debug_assert!(left.is_ok());
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.send_home(None);
    }
}

impl Backstage {
    /// Seats the one callback of this stage.
    pub fn seat(&mut self, callback: Box<dyn Callback>) {
        let seated = self.seat.try_push(callback);
        debug_assert!(seated.is_ok());
    }

    /// What the callback said when it panicked, if it did.
    pub fn panic(&mut self) -> Option<String> {
        let panic = self.home.try_pop()?.panic?;
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Some(text.unwrap_or_else(|| "for a reason that it did not tell".into()))
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

    /// Counts frames upwards, one number to each, and says where it was dropped.
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

    fn play(stage: &mut Stage, frames: usize) -> [Vec<f32>; 2] {
        let input: Vec<f32> = (0..frames).map(|frame| -(frame as f32)).collect();
        let mut output = [vec![9.0; frames], vec![9.0; frames]];
        let [left, right] = &mut output;
        stage.play(&[&input], &mut [left, right]);
        output
    }

    #[test]
    fn long_buffers_are_cut_and_nothing_gets_lost() {
        let (mut stage, mut backstage) = Stage::new(7, Arc::default());
        assert_eq!(play(&mut stage, 10)[0], [0.0; 10]);
        let dropped_on = Arc::default();
        backstage.seat(Box::new(Counter { next: 0.0, longest: 7, panic_at: 1e9, dropped_on }));
        let mut expected = 0.0;
        for frames in [1, 7, 8, 30, 0, 3] {
            let [left, right] = play(&mut stage, frames);
            for frame in 0..frames {
                assert_eq!(left[frame], expected);
                assert_eq!(right[frame], -(frame as f32));
                expected += 1.0;
            }
        }
        assert_eq!(backstage.panic(), None);
    }

    #[test]
    fn a_panic_is_silence_and_is_told() {
        let (mut stage, mut backstage) = Stage::new(16, Arc::default());
        let dropped_on = Arc::<Mutex<Option<ThreadId>>>::default();
        backstage.seat(Box::new(Counter { next: 0.0, longest: 16, panic_at: 5.0, dropped_on: dropped_on.clone() }));
        assert_eq!(play(&mut stage, 16), [[0.0; 16], [0.0; 16]]);
        assert_eq!(play(&mut stage, 16), [[0.0; 16], [0.0; 16]]);
        assert!(dropped_on.lock().unwrap().is_none());
        assert_eq!(backstage.panic().as_deref(), Some("enough at 5"));
        assert!(dropped_on.lock().unwrap().is_some());
    }

    #[test]
    fn the_callback_is_not_dropped_by_the_audio_thread() {
        let (mut stage, mut backstage) = Stage::new(16, Arc::default());
        let dropped_on = Arc::<Mutex<Option<ThreadId>>>::default();
        backstage.seat(Box::new(Counter { next: 0.0, longest: 16, panic_at: 1e9, dropped_on: dropped_on.clone() }));
        let audio = std::thread::spawn(move || {
            play(&mut stage, 4);
            drop(stage);
        });
        audio.join().unwrap();
        assert!(dropped_on.lock().unwrap().is_none());
        drop(backstage);
        assert_eq!(*dropped_on.lock().unwrap(), Some(std::thread::current().id()));
    }
}
