//! The framework's plugin behind an instance.
//!
//! Functions of the framework's type are used as they are. The rest are C functions in its
//! `clap_plugin`, which use only `plugin_data` of the plugin that is passed.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::ptr::null;
use std::sync::{Arc, mpsc};

use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_ERROR, clap_process, clap_process_status};
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::Wrapper;
use ondes_player::instance::InstanceHandle;

use super::c_interface::{FromHost, Functions, call};
use super::host::{Extension, Host, find_extension};
use crate::parameters::HostParameters;
use crate::plugin_core::PluginCore;

/// Background task that sends what an instance shares to the given channel.
///
/// The framework gives no access to the plugin objects that it creates, but it runs background
/// tasks of their own type; this is the only one.
pub struct RequestInstance(mpsc::Sender<Shared>);

/// Handle and parameters of an instance, which its wrapper shares.
type Shared = (Arc<InstanceHandle>, Arc<HostParameters>);

impl RequestInstance {
    /// Returns the task executor of that instance.
    #[must_use]
    pub fn executor(core: &PluginCore) -> Box<dyn Fn(Self) + Send> {
        let shared = (core.instance.clone(), core.parameters.clone());
        // The receiver may be gone.
        Box::new(move |Self(sender)| drop(sender.send(shared.clone())))
    }
}

/// The framework's plugin.
pub(crate) struct Framework {
    /// Keeps the plugin alive.
    _wrapper: Arc<dyn Any>,
    /// Its C functions.
    plugin: clap_plugin,
}

impl Framework {
    /// Creates a plugin and returns it with what it shares; `None` if the framework does not
    /// answer. The host must outlive it.
    pub(super) fn new<P: ClapPlugin<BackgroundTask = RequestInstance>>(
        host: Host,
    ) -> Option<(Self, Shared)> {
        // SAFETY: the host outlives the plugin.
        let wrapper = unsafe { Wrapper::<P>::new(host.as_ptr()) };
        let (sender, receiver) = mpsc::channel();
        (wrapper.task_executor.lock())(RequestInstance(sender));
        let shared = receiver.try_recv().ok()?;
        let plugin = *wrapper.clap_plugin.borrow();
        let framework = Self {
            _wrapper: wrapper,
            plugin,
        };
        Some((framework, shared))
    }

    /// Returns the plugin's structure, for one with other functions.
    pub(super) fn to_raw(&self) -> clap_plugin {
        self.plugin
    }

    fn functions(&self) -> Functions<'_, clap_plugin> {
        // SAFETY: not null; the framework's functions stay valid as long as its plugin.
        unsafe { Functions::from_host(&raw const self.plugin) }.expect("not null")
    }

    /// Initialises the plugin; returns false on failure.
    pub(super) fn init(&self) -> bool {
        call!(self.functions(), init(&raw const self.plugin)).unwrap_or(false)
    }

    /// Prepares for blocks of at most `max_frames` samples; returns false on failure.
    pub(super) fn activate(&self, sample_rate: f64, min_frames: u32, max_frames: u32) -> bool {
        let plugin = &raw const self.plugin;
        call!(
            self.functions(),
            activate(plugin, sample_rate, min_frames, max_frames)
        )
        .unwrap_or(false)
    }

    /// Ends [`activate`](Self::activate).
    pub(super) fn deactivate(&self) {
        call!(self.functions(), deactivate(&raw const self.plugin));
    }

    /// Silences the plugin.
    pub(super) fn reset(&self) {
        call!(self.functions(), reset(&raw const self.plugin));
    }

    /// Carries out what is due on the main thread.
    pub(super) fn on_main_thread(&self) {
        call!(self.functions(), on_main_thread(&raw const self.plugin));
    }

    /// Processes a block.
    ///
    /// # Safety
    /// Audio and lists are valid, and have the announced ports and channels; the lists and the
    /// transport may be null.
    pub(super) unsafe fn process(&self, block: &clap_process) -> clap_process_status {
        // SAFETY: guaranteed by the caller.
        self.plugin
            .process
            .map_or(CLAP_PROCESS_ERROR, |process| unsafe {
                process(&raw const self.plugin, block)
            })
    }

    /// Returns an extension of that id; null if the framework has none.
    pub(super) fn get_extension(&self, id: &CStr) -> *const c_void {
        call!(self.functions(), get_extension(&raw const self.plugin, id)).unwrap_or(null())
    }

    /// Returns an extension, and the plugin that its functions take.
    pub(super) fn extension<E: Extension>(&self) -> Option<(Functions<'_, E>, *const clap_plugin)> {
        Some((
            find_extension(|id| self.get_extension(id))?,
            &raw const self.plugin,
        ))
    }
}
