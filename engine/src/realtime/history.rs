//! Ring buffer of the last seconds of input, with one writer and any number of readers.

use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// Ring buffer of the last samples of one channel. Neither side waits: a reader that the writer has
/// overtaken learns it from the result.
///
/// Positions count samples since the start; a sample's index is its position modulo the capacity.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use ondes_engine::realtime::history::InputHistory;
///
/// let history = Arc::new(InputHistory::new(4));
/// let mut writer = history.writer().expect("the first writer");
/// writer.push(&[1.0, 2.0, 3.0, 4.0, 5.0]);
/// let mut out = [0.0; 2];
/// assert!(history.read(3, &mut out) && out == [4.0, 5.0]);
/// assert!(!history.read(0, &mut out), "overwritten");
/// ```
///
/// # Orderings
///
/// A seqlock with a position as its sequence number. The samples are relaxed atomics, so a race
/// returns an old or a new sample, never undefined behaviour; the two positions tell a reader
/// which:
///
/// - `end` is stored (release) after the samples of a push, and loaded (acquire) before a copy: no
///   sample is too old.
/// - `write_end` is stored before the samples of a push, followed by a release fence, and loaded
///   after a copy, preceded by an acquire fence. A reader that saw a sample of a push therefore
///   sees the end of that push, and so which samples may be too new.
#[derive(Debug)]
pub struct InputHistory {
    /// Bits of the samples; their number is a power of two.
    samples: Box<[AtomicU32]>,
    /// End of the complete samples.
    end: AtomicU64,
    /// End of the samples that may be partly written.
    write_end: AtomicU64,
    /// Set once the writer was handed out.
    has_writer: AtomicBool,
}

impl InputHistory {
    /// Creates a buffer for at least the last `samples` samples, rounded up to a power of two.
    /// During a push fewer are readable, by the length of the push, so add one block to what
    /// readers need.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self {
            samples: (0..samples.next_power_of_two())
                .map(|_| AtomicU32::new(0))
                .collect(),
            end: AtomicU64::new(0),
            write_end: AtomicU64::new(0),
            has_writer: AtomicBool::new(false),
        }
    }

    /// Returns the writer to the first caller, `None` to others.
    pub fn writer(self: &Arc<Self>) -> Option<InputHistoryWriter> {
        // Only decides which caller is first; the samples have their own orderings.
        let first = !self.has_writer.swap(true, Ordering::Relaxed);
        first.then(|| InputHistoryWriter {
            history: Arc::clone(self),
            end: 0,
        })
    }

    /// Returns the number of samples since the start. All of them are complete; the last
    /// [`InputHistory::capacity`] are readable.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Returns the number of samples that are kept.
    pub fn capacity(&self) -> usize {
        self.samples.len()
    }

    /// Copies the samples from position `from` on. Returns false, and fills `out` with silence, if
    /// some of them are not written yet, or may have been overwritten.
    pub fn read(&self, from: u64, out: &mut [f32]) -> bool {
        let is_complete = self.copy(from, out);
        if !is_complete {
            out.fill(0.0);
        }
        is_complete
    }

    fn copy(&self, from: u64, out: &mut [f32]) -> bool {
        // Acquire, in `end`: every sample before it is visible as written, or as overwritten since.
        let end = self.end();
        if from.checked_add(out.len() as u64).is_none_or(|to| to > end) || !self.keeps(from, end) {
            return false;
        }
        let (tail, head) = self.ring_slices(from, out.len());
        let (first, second) = out.split_at_mut(tail.len());
        for (stored, samples) in [(tail, first), (head, second)] {
            let loaded = stored
                .iter()
                .map(|stored| f32::from_bits(stored.load(Ordering::Relaxed)));
            samples
                .iter_mut()
                .zip(loaded)
                .for_each(|(sample, loaded)| *sample = loaded);
        }
        // Pairs with the fence in `push`: if a load above saw a sample of a push, the load below
        // sees the end of that push, or of a later one.
        fence(Ordering::Acquire);
        self.keeps(from, self.write_end.load(Ordering::Relaxed))
    }

    /// Returns true if the sample at `from`, and so any later one, is kept when the writer has
    /// reached `to`.
    fn keeps(&self, from: u64, to: u64) -> bool {
        to.saturating_sub(from) <= self.samples.len() as u64
    }

    /// Returns the `count` stored samples from a position on, in two slices; `count` is at most the
    /// capacity.
    fn ring_slices(&self, position: u64, count: usize) -> (&[AtomicU32], &[AtomicU32]) {
        let start = position as usize & (self.samples.len() - 1);
        let in_tail = count.min(self.samples.len() - start);
        (
            &self.samples[start..start + in_tail],
            &self.samples[..count - in_tail],
        )
    }
}

