//! When an instance may rest: what player, host and window agree on.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Asks a host to play again.
type Wake = Box<dyn Fn() + Send>;

/// What a host is told about silence. It may let an instance that rests sleep until the next event or sound comes in.
#[derive(Default)]
pub struct Rest {
    tail_samples: AtomicU32,
    resting: AtomicBool,
    host: Mutex<Option<Wake>>,
}

impl Rest {
    /// For the audio thread: how long the sound goes on by itself from now on, host samples, and whether there is none left.
    pub fn tell(&self, tail_samples: u32, resting: bool) {
        self.tail_samples.store(tail_samples, Relaxed);
        self.resting.store(resting, Relaxed);
    }

    /// Host samples that sound after all that drives the sound has ended, latency included.
    #[must_use]
    pub fn tail_samples(&self) -> u32 {
        self.tail_samples.load(Relaxed)
    }

    /// Whether nothing sounds any more, and nothing will before something comes in.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.resting.load(Relaxed)
    }

    /// Names what wakes the host, or nothing any more. Not for the audio thread.
    pub fn wake_by(&self, host: Option<Wake>) {
        *self.host() = host;
    }

    /// Asks the host to play again: what a window does is no event that it knows of. Not for the audio thread.
    pub fn wake(&self) {
        if let Some(wake) = &*self.host() {
            wake();
        }
    }

    fn host(&self) -> MutexGuard<'_, Option<Wake>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
