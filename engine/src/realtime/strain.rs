//! How much of a callback's time is spent, by all that plays there: a session alone would only know of itself.

use super::gate::{self, Spent};

/// Share of a new block in the average: about the last 30 count.
const SHARE: f32 = 0.03;

/// What one session sees of the callbacks on its thread.
pub(super) struct Strain {
    /// Of a sample.
    ns: f32,
    /// What the thread had spent when the last block began, and the block's length.
    before: Option<(Spent, usize)>,
    load: f32,
}

impl Strain {
    /// For a host at that rate, Hz.
    pub fn new(sample_rate: u32) -> Self {
        Self { ns: 1e9 / sample_rate.max(1) as f32, before: None, load: 0.0 }
    }

    /// A block of so many samples begins. Gives the share of the time that was spent lately, until this block.
    pub fn next(&mut self, samples: usize) -> f32 {
        let spent = gate::spent();
        // What two threads have spent cannot be compared: a host may play each block on another one.
        let comparable = |(before, length): &(Spent, usize)| before.thread == spent.thread && *length > 0;
        if let Some((before, length)) = self.before.filter(comparable) {
            let share = spent.ns.wrapping_sub(before.ns) as f32 / (length as f32 * self.ns);
            self.load += SHARE * (share.min(8.0) - self.load);
        }
        self.before = Some((spent, samples));
        self.load
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn all_that_plays_on_the_thread_counts() {
        let mut strain = Strain::new(48_000);
        let mut load = 0.0;
        for _ in 0..200 {
            load = strain.next(48);
            // Somebody else, for a millisecond: as long as the block.
            gate::enter(|| {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(1) {}
            });
        }
        assert!(load > 0.9, "{load}");
        for _ in 0..200 {
            load = strain.next(48);
        }
        assert!(load < 0.01, "{load}");
    }

    #[test]
    fn a_host_that_plays_on_many_threads_is_not_taken_for_a_busy_one() {
        let mut strain = Strain::new(48_000);
        let busy = || gate::enter(|| std::thread::sleep(Duration::from_millis(5)));
        let mut load = 0.0;
        busy();
        for _ in 0..20 {
            // A thread that has spent nothing yet, then one that has.
            load = std::thread::scope(|scope| scope.spawn(|| strain.next(48)).join()).expect("it ends");
            busy();
            load = strain.next(48).max(load);
        }
        assert_eq!(load, 0.0);
    }
}
