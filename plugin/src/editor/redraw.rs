//! Repaint requests from other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Flag that requests a repaint of the open window. Wait-free and without a system call: the window
/// polls it.
#[derive(Clone, Default)]
pub struct RedrawFlag(Arc<AtomicBool>);

impl RedrawFlag {
    /// Requests a repaint.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns true if a repaint was requested since the last call.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}
