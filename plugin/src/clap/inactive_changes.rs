//! Applies the window's changes of parameters while the plugin is inactive.
//!
//! The framework queues them for the host's next `process` or `flush`. A host whose audio engine
//! does not run may call neither; knobs would not move then, and a save would miss them.

use std::ptr::{from_ref, null};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap_sys::events::{clap_event_header, clap_output_events};
use clap_sys::ext::params::{CLAP_EXT_PARAMS, CLAP_PARAM_RESCAN_VALUES, clap_host_params};

use super::plugin_wrapper::{PluginWrapper, framework_params};

/// Activation, and changes that the host has not heard of.
#[derive(Default)]
pub struct InactiveChanges {
    active: AtomicBool,
    unreported: AtomicBool,
}

impl InactiveChanges {
    /// Notes whether the host has activated the plugin.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Relaxed);
    }

    /// Returns whether the host has activated the plugin.
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }
}

impl PluginWrapper {
    /// Applies the queued changes if the plugin is inactive. On the main thread, on which CLAP
    /// allows that then.
    pub(crate) fn apply_inactive_changes(&self) {
        if self.inactive_changes.is_active() {
            return;
        }
        // SAFETY: the framework's plugin is alive.
        let Some(flush) =
            (unsafe { framework_params(&self.inner) }).and_then(|params| params.flush)
        else {
            return;
        };
        let changes = &self.inactive_changes;
        let output = clap_output_events {
            ctx: from_ref(&changes.unreported).cast_mut().cast(),
            try_push: Some(note),
        };
        // SAFETY: the framework uses only `plugin_data`, which is its own; the list lives longer
        // than this call.
        unsafe { flush(&raw const self.inner, null(), &raw const output) };
    }

    /// Lets the host read the values that were changed without it. On the main thread.
    pub(super) fn report_inactive_changes(&self) {
        let is_applied = self.instance.host_notifier.take_values_applied();
        if self.inactive_changes.unreported.swap(false, Relaxed) || is_applied {
            // SAFETY: for this id a host returns that type, or null; it outlives this.
            unsafe {
                let params = self.host_extension::<clap_host_params>(CLAP_EXT_PARAMS);
                if let Some(rescan) = params.and_then(|params| params.rescan) {
                    rescan(self.host, CLAP_PARAM_RESCAN_VALUES);
                }
            }
        }
    }
}

/// Accepts an event, and notes that there was one.
unsafe extern "C" fn note(list: *const clap_output_events, _: *const clap_event_header) -> bool {
    // SAFETY: only `apply_inactive_changes` makes such lists, around a flag that outlives them.
    unsafe { &*(*list).ctx.cast::<AtomicBool>() }.store(true, Relaxed);
    true
}
