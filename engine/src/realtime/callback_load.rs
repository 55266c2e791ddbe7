//! Share of a callback's time that all processing on its thread takes; a session alone would only
//! see itself.

use super::audio_callback::{self, TimeSpent};

/// Weight of a new block in the average: about the last 30 blocks count.
const SMOOTHING: f32 = 0.03;

/// Load of the callbacks on one session's thread.
pub(super) struct CallbackLoad {
    ns_per_sample: f32,
    /// Time spent when the last block began, and its length in samples.
    last_block: Option<(TimeSpent, usize)>,
    load: f32,
}

impl CallbackLoad {
    /// Creates the load for a sample rate in Hz.
    pub fn new(sample_rate: u32) -> Self {
        Self {
            ns_per_sample: 1e9 / sample_rate.max(1) as f32,
            last_block: None,
            load: 0.0,
        }
    }

    /// Starts a block of `samples` samples. Returns the recent load, up to the last block.
    pub fn next(&mut self, samples: usize) -> f32 {
        let spent = audio_callback::time_spent();
        // Times of two threads cannot be compared; a host may play each block on another one.
        let is_comparable =
            |(before, length): &(TimeSpent, usize)| before.thread == spent.thread && *length > 0;
        if let Some((before, length)) = self.last_block.filter(is_comparable) {
            let share =
                spent.ns.wrapping_sub(before.ns) as f32 / (length as f32 * self.ns_per_sample);
            self.load += SMOOTHING * (share.min(8.0) - self.load);
        }
        self.last_block = Some((spent, samples));
        self.load
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn all_processing_on_the_thread_counts() {
        let mut callback_load = CallbackLoad::new(48_000);
        let mut load = 0.0;
        for _ in 0..200 {
            load = callback_load.next(48);
            // Another processor, for a millisecond: the length of the block.
            audio_callback::enter(|| {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(1) {}
            });
        }
        assert!(load > 0.9, "{load}");
        for _ in 0..200 {
            load = callback_load.next(48);
        }
        assert!(load < 0.01, "{load}");
    }

    #[test]
    fn a_host_with_many_threads_does_not_seem_busy() {
        let mut callback_load = CallbackLoad::new(48_000);
        let busy = || audio_callback::enter(|| std::thread::sleep(Duration::from_millis(5)));
        let mut load = 0.0;
        busy();
        for _ in 0..20 {
            // A new thread, then one that was busy.
            load = std::thread::scope(|scope| scope.spawn(|| callback_load.next(48)).join())
                .expect("it ends");
            busy();
            load = callback_load.next(48).max(load);
        }
        assert_eq!(load, 0.0);
    }
}
