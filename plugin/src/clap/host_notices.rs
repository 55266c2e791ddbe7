//! Tells the host what it cannot know: other names of macros, another number of voices, a changed
//! project.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clap_sys::ext::params::{CLAP_PARAM_RESCAN_INFO, CLAP_PARAM_RESCAN_TEXT};
use ondes_engine::sync::lock;
use ondes_player::instance::InstanceHandle;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::ParameterId;
use ondes_player::product::Product;

use super::host::Host;

/// Macro names and voice count that the host was last notified of.
pub(super) struct HostNotices {
    /// The host reads the names of parameters again, so that macros are named after their controls.
    pub(super) names_follow: bool,
    /// `[macro]`
    names: Mutex<Vec<Option<String>>>,
    voices: AtomicU32,
}

impl HostNotices {
    /// Creates notices for a host that has just created the instance.
    pub(super) fn new(instance: &InstanceHandle, names_follow: bool) -> Self {
        Self {
            names_follow,
            names: Mutex::new(macro_names(instance)),
            voices: instance.voice_count().into(),
        }
    }

    /// For the audio thread: returns whether a parameter has changed something that the host has to
    /// hear of.
    pub(super) fn is_due(&self, instance: &InstanceHandle) -> bool {
        instance.product == Product::Instrument
            && instance.voice_count() != self.voices.load(Relaxed)
    }

    /// Notifies the host of all changes since the last call. On the main thread, after the host's
    /// `init`.
    pub(super) fn notify(&self, instance: &InstanceHandle, host: Host) {
        self.notify_names(instance, host);
        let voices = instance.voice_count();
        if self.voices.swap(voices, Relaxed) != voices && instance.product == Product::Instrument {
            host.voice_info_changed();
        }
        if instance.host_notifier.take_state_changed() {
            host.mark_dirty();
        }
    }

    /// Lets the host read the names of the parameters again if macros are bound to other controls.
    /// On the main thread.
    pub(super) fn notify_names(&self, instance: &InstanceHandle, host: Host) {
        if !instance.host_notifier.take_names_changed() || !self.names_follow {
            return;
        }
        let names = macro_names(instance);
        if std::mem::replace(&mut *lock(&self.names), names.clone()) != names {
            host.rescan_parameters(CLAP_PARAM_RESCAN_INFO | CLAP_PARAM_RESCAN_TEXT);
        }
    }
}

fn macro_names(instance: &InstanceHandle) -> Vec<Option<String>> {
    (0..MACRO_COUNT)
        .map(|index| instance.parameter_label(ParameterId(index as u32)))
        .collect()
}
