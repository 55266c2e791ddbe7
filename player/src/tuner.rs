//! Input for the tuner, before gate, tone and gain. The audio thread writes, the window reads;
//! lock-free.

use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Samples kept: 85 ms at 192 kHz, more than two frames of a window.
const HISTORY: usize = 1 << 14;

/// Latest samples of the input while a tuner is open, and whether it mutes the output.
pub struct TunerInput {
    open: AtomicBool,
    muted: AtomicBool,
    /// Samples recorded so far.
    recorded: AtomicUsize,
    /// Latest samples, averaged over the channels, as bits of `f32`.
    ring: Box<[AtomicU32]>,
}

impl Default for TunerInput {
    fn default() -> Self {
        let ring = (0..HISTORY).map(|_| AtomicU32::new(0)).collect();
        Self {
            open: AtomicBool::new(false),
            muted: AtomicBool::new(false),
            recorded: AtomicUsize::new(0),
            ring,
        }
    }
}

impl TunerInput {
    /// For the audio thread: records a block if a tuner is open. `[channel][frame]`, all of one
    /// length. Wait-free.
    pub fn record(&self, channels: &[&[f32]]) {
        if !self.open.load(Relaxed) {
            return;
        }
        let frames = channels.first().map_or(0, |channel| channel.len());
        let recorded = self.recorded.load(Relaxed);
        let share = 1.0 / channels.len().max(1) as f32;
        for frame in 0..frames {
            let sum: f32 = channels
                .iter()
                .filter_map(|channel| channel.get(frame))
                .sum();
            self.ring[recorded.wrapping_add(frame) % HISTORY]
                .store((share * sum).to_bits(), Relaxed);
        }
        self.recorded.store(recorded.wrapping_add(frames), Release);
    }

    /// For the audio thread: returns whether a tuner mutes the output. Wait-free.
    #[must_use]
    pub fn mutes_output(&self) -> bool {
        self.open.load(Relaxed) && self.muted.load(Relaxed)
    }

    /// Opens or closes the tuner; the output is heard again when it closes.
    pub fn set_open(&self, open: bool) {
        self.open.store(open, Relaxed);
    }

    /// Sets whether the output is muted while the tuner is open.
    pub fn set_muted(&self, muted: bool) {
        self.muted.store(muted, Relaxed);
    }

    /// Returns the number of samples recorded so far, which [`TunerInput::read`] starts from.
    #[must_use]
    pub fn recorded_samples(&self) -> usize {
        self.recorded.load(Acquire)
    }

    /// Reads the samples since `read`, which moves on, into `samples`. Returns false if some of
    /// them were overwritten: then the latest are read, and there is a gap before them.
    pub fn read(&self, read: &mut usize, samples: &mut Vec<f32>) -> bool {
        let recorded = self.recorded_samples();
        let new = recorded.wrapping_sub(*read);
        // The audio thread may write a block while this thread reads.
        let kept = new.min(HISTORY / 2);
        let start = recorded.wrapping_sub(kept);
        let sample =
            |n: usize| f32::from_bits(self.ring[start.wrapping_add(n) % HISTORY].load(Relaxed));
        samples.clear();
        samples.extend((0..kept).map(sample));
        *read = recorded;
        kept == new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_records_while_it_is_open_and_reads_each_sample_once() {
        let tuner = TunerInput::default();
        let (mut read, mut samples) = (tuner.recorded_samples(), Vec::new());
        tuner.record(&[&[0.5; 64]]);
        assert!(tuner.read(&mut read, &mut samples) && samples.is_empty());
        tuner.set_open(true);
        tuner.record(&[&[0.5; 64], &[-0.25; 64]]);
        tuner.record(&[&[1.0; 16]]);
        assert!(tuner.read(&mut read, &mut samples));
        assert_eq!((samples.len(), samples[63], samples[64]), (80, 0.125, 1.0));
        assert!(tuner.read(&mut read, &mut samples) && samples.is_empty());
        // A window that stood still misses some.
        tuner.record(&[&[0.25; HISTORY]]);
        assert!(!tuner.read(&mut read, &mut samples) && !samples.is_empty());
    }

    #[test]
    fn it_mutes_only_while_it_is_open() {
        let tuner = TunerInput::default();
        tuner.set_muted(true);
        assert!(!tuner.mutes_output());
        tuner.set_open(true);
        assert!(tuner.mutes_output());
        tuner.set_open(false);
        assert!(!tuner.mutes_output());
    }
}
