//! Spreads a step of a codec over the host blocks of a hop.
//!
//! A step needs a whole hop of input, 2048 samples for a large model. Computed at once, it makes
//! one host block of many late, however low the mean load is. Spread, each host block computes as
//! many layers as its share of the hop, and the sound follows one hop later. What needs no input, a
//! generator, is computed one hop ahead instead.
//!
//! A large layer takes the time of several blocks, and is computed in one of them. Several sessions
//! in one callback, whose hops begin together, each have a phase of their own, so that they do not
//! all choose the same one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::executor::MethodExecutor;

/// Rounds in which the layers are timed; the fastest counts.
const ROUNDS: usize = 3;

/// Progress of a step through the layers of one or more methods.
pub(super) struct Spread {
    /// Share of the work before each layer, and of all of it, from 0 to 1.
    before: Vec<f64>,
    /// Next layer; as many as there are when the step is complete.
    next: usize,
    /// Share of the work before the layer that the step began with.
    skipped: f64,
    /// Position in the work of each layer at which it is due, from 0 to 1.
    phase: f64,
}

impl Spread {
    /// Makes a complete step from the times of all layers, with the next phase of a sequence that
    /// fills the range evenly.
    pub fn new(times: &[Duration]) -> Self {
        static SESSIONS: AtomicU32 = AtomicU32::new(0);
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
        // The golden ratio
        // (https://en.wikipedia.org/wiki/Low-discrepancy_sequence#Additive_recurrence).
        Self::with_phase(
            times,
            (f64::from(session) * 0.618_033_988_749_894_9).fract(),
        )
    }

    fn with_phase(times: &[Duration], phase: f64) -> Self {
        let all = times
            .iter()
            .sum::<Duration>()
            .as_secs_f64()
            .max(f64::MIN_POSITIVE);
        let sums = times.iter().scan(Duration::ZERO, |sum, time| {
            *sum += *time;
            Some(sum.as_secs_f64() / all)
        });
        Self {
            before: std::iter::once(0.0).chain(sums).collect(),
            next: times.len(),
            skipped: 0.0,
            phase,
        }
    }

    /// Returns the number of layers.
    fn layers(&self) -> usize {
        self.before.len() - 1
    }

    /// Begins a step with layer `first`.
    pub fn begin(&mut self, first: usize) {
        self.next = first;
        self.skipped = self.before[first];
    }

    /// Abandons a step.
    pub fn reset(&mut self) {
        self.next = self.layers();
    }

    /// Returns the next layer that is due when a share of the hop has passed.
    pub fn next_due(&mut self, share: f64) -> Option<usize> {
        let layer = self.next;
        if layer == self.layers() {
            return None;
        }
        let (from, to) = (self.before[layer], self.before[layer + 1]);
        let is_due = from + self.phase * (to - from) <= self.skipped + share * (1.0 - self.skipped);
        self.next += usize::from(is_due);
        is_due.then_some(layer)
    }
}

/// Returns the times that the layers take for one stream and a number of blocks of silence. The
/// state must be reset afterwards.
pub(super) fn layer_times(
    executor: &mut MethodExecutor,
    inputs: usize,
    blocks: usize,
) -> Vec<Duration> {
    let mut times = vec![Duration::MAX; executor.layer_count()];
    for _ in 0..ROUNDS {
        executor.begin(&[0], blocks);
        (0..inputs).for_each(|input| executor.input(input).fill(0.0));
        for (layer, time) in times.iter_mut().enumerate() {
            let start = Instant::now();
            executor.run_layer(layer);
            *time = start.elapsed().min(*time);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_share_of_a_hop_computes_its_share_of_the_work() {
        let mut spread = Spread::with_phase(&[1, 1, 6, 1, 1].map(Duration::from_millis), 0.5);
        let mut due = |share| std::iter::from_fn(|| spread.next_due(share)).collect::<Vec<_>>();
        assert_eq!(due(1.0), [0; 0], "there is no step yet");
        spread.begin(0);
        let mut due = |share| std::iter::from_fn(|| spread.next_due(share)).collect::<Vec<_>>();
        assert_eq!(
            [due(0.0), due(0.25), due(0.5), due(0.9), due(1.0), due(1.0)],
            [vec![], vec![0, 1], vec![2], vec![3], vec![4], vec![]]
        );
        spread.begin(2);
        let mut due = |share| std::iter::from_fn(|| spread.next_due(share)).collect::<Vec<_>>();
        assert_eq!(
            [due(0.3), due(0.5), due(0.9), due(1.0)],
            [vec![], vec![2], vec![3], vec![4]]
        );
        spread.begin(0);
        spread.reset();
        assert_eq!(spread.next_due(1.0), None);
    }

    #[test]
    fn sessions_share_the_blocks_of_a_large_layer() {
        let times = [1, 1, 6, 1, 1].map(Duration::from_millis);
        let mut counts = [0; 10];
        for _ in 0..60 {
            let mut spread = Spread::new(&times);
            spread.begin(0);
            for (block, count) in counts.iter_mut().enumerate() {
                let due = std::iter::from_fn(|| spread.next_due((block + 1) as f64 / 10.0));
                *count += due.filter(|layer| *layer == 2).count();
            }
        }
        // One with phase 0, if it is among them, is early.
        assert!(
            counts[0] + counts[8] + counts[9] == 0 && counts[1] <= 1,
            "{counts:?}"
        );
        assert!(
            counts[2..8].iter().all(|count| (9..=11).contains(count)),
            "{counts:?}"
        );
    }
}
