//! The last seconds of an input, for whoever wants to look back.

use std::sync::Arc;

use super::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// The last samples of one channel, from one writer to any number of readers. Nobody waits for anybody: a reader that
/// was overtaken by the writer is told so.
///
/// Positions count samples since the start. A sample lies at its position modulo the capacity.
///
/// # Orderings
///
/// A seqlock with a position in place of the sequence number. The samples are relaxed atomics, so a race for one gives an
/// old or a new sample, never undefined behaviour; the two positions tell a reader which it was:
///
/// - `end` is stored (release) after the samples of a push, and loaded (acquire) before a copy: no sample is older than
///   what belongs there.
/// - `begun` is stored before the samples of a push, a release fence between, and loaded after a copy, an acquire fence
///   between. A reader that saw even one sample of a push therefore sees how far that push goes, and so which samples
///   may be newer than what belongs there.
#[derive(Debug)]
pub struct History {
    /// The bits of each sample. As many as a power of two.
    samples: Box<[AtomicU32]>,
    /// Up to where the writer has written.
    end: AtomicU64,
    /// Up to where the writer may have begun to write.
    begun: AtomicU64,
    /// Whether the one writer was taken.
    taken: AtomicBool,
}

impl History {
    /// Keeps the last `samples` samples or more: the next power of two. While a push is under way it is those less the
    /// length of the push, so ask for a block more than is to be read.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self {
            samples: (0..samples.next_power_of_two()).map(|_| AtomicU32::new(0)).collect(),
            end: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            taken: AtomicBool::new(false),
        }
    }

    /// The writer, for the first who asks.
    pub fn writer(self: &Arc<Self>) -> Option<HistoryWriter> {
        // Only decides who is first; the samples have their own orderings.
        let first = !self.taken.swap(true, Ordering::Relaxed);
        first.then(|| HistoryWriter { history: Arc::clone(self), end: 0 })
    }

    /// Samples written since the start. All before are complete; the last [`History::capacity`] of them are still there.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// How many samples are kept.
    pub fn capacity(&self) -> usize {
        self.samples.len()
    }

    /// Copies the samples from position `from` on. `false`, and silence, where some are not written yet, or are
    /// overwritten or may have been during the copy.
    pub fn read(&self, from: u64, out: &mut [f32]) -> bool {
        let complete = self.copy(from, out);
        if !complete {
            out.fill(0.0);
        }
        complete
    }

    fn copy(&self, from: u64, out: &mut [f32]) -> bool {
        // Acquire, by `end`: every sample before it is seen as written, or as overwritten since.
        let end = self.end();
        if from.checked_add(out.len() as u64).is_none_or(|to| to > end) || !self.keeps(from, end) {
            return false;
        }
        for (position, sample) in (from..).zip(&mut *out) {
            *sample = f32::from_bits(self.samples[self.index(position)].load(Ordering::Relaxed));
        }
        // Pairs with the fence in `push`: if any of the loads above saw a sample of a push, the load below sees where
        // that push goes to, or later.
        fence(Ordering::Acquire);
        self.keeps(from, self.begun.load(Ordering::Relaxed))
    }

    /// Whether the sample at `from`, and so any later one, is still there when the writer has got to `to`.
    fn keeps(&self, from: u64, to: u64) -> bool {
        to.saturating_sub(from) <= self.samples.len() as u64
    }

    fn index(&self, position: u64) -> usize {
        position as usize & (self.samples.len() - 1)
    }
}

/// The writing end of a [`History`]: for the audio thread. Never waits, never allocates.
#[derive(Debug)]
pub struct HistoryWriter {
    history: Arc<History>,
    /// What `history.end` is: nobody else writes it.
    end: u64,
}

