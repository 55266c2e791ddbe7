//! Calls the main thread by a timer, for hosts that ignore `request_callback`.
//!
//! Qtractor 0.9.31 does: without the timer it would not hear of a changed project, and a size or
//! quality that it automates would not be loaded.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::from_ref;

use clap_sys::ext::timer_support::{
    CLAP_EXT_TIMER_SUPPORT, clap_host_timer_support, clap_plugin_timer_support,
};
use clap_sys::id::{CLAP_INVALID_ID, clap_id};
use clap_sys::plugin::clap_plugin;

use super::plugin_wrapper::PluginWrapper;

/// Milliseconds between two calls.
const PERIOD: u32 = 100;

static TIMER_SUPPORT: clap_plugin_timer_support = clap_plugin_timer_support {
    on_timer: Some(on_timer),
};

/// Returns the extension for timers.
#[must_use]
pub fn extension() -> *const c_void {
    from_ref(&TIMER_SUPPORT).cast()
}

/// The host's timer of one instance, if it has one. For the main thread.
#[derive(Default)]
pub struct MainThreadTimer(Cell<Option<clap_id>>);

impl PluginWrapper {
    /// Starts the timer if the host has timers. On the main thread, in the host's `init`.
    pub(super) fn start_timer(&self) {
        let mut id = CLAP_INVALID_ID;
        // SAFETY: for this id a host returns that type, or null; it outlives this, and there is
        // room for an id.
        let started = unsafe {
            let timers = self.host_extension::<clap_host_timer_support>(CLAP_EXT_TIMER_SUPPORT);
            timers
                .and_then(|timers| timers.register_timer)
                .is_some_and(|start| start(self.host, PERIOD, &raw mut id))
        };
        self.timer.0.set(started.then_some(id));
    }

    /// Stops the timer. On the main thread.
    pub(super) fn stop_timer(&self) {
        let Some(id) = self.timer.0.take() else {
            return;
        };
        // SAFETY: as above.
        unsafe {
            let timers = self.host_extension::<clap_host_timer_support>(CLAP_EXT_TIMER_SUPPORT);
            if let Some(stop) = timers.and_then(|timers| timers.unregister_timer) {
                stop(self.host, id);
            }
        }
    }
}

unsafe extern "C" fn on_timer(plugin: *const clap_plugin, _: clap_id) {
    // SAFETY: the host passes the pointer that `create` returned, on its main thread.
    unsafe {
        if let Some(on_main_thread) =
            PluginWrapper::of(plugin).and_then(|wrapper| wrapper.plugin.on_main_thread)
        {
            on_main_thread(plugin);
        }
    }
}
