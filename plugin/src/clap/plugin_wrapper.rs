//! The instance that a host holds: the framework's plugin with the functions that the framework
//! lacks.
//!
//! The host gets our own `clap_plugin`. It is a copy of the framework's with the same
//! `plugin_data`, so all of the framework's functions and extensions accept our pointer; only the
//! functions in [`callbacks`](super::callbacks) differ.

use std::sync::{Arc, Mutex};

use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_CONTINUE, CLAP_PROCESS_SLEEP, clap_process_status};
use ondes_player::instance::InstanceHandle;

use super::block_buffers::BlockBuffers;
use super::block_events::BlockEvents;
use super::c_interface::Pointee;
use super::c_text::c_string;
use super::deferred_rescan::DeferredRescan;
use super::framework::Framework;
use super::host::Host;
use super::host_notices::HostNotices;
use super::inactive_changes::InactiveChanges;
use super::main_thread_timer::MainThreadTimer;
use super::parameter_list::ParameterList;
use super::port_layout::AudioPorts;

/// One instance, as its host holds it.
#[repr(C)]
pub(crate) struct PluginWrapper {
    /// The plugin that the host sees. Must be the first field: its address is the wrapper's.
    pub(super) plugin: clap_plugin,
    /// The framework's plugin. Before [`deferred_rescan`](Self::deferred_rescan): fields are
    /// dropped in their order, and the framework holds that as its host.
    pub(crate) framework: Framework,
    /// Set for hosts that deadlock on a parameter rescan during a state load.
    pub(crate) deferred_rescan: Option<Box<DeferredRescan>>,
    /// The host; outlives this.
    pub(crate) host: Host,
    /// Shared by window, saved state and player.
    pub(crate) instance: Arc<InstanceHandle>,
    /// The parameters as the host counts them.
    pub(super) parameters: ParameterList,
    /// Values that the host was last notified of.
    pub(super) notices: HostNotices,
    /// Applies changes by the window while the plugin is inactive.
    pub(super) inactive_changes: InactiveChanges,
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
    /// Returns what converts values between host and framework.
    pub(super) fn values(&self) -> (&ParameterList, &InstanceHandle) {
        (&self.parameters, &self.instance)
    }

    /// Applies changes by the window that the framework has queued, if the plugin is inactive. On
    /// the main thread.
    pub(crate) fn apply_inactive_changes(&self) {
        self.inactive_changes.apply(&self.framework, self.values());
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
