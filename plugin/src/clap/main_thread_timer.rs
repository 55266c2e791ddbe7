//! Calls the main thread by a timer, for hosts that ignore `request_callback`.
//!
//! Qtractor 0.9.31 does: without the timer it would not hear of a changed project, and a size or
//! quality that it automates would not be loaded.

use std::sync::Mutex;

use clap_sys::id::clap_id;
use ondes_engine::sync::lock;

use super::host::Host;

/// Milliseconds between two calls.
const PERIOD: u32 = 100;

/// The host's timer of one instance, if it has one.
#[derive(Default)]
pub(super) struct MainThreadTimer(Mutex<Option<clap_id>>);

impl MainThreadTimer {
    /// Starts the timer if the host has timers. On the main thread, in the host's `init`.
    pub(super) fn start(&self, host: Host) {
        *lock(&self.0) = host.start_timer(PERIOD);
    }

    /// Stops the timer. On the main thread.
    pub(super) fn stop(&self, host: Host) {
        // Not while it is locked: the host may call back.
        let id = lock(&self.0).take();
        if let Some(id) = id {
            host.stop_timer(id);
        }
    }
}
