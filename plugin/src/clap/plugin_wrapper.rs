//! The instance that a host holds: the framework's plugin with the functions that the framework
//! lacks.
//!
//! The host gets our own `clap_plugin`. It is a copy of the framework's with the same
//! `plugin_data`, so all of the framework's functions and extensions accept our pointer; only the
//! functions in [`callbacks`](super::callbacks) differ.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use clap_sys::ext::params::CLAP_PARAM_RESCAN_VALUES;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_CONTINUE, CLAP_PROCESS_SLEEP, clap_process_status};
use nice_plug::plugin::PluginState;
use ondes_player::instance::InstanceHandle;

use super::block_buffers::BlockBuffers;
use super::block_events::BlockEvents;
use super::c_interface::Pointee;
use super::c_text::c_string;
use super::deferred_rescan::DeferredRescan;
use super::framework::Framework;
use super::host::Host;
use super::host_notices::HostNotices;
use super::main_thread_timer::MainThreadTimer;
use super::parameter_list::ParameterList;
use super::port_layout::AudioPorts;
use super::waiting_changes::{HostRequest, WaitingChanges};
use crate::parameters::HostParameters;
use crate::preset::state;

/// One instance, as its host holds it.
#[repr(C)]
pub(crate) struct PluginWrapper {
    /// The plugin that the host sees. Must be the first field: its address is the wrapper's.
    pub(super) plugin: clap_plugin,
    /// The framework's plugin.
    pub(super) framework: Framework,
    /// Set for hosts that deadlock on a parameter rescan during a state load.
    pub(crate) deferred_rescan: Option<DeferredRescan>,
    /// The host; outlives this.
    pub(crate) host: Host,
    /// Shared by window, saved state and player.
    pub(crate) instance: Arc<InstanceHandle>,
    /// Shared by window, saved state and player.
    pub(crate) values: Arc<HostParameters>,
    /// The parameters as the host counts them.
    pub(super) parameters: ParameterList,
    /// Values that the host was last notified of.
    pub(super) notices: HostNotices,
    /// Changes by the window that the host has not taken.
    pub(super) waiting_changes: WaitingChanges,
    /// The host has activated the plugin.
    pub(super) is_active: AtomicBool,
    /// Calls the main thread.
    pub(super) timer: MainThreadTimer,
    /// Channels of the audio ports.
    pub(super) audio_ports: AudioPorts,
    /// The audio thread's buffers while the plugin is active. That thread only tries the lock: a
    /// host that deactivates during a block gets an error.
    pub(super) block: Mutex<Option<Block>>,
}

// SAFETY: the plugin is the first field; only the plugins of wrappers have the functions that
// expect one.
unsafe impl Pointee for PluginWrapper {
    type C = clap_plugin;
}

/// Audio and events of a piece of a block.
pub(super) struct Block {
    pub(super) buffers: BlockBuffers,
    pub(super) events: BlockEvents,
}

impl PluginWrapper {
    /// Returns whether the host has activated the plugin.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Relaxed)
    }

    /// Restores a state and lets the host read its values. On the main thread.
    pub(crate) fn restore(&self, state: &PluginState) {
        state::restore(state, &self.values, &self.instance);
        self.rescan_values();
    }

    /// Asks the host to take the changes by the window. On the main thread.
    pub(super) fn report_window_changes(&self) {
        match self.waiting_changes.request(&self.values, self.is_active()) {
            Some(HostRequest::Flush) => self.host.request_flush(),
            Some(HostRequest::Rescan) => self.rescan_values(),
            None => {}
        }
    }

    /// Lets the host read all values again. On the main thread.
    pub(crate) fn rescan_values(&self) {
        match &self.deferred_rescan {
            Some(deferred) => deferred.rescan_values(self.host),
            None => self.host.rescan_parameters(CLAP_PARAM_RESCAN_VALUES),
        }
    }

    /// Tells the host what a loaded state changes. On the main thread.
    pub(crate) fn notify_after_load(&self) {
        self.notices.notify_names(&self.instance, self.host);
        self.log_untrusted();
    }

    /// Reports a program that may not run to the host's log, as the window may be closed. On the
    /// main thread.
    pub(crate) fn log_untrusted(&self) {
        if let Some(program) = self.instance.untrusted_program() {
            let text = format!("{program}; open the window to decide");
            self.host.log_warning(&c_string(&text));
        }
    }

    /// Finishes a processed block: requests the main-thread callback if work is due, and returns
    /// the status for the host, which is "sleep" instead of "continue" for an instance that is
    /// silent until the next input.
    pub(super) fn finish_block(&self, status: clap_process_status) -> clap_process_status {
        if self.instance.audio.needs_main_thread() || self.notices.is_due(&self.instance) {
            self.host.request_callback();
        }
        if status == CLAP_PROCESS_CONTINUE && self.instance.sleep_state.is_silent() {
            CLAP_PROCESS_SLEEP
        } else {
            status
        }
    }
}
