//! Spreads a step of a codec over the host blocks of a hop.
//!
//! A step needs a whole hop of input, 2048 samples for a large model. Computed at once, it makes one host block of many
//! late, however low the mean load is. Spread, each host block computes as many layers as its share of the hop, and the
//! sound follows one hop later.

use std::time::{Duration, Instant};

use crate::executor::MethodExecutor;

/// Rounds in which the layers are timed; the fastest counts.
const ROUNDS: usize = 3;

/// Progress of a step through the layers of one or more methods.
pub(super) struct Spread {
    /// Share of the step's work up to the middle of each layer, from 0 to 1.
    middles: Vec<f64>,
    /// Next layer; as many as there are when the step is complete.
    next: usize,
}

impl Spread {
    /// Makes a complete step from the times of all layers.
    pub fn new(times: &[Duration]) -> Self {
        let all = times.iter().sum::<Duration>().as_secs_f64().max(f64::MIN_POSITIVE);
        let mut before = 0.0;
        let middle = |time: &Duration| {
            let share = time.as_secs_f64() / all;
            before += share;
            before - 0.5 * share
        };
        let middles: Vec<f64> = times.iter().map(middle).collect();
        Self { next: middles.len(), middles }
    }

    /// Begins a step.
    pub fn begin(&mut self) {
        self.next = 0;
    }

    /// Abandons a step.
    pub fn reset(&mut self) {
        self.next = self.middles.len();
    }

    /// Returns the next layer that is due when a share of the hop has passed.
    pub fn next_due(&mut self, share: f64) -> Option<usize> {
        let layer = self.next;
        let is_due = self.middles.get(layer).is_some_and(|middle| *middle <= share);
        self.next += usize::from(is_due);
        is_due.then_some(layer)
    }
}

/// Returns the times that the layers take for one stream and a number of blocks of silence. The state must be reset
/// afterwards.
pub(super) fn layer_times(executor: &mut MethodExecutor, inputs: usize, blocks: usize) -> Vec<Duration> {
    let mut times = vec![Duration::MAX; executor.layers()];
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
        let mut spread = Spread::new(&[1, 1, 6, 1, 1].map(Duration::from_millis));
        let mut due = |share| std::iter::from_fn(|| spread.next_due(share)).collect::<Vec<_>>();
        assert_eq!(due(1.0), [0; 0], "there is no step yet");
        spread.begin();
        let mut due = |share| std::iter::from_fn(|| spread.next_due(share)).collect::<Vec<_>>();
        assert_eq!(
            [due(0.0), due(0.25), due(0.5), due(0.9), due(1.0), due(1.0)],
            [vec![], vec![0, 1], vec![2], vec![3], vec![4], vec![]]
        );
        spread.begin();
        spread.reset();
        assert_eq!(spread.next_due(1.0), None);
    }
}
