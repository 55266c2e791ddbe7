//! Applies the window's changes of parameters while the plugin is inactive.
//!
//! The framework queues them for the host's next `process` or `flush`. A host whose audio engine
//! does not run may call neither; knobs would not move then, and a save would miss them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap_sys::ext::params::CLAP_PARAM_RESCAN_VALUES;
use ondes_player::instance::InstanceHandle;

use super::framework::Framework;
use super::framework_events::FrameworkEvents;
use super::host::Host;
use super::parameter_list::ParameterList;

/// Activation, and changes that the host has not heard of.
#[derive(Default)]
pub(super) struct InactiveChanges {
    active: AtomicBool,
    unreported: AtomicBool,
}

impl InactiveChanges {
    /// Notes whether the host has activated the plugin.
    pub(super) fn set_active(&self, active: bool) {
        self.active.store(active, Relaxed);
    }

    /// Returns whether the host has activated the plugin.
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// Applies the queued changes if the plugin is inactive. On the main thread, on which CLAP
    /// allows that then.
    pub(super) fn apply(&self, framework: &Framework, values: (&ParameterList, &InstanceHandle)) {
        if !self.is_active() {
            let events = FrameworkEvents::for_input(values, &[]);
            framework.flush_output(&events);
            self.unreported.fetch_or(events.has_noted(), Relaxed);
        }
    }

    /// Lets the host read the values that were changed without it. On the main thread.
    pub(super) fn report(&self, instance: &InstanceHandle, host: Host) {
        let is_applied = instance.host_notifier.take_values_applied();
        if self.unreported.swap(false, Relaxed) || is_applied {
            host.rescan_parameters(CLAP_PARAM_RESCAN_VALUES);
        }
    }
}
