//! What a session's listeners may want to know: counted where it happens, read from anywhere.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::histogram::{Histogram, Percentiles};
use crate::pipeline::Followed;

/// How a model is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// In the host's callback.
    Inline,
    /// By the worker thread.
    Worker,
    /// By a thread for models that are too slow for the worker: there they hold up nobody else.
    Aside,
    /// In the caller's time.
    Offline,
}

/// How a session is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// Where the model runs.
    pub driven: Driven,
    /// From what is played to what is heard, host samples.
    pub latency_samples: usize,
    /// The same, ms.
    pub latency_ms: f64,
    /// Share of one core's time that the model takes, lately; above 1 it cannot keep up.
    pub load: f32,
    /// Blocks that were not there when they were needed.
    pub misses: u64,
    /// Blocks that held something else than numbers; they were not played, and the model began anew.
    pub faults: u64,
    /// Cues that were given faster than they could be taken in, and were left out.
    pub cues_lost: u64,
    /// Host samples that were given to the model and have not come back yet.
    pub queued_samples: u64,
    /// Time of single steps of the model.
    pub steps: Percentiles,
    /// What the latency was measured to be when the model was loaded, host samples; none where it cannot be measured.
    pub latency_measured: Option<usize>,
}

/// Where a lane's events are counted. Wait-free.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub steps: Histogram,
    load: AtomicU32,
    misses: AtomicU64,
    faults: AtomicU64,
    queued: AtomicU64,
    aside: AtomicBool,
    followed: LastFollowed,
    /// Why the model broke down, and what else there is to say of it. Never touched by the audio thread.
    reason: OnceLock<String>,
    notice: Mutex<Option<String>>,
    /// The bits of each; how many there are never changes.
    latents: Box<[AtomicU32]>,
}

/// Share of a new step in the load that is shown: about the last 30 steps count.
const LOAD_SHARE: f32 = 0.03;

impl Meter {
    /// Of a model with so many latents.
    pub fn new(latents: usize) -> Self {
        Self { latents: (0..latents).map(|_| AtomicU32::new(0)).collect(), ..Self::default() }
    }

    /// A step took so long, for sound of such a length.
    pub fn step(&self, taken: Duration, sound: Duration) {
        self.steps.record(taken);
        let now = taken.as_secs_f32() / sound.as_secs_f32().max(1e-9);
        let before = self.load();
        // Only the thread that steps the model writes here.
        self.load.store((before + LOAD_SHARE * (now - before)).to_bits(), Relaxed);
    }

    pub fn load(&self) -> f32 {
        f32::from_bits(self.load.load(Relaxed))
    }

    pub fn miss(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    pub fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }

    pub fn faults(&self) -> u64 {
        self.faults.load(Relaxed)
    }

    pub fn set_queued(&self, samples: u64) {
        self.queued.store(samples, Relaxed);
    }

    pub fn queued(&self) -> u64 {
        self.queued.load(Relaxed)
    }

    pub fn set_followed(&self, followed: Option<Followed>) {
        self.followed.set(followed);
    }

    pub fn followed(&self) -> Option<Followed> {
        self.followed.get()
    }

    /// Keeps as many as there were said to be.
    pub fn set_latents(&self, latents: &[f32]) {
        self.latents.iter().zip(latents).for_each(|(kept, latent)| kept.store(latent.to_bits(), Relaxed));
    }

    pub fn latents(&self) -> impl Iterator<Item = f32> {
        self.latents.iter().map(|kept| f32::from_bits(kept.load(Relaxed)))
    }

    /// The model broke down; the first reason counts.
    pub fn broke_down(&self, reason: &str) {
        // Set already: what follows from it is of no interest.
        let _ = self.reason.set(reason.to_owned());
    }

    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    pub fn set_notice(&self, notice: &str) {
        *self.notice.lock().unwrap_or_else(PoisonError::into_inner) = Some(notice.to_owned());
    }

    pub fn notice(&self) -> Option<String> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn put_aside(&self) {
        self.aside.store(true, Relaxed);
    }

    pub fn is_aside(&self) -> bool {
        self.aside.load(Relaxed)
    }
}

/// The last [`Followed`] in one word, so that pitch and loudness are always of one instant: the bits of pitch above those of
/// loudness, and NaN for what there is none of.
#[derive(Debug)]
struct LastFollowed(AtomicU64);

impl Default for LastFollowed {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NOTHING))
    }
}

impl LastFollowed {
    /// Two NaNs.
    const NOTHING: u64 = u64::MAX;

    fn set(&self, followed: Option<Followed>) {
        let word = followed.map_or(Self::NOTHING, |Followed { pitch, loudness_db }| {
            u64::from(pitch.unwrap_or(f32::NAN).to_bits()) << 32 | u64::from(loudness_db.to_bits())
        });
        self.0.store(word, Relaxed);
    }

    fn get(&self) -> Option<Followed> {
        let word = self.0.load(Relaxed);
        let (pitch, loudness_db) = (f32::from_bits((word >> 32) as u32), f32::from_bits(word as u32));
        (!loudness_db.is_nan()).then(|| Followed { pitch: (!pitch.is_nan()).then_some(pitch), loudness_db })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_followed_comes_back() {
        let last = LastFollowed::default();
        assert_eq!(last.get(), None);
        for pitch in [Some(69.0), Some(0.0), None] {
            for loudness_db in [-100.0, -0.0, 0.0, -31.5] {
                let followed = Some(Followed { pitch, loudness_db });
                last.set(followed);
                assert_eq!(last.get(), followed);
            }
        }
        last.set(None);
        assert_eq!(last.get(), None);
    }

    #[test]
    fn latents_come_back_as_many_as_there_are() {
        let meter = Meter::new(3);
        assert_eq!(meter.latents().collect::<Vec<_>>(), [0.0; 3]);
        meter.set_latents(&[1.0, -2.5, 3.0]);
        assert_eq!(meter.latents().collect::<Vec<_>>(), [1.0, -2.5, 3.0]);
        meter.set_latents(&[7.0]);
        assert_eq!(meter.latents().collect::<Vec<_>>(), [7.0, -2.5, 3.0]);
        assert_eq!(Meter::default().latents().count(), 0);
    }
}