/// Writing end of an [`InputHistory`], for the audio thread. Never waits or allocates.
#[derive(Debug)]
pub struct InputHistoryWriter {
    history: Arc<InputHistory>,
    /// Equal to `history.end`, which only this writer changes.
    end: u64,
}

impl InputHistoryWriter {
    /// Appends samples.
    pub fn push(&mut self, samples: &[f32]) {
        let history = &*self.history;
        let end = self.end + samples.len() as u64;
        history.write_end.store(end, Ordering::Relaxed);
        // Pairs with the fence in `copy`: a reader that sees a sample below also sees the store
        // above.
        fence(Ordering::Release);
        // Only the end of a push that exceeds the capacity is kept.
        let kept = &samples[samples.len().saturating_sub(history.samples.len())..];
        let (tail, head) = history.ring_slices(end - kept.len() as u64, kept.len());
        let (first, second) = kept.split_at(tail.len());
        for (stored, samples) in [(tail, first), (head, second)] {
            stored
                .iter()
                .zip(samples)
                .for_each(|(stored, sample)| stored.store(sample.to_bits(), Ordering::Relaxed));
        }
        // Release: a reader that sees this end sees the samples before it.
        history.end.store(end, Ordering::Release);
        self.end = end;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns samples that identify their positions; small integers are exact in f32.
    fn samples(from: u64, count: usize) -> Vec<f32> {
        (from..)
            .take(count)
            .map(|position| (position % 1_000_003) as f32)
            .collect()
    }

    #[test]
    fn only_one_writer_is_handed_out() {
        let history = Arc::new(InputHistory::new(10));
        assert_eq!(history.capacity(), 16);
        assert!(history.writer().is_some());
        assert!(history.writer().is_none());
    }

    proptest! {
        #[test]
        fn exactly_the_last_samples_are_readable(
            pushes in prop::collection::vec(0usize..100, 0..20), from in 0u64..1_000, count in 0usize..80,
        ) {
            let history = Arc::new(InputHistory::new(64));
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
    fn distant_positions_are_refused() {
        let history = Arc::new(InputHistory::new(4));
        history.writer().unwrap().push(&[1.0; 6]);
        assert!(!history.read(u64::MAX, &mut [0.0; 2]));
        assert!(!history.read(1 << 40, &mut [0.0; 2]));
        assert!(!history.read(1, &mut [0.0; 2]));
        assert!(history.read(2, &mut [0.0; 4]));
    }

    #[test]
    fn readers_never_get_samples_of_another_position() {
        let history = Arc::new(InputHistory::new(256));
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
            readers
                .into_iter()
                .map(|reader| reader.join().unwrap())
                .collect()
        });
        assert!(reads.iter().all(|&complete| complete > 0));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Tries every interleaving, and every old value that the memory model allows.
    #[test]
    fn a_complete_read_is_never_torn() {
        loom::model(|| {
            let history = Arc::new(InputHistory::new(2));
            let mut writer = history.writer().unwrap();
            writer.push(&[1.0, 2.0]);
            let pushes = loom::thread::spawn(move || {
                writer.push(&[3.0]);
                writer.push(&[4.0, 5.0]);
            });
            for from in [0, 1] {
                let mut out = [f32::NAN; 2];
                let expected = if history.read(from, &mut out) {
                    [from as f32 + 1.0, from as f32 + 2.0]
                } else {
                    [0.0; 2]
                };
                assert_eq!(out, expected);
            }
            pushes.join().unwrap();
            let mut out = [f32::NAN; 2];
            assert!(history.read(3, &mut out));
            assert_eq!(out, [4.0, 5.0]);
        });
    }
}
