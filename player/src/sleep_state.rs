//! Silence and tail length, shared by the player, the host and the window.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use ondes_engine::sync::lock;

/// Asks the host to resume processing.
type Wake = Box<dyn Fn() + Send>;

/// Silence and remaining tail of an instance. A host may suspend a silent instance until the next
/// event or input.
#[derive(Default)]
pub struct SleepState {
    tail_samples: AtomicU32,
    silent: AtomicBool,
    wake_host: Mutex<Option<Wake>>,
}

impl SleepState {
    /// For the audio thread: sets the remaining tail in host samples, and whether the instance is
    /// silent.
    pub fn set(&self, tail_samples: u32, silent: bool) {
        self.tail_samples.store(tail_samples, Relaxed);
        self.silent.store(silent, Relaxed);
    }

    /// Returns the length of the tail after all notes and input have ended, in host samples,
    /// latency included.
    #[must_use]
    pub fn tail_samples(&self) -> u32 {
        self.tail_samples.load(Relaxed)
    }

    /// Returns whether nothing sounds, and nothing will until the next note or input.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent.load(Relaxed)
    }

    /// Sets the function that wakes the host, or removes it. Not for the audio thread.
    pub fn set_host_wake(&self, wake: Option<Wake>) {
        *self.host_wake() = wake;
    }

    /// Asks the host to resume processing, as it does not know of changes made in the window. Not
    /// for the audio thread.
    pub fn wake_host(&self) {
        if let Some(wake) = &*self.host_wake() {
            wake();
        }
    }

    fn host_wake(&self) -> MutexGuard<'_, Option<Wake>> {
        lock(&self.wake_host)
    }
}
