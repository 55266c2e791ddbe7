//! How a picture is asked for from outside the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Asks the open window for a new picture. Wait-free, and without a system call: the window looks for it by itself.
#[derive(Clone, Default)]
pub struct Wake(Arc<AtomicBool>);

impl Wake {
    /// Asks for a new picture.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether somebody has asked since this was called last.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}