impl HistoryWriter {
    /// Appends samples.
    pub fn push(&mut self, samples: &[f32]) {
        let history = &*self.history;
        let end = self.end + samples.len() as u64;
        history.begun.store(end, Ordering::Relaxed);
        // Pairs with the fence in `copy`: the announcement above comes before every sample below for whoever sees one.
        fence(Ordering::Release);
        // Of a push longer than the whole history only the last samples would stay.
        let kept = &samples[samples.len().saturating_sub(history.samples.len())..];
        for (position, sample) in (end - kept.len() as u64..).zip(kept) {
            history.samples[history.index(position)].store(sample.to_bits(), Ordering::Relaxed);
        }
        // Release: who sees this end sees the samples before it.
        history.end.store(end, Ordering::Release);
        self.end = end;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Small integers are exact.
    fn samples(from: u64, count: usize) -> Vec<f32> {
        (from..).take(count).map(|position| (position % 1_000_003) as f32).collect()
    }

    #[test]
    fn there_is_one_writer() {
        let history = Arc::new(History::new(10));
        assert_eq!(history.capacity(), 16);
        assert!(history.writer().is_some());
        assert!(history.writer().is_none());
    }

    proptest! {
        #[test]
        fn exactly_the_last_samples_can_be_read(
            pushes in prop::collection::vec(0usize..100, 0..20), from in 0u64..1_000, count in 0usize..80,
        ) {
            let history = Arc::new(History::new(64));
            let mut writer = history.writer().unwrap();
            let mut end = 0;
            for push in pushes {
                writer.push(&samples(end, push));
                end += push as u64;
                prop_assert_eq!(history.end(), end);
                let mut out = vec![f32::NAN; count];
                let there = from + count as u64 <= end && from + 64 >= end;
                prop_assert_eq!(history.read(from, &mut out), there);
                prop_assert_eq!(out, if there { samples(from, count) } else { vec![0.0; count] });
            }
        }
    }

    #[test]
    fn positions_far_off_are_refused() {
        let history = Arc::new(History::new(4));
        history.writer().unwrap().push(&[1.0; 6]);
        assert!(!history.read(u64::MAX, &mut [0.0; 2]));
        assert!(!history.read(1 << 40, &mut [0.0; 2]));
        assert!(!history.read(1, &mut [0.0; 2]));
        assert!(history.read(2, &mut [0.0; 4]));
    }

    #[test]
    fn readers_never_get_samples_of_another_time() {
        let history = Arc::new(History::new(256));
        let mut writer = history.writer().unwrap();
        let total = 2_000_000;
        let reads: Vec<u64> = std::thread::scope(|scope| {
            let reader = |back: u64| {
                let history = &history;
                move || {
                    let mut out = [0.0; 100];
                    let mut complete = 0;
                    loop {
                        let end = history.end();
                        let from = end.saturating_sub(back);
                        if history.read(from, &mut out) {
                            assert_eq!(out[..], samples(from, 100));
                            complete += 1;
                        }
                        if end == total {
                            return complete;
                        }
                    }
                }
            };
            let readers = [100, 200].map(|back| scope.spawn(reader(back)));
            for from in (0..total).step_by(50) {
                writer.push(&samples(from, 50));
            }
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        assert!(reads.iter().all(|&complete| complete > 0));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Every interleaving, and every old value that the memory model lets a reader see.
    #[test]
    fn a_complete_read_is_never_torn() {
        loom::model(|| {
            let history = Arc::new(History::new(2));
            let mut writer = history.writer().unwrap();
            writer.push(&[1.0, 2.0]);
            let pushes = loom::thread::spawn(move || {
                writer.push(&[3.0]);
                writer.push(&[4.0, 5.0]);
            });
            for from in [0, 1] {
                let mut out = [f32::NAN; 2];
                let expected =
                    if history.read(from, &mut out) { [from as f32 + 1.0, from as f32 + 2.0] } else { [0.0; 2] };
                assert_eq!(out, expected);
            }
            pushes.join().unwrap();
            let mut out = [f32::NAN; 2];
            assert!(history.read(3, &mut out));
            assert_eq!(out, [4.0, 5.0]);
        });
    }
}
