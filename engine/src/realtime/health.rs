//! Health of a session: counters that any thread may read.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use super::histogram::{Histogram, Percentiles};
use crate::pipeline::InputAnalysis;
use crate::sync::lock;

/// Thread on which a model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// The host's audio callback.
    Inline,
    /// The worker.
    Worker,
    /// The worker for models that cannot keep up with real time, where they delay only each other.
    SlowWorker,
    /// The caller's thread, without a deadline.
    Offline,
}

/// Counters of the model that a session plays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// Thread on which the model runs.
    pub driven: Driven,
    /// Delay from a command or an input sample to its effect at the output, in host samples.
    pub latency_samples: usize,
    /// The same delay in ms.
    pub latency_ms: f64,
    /// Recent share of one core's time that the model takes; above 1 it cannot keep up.
    pub load: f32,
    /// Blocks that were late.
    pub dropouts: u64,
    /// Blocks with non-finite samples; they were replaced by silence, and the model was reset.
    pub invalid_blocks: u64,
    /// The samples of these blocks; `None` without any.
    pub invalid_output: Option<InvalidOutput>,
    /// Commands that were dropped because a queue was full.
    pub commands_lost: u64,
    /// Host samples that the worker has not returned yet.
    pub queued_samples: u64,
    /// Time of single steps of the model.
    pub inference_time: Percentiles,
}

/// Output that was replaced by silence because the model computed NaN or infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidOutput {
    /// Number of the first sample, counted from the start of the session.
    pub first_sample: u64,
    /// Number of samples in all.
    pub samples: u64,
}

/// Counters of one instance; wait-free, except for the texts.
#[derive(Debug, Default)]
pub(super) struct InstanceMetrics {
    pub inference_time: Histogram,
    /// The model has failed because the process of its program was lost.
    pub is_program_lost: AtomicBool,
    load: AtomicU32,
    dropouts: AtomicU64,
    invalid_blocks: AtomicU64,
    invalid_samples: AtomicU64,
    /// Number of the first invalid sample, valid if there are any.
    first_invalid: AtomicU64,
    queued: AtomicU64,
    is_on_slow_worker: AtomicBool,
    input_analysis: LastAnalysis,
    /// Reason of a panic, set by the thread that steps the model, and a warning, which the audio
    /// thread never sets.
    failure: OnceLock<String>,
    warning: Mutex<Option<String>>,
    /// Bits of the latents; their number never changes.
    latents: Box<[AtomicU32]>,
}

/// Weight of a new step in the load: about the last 30 steps count.
const LOAD_SMOOTHING: f32 = 0.03;

impl InstanceMetrics {
    /// Creates counters for a model with `latents` latents.
    pub fn new(latents: usize) -> Self {
        Self {
            latents: (0..latents).map(|_| AtomicU32::new(0)).collect(),
            ..Self::default()
        }
    }

    /// Records the time of a step that made `sound`. Only the thread that steps the model calls
    /// this.
    pub fn record_step(&self, elapsed: Duration, sound: Duration) {
        self.inference_time.record(elapsed);
        let now = elapsed.as_secs_f32() / sound.as_secs_f32().max(1e-9);
        let before = self.load();
        self.load.store(
            (before + LOAD_SMOOTHING * (now - before)).to_bits(),
            Relaxed,
        );
    }

    pub fn load(&self) -> f32 {
        f32::from_bits(self.load.load(Relaxed))
    }

    pub fn count_dropout(&self) {
        self.dropouts.fetch_add(1, Relaxed);
    }

    pub fn dropouts(&self) -> u64 {
        self.dropouts.load(Relaxed)
    }

    /// Counts an invalid block of `samples` samples, the first of which has the number `at`.
    pub fn count_invalid_block(&self, at: u64, samples: usize) {
        if self.invalid_blocks.fetch_add(1, Relaxed) == 0 {
            self.first_invalid.store(at, Relaxed);
        }
        // Released after the number of the first one.
        self.invalid_samples.fetch_add(samples as u64, Release);
    }

    pub fn invalid_blocks(&self) -> u64 {
        self.invalid_blocks.load(Relaxed)
    }

