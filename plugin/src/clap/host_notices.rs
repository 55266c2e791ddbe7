//! Tells the host what it cannot know: other names of macros, another number of voices, a changed
//! project.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clap_sys::ext::log::{CLAP_EXT_LOG, CLAP_LOG_WARNING, clap_host_log};
use clap_sys::ext::params::{
    CLAP_EXT_PARAMS, CLAP_PARAM_RESCAN_INFO, CLAP_PARAM_RESCAN_TEXT, clap_host_params,
};
use clap_sys::ext::state::{CLAP_EXT_STATE, clap_host_state};
use clap_sys::ext::voice_info::{CLAP_EXT_VOICE_INFO, clap_host_voice_info};
use ondes_player::instance::InstanceHandle;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::ParameterId;
use ondes_player::product::Product;

use super::plugin_wrapper::PluginWrapper;

/// Macro names and voice count that the host was last notified of.
pub struct HostNotices {
    /// `[macro]`
    names: RefCell<Vec<Option<String>>>,
    voices: AtomicU32,
}

impl HostNotices {
    /// Creates notices for a host that has just created the instance.
    #[must_use]
    pub fn new(instance: &InstanceHandle) -> Self {
        Self {
            names: RefCell::new(macro_names(instance)),
            voices: instance.voice_count().into(),
        }
    }

    /// For the audio thread: returns whether a parameter has changed something that the host has to
    /// hear of.
    #[must_use]
    pub fn is_due(&self, instance: &InstanceHandle) -> bool {
        instance.product == Product::Instrument
            && instance.voice_count() != self.voices.load(Relaxed)
    }
}

fn macro_names(instance: &InstanceHandle) -> Vec<Option<String>> {
    (0..MACRO_COUNT)
        .map(|index| instance.parameter_label(ParameterId(index as u32)))
        .collect()
}

impl PluginWrapper {
    /// Notifies the host of all changes since the last call. On the main thread, after the host's
    /// `init`.
    pub(crate) fn notify_host(&self) {
        self.notify_names();
        let voices = self.instance.voice_count();
        if self.notices.voices.swap(voices, Relaxed) != voices
            && self.instance.product == Product::Instrument
        {
            // SAFETY: for this id a host returns that type, or null; it outlives this.
            unsafe {
                if let Some(changed) = self
                    .host_extension::<clap_host_voice_info>(CLAP_EXT_VOICE_INFO)
                    .and_then(|host| host.changed)
                {
                    changed(self.host);
                }
            }
        }
        if self.instance.host_notifier.take_state_changed() {
            // SAFETY: as above.
            unsafe {
                if let Some(mark_dirty) = self
                    .host_extension::<clap_host_state>(CLAP_EXT_STATE)
                    .and_then(|host| host.mark_dirty)
                {
                    mark_dirty(self.host);
                }
            }
        }
    }

    /// Lets the host read the names of the parameters again if macros are bound to other controls.
    /// On the main thread.
    pub(crate) fn notify_names(&self) {
        if !self.instance.host_notifier.take_names_changed() || !self.names_follow {
            return;
        }
        let names = macro_names(&self.instance);
        if self.notices.names.replace(names.clone()) == names {
            return;
        }
        // SAFETY: as above.
        unsafe {
            if let Some(rescan) = self
                .host_extension::<clap_host_params>(CLAP_EXT_PARAMS)
                .and_then(|host| host.rescan)
            {
                rescan(self.host, CLAP_PARAM_RESCAN_INFO | CLAP_PARAM_RESCAN_TEXT);
            }
        }
    }

    /// Reports a program that may not run to the host's log, as the window may be closed. On the
    /// main thread.
    pub(crate) fn log_untrusted(&self) {
        let Some(program) = self.instance.untrusted_program() else {
            return;
        };
        let text = format!("{program}; open the window to decide").replace('\0', " ");
        let Ok(text) = CString::new(text) else { return };
        // SAFETY: for this id a host returns that type, or null; it outlives this, and copies the
        // text.
        unsafe {
            if let Some(log) = self
                .host_extension::<clap_host_log>(CLAP_EXT_LOG)
                .and_then(|host| host.log)
            {
                log(self.host, CLAP_LOG_WARNING, text.as_ptr());
            }
        }
    }

    /// Returns an extension of the host.
    ///
    /// # Safety
    /// The host has initialised the instance and is alive, and `Extension` is the type for the id.
    pub(super) unsafe fn host_extension<Extension>(&self, id: &CStr) -> Option<&Extension> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            (*self.host).get_extension?(self.host, id.as_ptr())
                .cast::<Extension>()
                .as_ref()
        }
    }
}
