//! The instance that a host holds: the framework's plugin with the functions that the framework
//! lacks.
//!
//! The host gets our own `clap_plugin`. It is a copy of the framework's with the same
//! `plugin_data`, so all of the framework's functions and extensions accept our pointer; only the
//! functions in [`callbacks`](super::callbacks) differ.

use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex, mpsc};

use clap_sys::ext::params::{CLAP_EXT_PARAMS, clap_plugin_params};
use clap_sys::ext::state::{CLAP_EXT_STATE, clap_plugin_state};
use clap_sys::host::clap_host;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_CONTINUE, CLAP_PROCESS_SLEEP, clap_process_status};
use ondes_player::instance::InstanceHandle;

use super::audio_ports::AudioPorts;
use super::block_buffers::BlockBuffers;
use super::block_events::BlockEvents;
use super::deferred_rescan::DeferredRescan;
use super::host_notices::HostNotices;
use super::inactive_changes::InactiveChanges;
use super::main_thread_timer::MainThreadTimer;
use super::midi_learn_events::MidiLearnEvents;
use super::parameter_list::ParameterList;

/// Background task that sends an instance's [`InstanceHandle`] to the given channel.
///
/// The framework gives no access to the plugin objects that it creates, but it runs background
/// tasks of their own type; this is the only one.
pub struct RequestInstance(pub(super) mpsc::Sender<Arc<InstanceHandle>>);

impl RequestInstance {
    /// Returns the task executor of that instance.
    #[must_use]
    pub fn executor(instance: &Arc<InstanceHandle>) -> Box<dyn Fn(Self) + Send> {
        let instance = instance.clone();
        // The receiver may be gone.
        Box::new(move |Self(sender)| drop(sender.send(instance.clone())))
    }
}

/// One instance, as its host holds it.
#[repr(C)]
pub struct PluginWrapper {
    /// The plugin that the host sees. Must be the first field: its address is the wrapper's.
    pub(super) plugin: clap_plugin,
    /// The framework's plugin.
    pub(super) inner: clap_plugin,
    /// The host; outlives this.
    pub(crate) host: *const clap_host,
    /// Shared by window, saved state and player.
    pub(crate) instance: Arc<InstanceHandle>,
    /// The parameters as the host counts them.
    pub(super) parameters: ParameterList,
    /// The host reads the names of parameters again, so that macros are named after their controls.
    pub(super) names_follow: bool,
    /// Values that the host was last notified of. Used by the main thread only.
    pub(super) notices: HostNotices,
    /// Applies changes by the window while the plugin is inactive.
    pub(super) inactive_changes: InactiveChanges,
    /// Used by the main thread only.
    pub(super) timer: MainThreadTimer,
    /// Channels of the audio ports. Used by the main thread only.
    pub(super) audio_ports: AudioPorts,
    /// The audio thread's buffers while the plugin is active. That thread only tries the lock: a
    /// host that deactivates during a block gets an error.
    pub(super) block: Mutex<Option<Block>>,
    /// Used by the audio thread only.
    pub(super) learn_events: UnsafeCell<MidiLearnEvents>,
    /// Set for hosts that deadlock on a parameter rescan during a state load. The framework holds
    /// it as its host.
    pub(crate) deferred_rescan: Option<Box<DeferredRescan>>,
}

/// Audio and events of a piece of a block.
pub struct Block {
    pub(super) buffers: BlockBuffers,
    pub(super) events: BlockEvents,
}

impl PluginWrapper {
    /// Returns the wrapper behind a host's pointer; `None` for null.
    ///
    /// # Safety
    /// The pointer is null, or comes from [`create`](super::callbacks::create) and is not destroyed
    /// yet.
    pub(crate) unsafe fn of<'a>(plugin: *const clap_plugin) -> Option<&'a Self> {
        // SAFETY: guaranteed by the caller; the host's plugin is the first field of a wrapper.
        unsafe { plugin.cast::<Self>().as_ref() }
    }

    /// Returns the framework's state extension.
    pub(crate) fn state_extension(&self) -> Option<&clap_plugin_state> {
        // SAFETY: the framework's plugin is alive; for this id it returns that type, or null.
        unsafe {
            self.inner.get_extension?(&raw const self.inner, CLAP_EXT_STATE.as_ptr())
                .cast::<clap_plugin_state>()
                .as_ref()
        }
    }

    /// Finishes a processed block: requests the main-thread callback if work is due, and returns
    /// the status for the host, which is "sleep" instead of "continue" for an instance that is
    /// silent until the next input.
    pub(super) fn finish_block(&self, status: clap_process_status) -> clap_process_status {
        if self.instance.needs_main_thread() || self.notices.is_due(&self.instance) {
            // SAFETY: the host outlives the instance, and CLAP allows this call on any thread.
            if let Some(request) = unsafe { (*self.host).request_callback } {
                // SAFETY: as above.
                unsafe { request(self.host) };
            }
        }
        if status == CLAP_PROCESS_CONTINUE && self.instance.sleep_state.is_silent() {
            CLAP_PROCESS_SLEEP
        } else {
            status
        }
    }
}

/// Returns the framework's parameter extension.
///
/// # Safety
/// The plugin is one of the framework's.
pub(super) unsafe fn framework_params(plugin: &clap_plugin) -> Option<&clap_plugin_params> {
    // SAFETY: the framework knows its extensions from the beginning; for this id it returns that
    // type, or null.
    unsafe {
        plugin.get_extension?(plugin, CLAP_EXT_PARAMS.as_ptr())
            .cast::<clap_plugin_params>()
            .as_ref()
    }
}