    pub fn invalid_output(&self) -> Option<InvalidOutput> {
        let samples = self.invalid_samples.load(Acquire);
        (samples > 0).then(|| InvalidOutput {
            first_sample: self.first_invalid.load(Relaxed),
            samples,
        })
    }

    pub fn set_queued(&self, samples: u64) {
        self.queued.store(samples, Relaxed);
    }

    pub fn queued(&self) -> u64 {
        self.queued.load(Relaxed)
    }

    pub fn set_input_analysis(&self, analysis: Option<InputAnalysis>) {
        self.input_analysis.set(analysis);
    }

    pub fn input_analysis(&self) -> Option<InputAnalysis> {
        self.input_analysis.get()
    }

    pub fn has_latents(&self) -> bool {
        !self.latents.is_empty()
    }

    /// Stores the latents; ignores those beyond the number given to [`InstanceMetrics::new`].
    pub fn set_latents(&self, latents: &[f32]) {
        self.latents
            .iter()
            .zip(latents)
            .for_each(|(stored, latent)| stored.store(latent.to_bits(), Relaxed));
    }

    pub fn latents(&self) -> impl Iterator<Item = f32> {
        self.latents
            .iter()
            .map(|stored| f32::from_bits(stored.load(Relaxed)))
    }

    /// Stores the reason of a panic; the first one counts.
    pub fn set_failure(&self, reason: String) {
        // Fails if there is a reason already, from which this one follows.
        let _ = self.failure.set(reason);
    }

    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    pub fn set_warning(&self, warning: &str) {
        *lock(&self.warning) = Some(warning.to_owned());
    }

    pub fn warning(&self) -> Option<String> {
        lock(&self.warning).clone()
    }

    pub fn set_on_slow_worker(&self) {
        self.is_on_slow_worker.store(true, Relaxed);
    }

    pub fn is_on_slow_worker(&self) -> bool {
        self.is_on_slow_worker.load(Relaxed)
    }
}

/// The last [`InputAnalysis`] in one word, so that pitch and loudness belong to the same instant:
/// the bits of the pitch above those of the loudness, and NaN for `None`.
#[derive(Debug)]
struct LastAnalysis(AtomicU64);

impl Default for LastAnalysis {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }
}

impl LastAnalysis {
    /// Two NaNs.
    const NONE: u64 = u64::MAX;

    fn set(&self, analysis: Option<InputAnalysis>) {
        let word = analysis.map_or(Self::NONE, |InputAnalysis { pitch, loudness_db }| {
            u64::from(pitch.unwrap_or(f32::NAN).to_bits()) << 32 | u64::from(loudness_db.to_bits())
        });
        self.0.store(word, Relaxed);
    }

    fn get(&self) -> Option<InputAnalysis> {
        let word = self.0.load(Relaxed);
        let (pitch, loudness_db) = (
            f32::from_bits((word >> 32) as u32),
            f32::from_bits(word as u32),
        );
        (!loudness_db.is_nan()).then(|| InputAnalysis {
            pitch: (!pitch.is_nan()).then_some(pitch),
            loudness_db,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analysis_is_read_as_stored() {
        let last = LastAnalysis::default();
        assert_eq!(last.get(), None);
        for pitch in [Some(69.0), Some(0.0), None] {
            for loudness_db in [-100.0, -0.0, 0.0, -31.5] {
                let analysis = Some(InputAnalysis { pitch, loudness_db });
                last.set(analysis);
                assert_eq!(last.get(), analysis);
            }
        }
        last.set(None);
        assert_eq!(last.get(), None);
    }

    #[test]
    fn the_number_of_latents_is_fixed() {
        let metrics = InstanceMetrics::new(3);
        assert_eq!(metrics.latents().collect::<Vec<_>>(), [0.0; 3]);
        metrics.set_latents(&[1.0, -2.5, 3.0]);
        assert_eq!(metrics.latents().collect::<Vec<_>>(), [1.0, -2.5, 3.0]);
        metrics.set_latents(&[7.0]);
        assert_eq!(metrics.latents().collect::<Vec<_>>(), [7.0, -2.5, 3.0]);
        assert_eq!(InstanceMetrics::default().latents().count(), 0);
    }
}
