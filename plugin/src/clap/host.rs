//! The host of an instance, and what it can be asked for and told.

use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null};

use clap_sys::ext::audio_ports::{CLAP_EXT_AUDIO_PORTS, clap_plugin_audio_ports};
use clap_sys::ext::audio_ports_config::{
    CLAP_EXT_AUDIO_PORTS_CONFIG, clap_plugin_audio_ports_config,
};
use clap_sys::ext::log::{CLAP_EXT_LOG, CLAP_LOG_WARNING, clap_host_log};
use clap_sys::ext::params::{CLAP_EXT_PARAMS, clap_host_params, clap_param_rescan_flags};
use clap_sys::ext::preset_load::{
    CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT, clap_host_preset_load,
};
use clap_sys::ext::state::{CLAP_EXT_STATE, clap_host_state};
use clap_sys::ext::timer_support::{CLAP_EXT_TIMER_SUPPORT, clap_host_timer_support};
use clap_sys::ext::voice_info::{CLAP_EXT_VOICE_INFO, clap_host_voice_info};
use clap_sys::factory::preset_discovery::clap_preset_discovery_location_kind;
use clap_sys::host::clap_host;
use clap_sys::id::{CLAP_INVALID_ID, clap_id};

use super::c_interface::{FromHost, Functions, call};

/// An extension of a host or a plugin.
///
/// # Safety
/// `Self` is the type that CLAP gives for these ids.
pub(crate) unsafe trait Extension: 'static {
    /// Its ids, the current one first.
    const IDS: &'static [&'static CStr];
}

macro_rules! extensions {
    ($($type:ty: $($id:ident),*;)*) => {
        $(
            // SAFETY: CLAP says so.
            unsafe impl Extension for $type {
                const IDS: &'static [&'static CStr] = &[$($id),*];
            }
        )*
    };
}

extensions! {
    clap_host_log: CLAP_EXT_LOG;
    clap_host_params: CLAP_EXT_PARAMS;
    clap_host_preset_load: CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT;
    clap_host_state: CLAP_EXT_STATE;
    clap_host_timer_support: CLAP_EXT_TIMER_SUPPORT;
    clap_host_voice_info: CLAP_EXT_VOICE_INFO;
    clap_plugin_audio_ports: CLAP_EXT_AUDIO_PORTS;
    clap_plugin_audio_ports_config: CLAP_EXT_AUDIO_PORTS_CONFIG;
}

/// Returns the extension with the first id that `get` knows.
pub(crate) fn find_extension<'a, E: Extension>(
    get: impl Fn(&CStr) -> *const c_void,
) -> Option<Functions<'a, E>> {
    // SAFETY: this is the type for that id; an extension lives as long as its host or plugin.
    E::IDS
        .iter()
        .find_map(|id| unsafe { Functions::from_host(get(id).cast()) })
}

/// The host of an instance, which it outlives. If not said otherwise, the functions are for the
/// main thread, after the host's `init`; what a host does not have is ignored.
#[derive(Clone, Copy)]
pub(crate) struct Host(NonNull<clap_host>);

// SAFETY: the pointer leads to constant data. The functions for other threads are named above.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl FromHost for Host {
    type Raw = *const clap_host;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        NonNull::new(raw.cast_mut()).map(Self)
    }
}

impl Host {
    /// Returns the pointer for C functions.
    pub(crate) fn as_ptr(self) -> *const clap_host {
        self.0.as_ptr()
    }

    fn functions<'a>(self) -> Functions<'a, clap_host> {
        // SAFETY: the host outlives the instance.
        unsafe { Functions::from_host(self.as_ptr()) }.expect("not null")
    }

    /// Returns the host's name; empty if it has none. On any thread.
    pub(crate) fn name(self) -> String {
        // SAFETY: a host's name is null or NUL-terminated.
        let name = unsafe { <&CStr>::from_host(self.functions().name) };
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns whether the host is the VST3 wrapper, by its name: that of the VST3 host with a
    /// suffix, or the wrapper's own.
    pub(crate) fn is_vst3(self) -> bool {
        self.name().to_ascii_lowercase().contains("clap-as-vst3")
    }

    /// Asks the host to call `process` again. On any thread.
    pub(crate) fn request_process(self) {
        call!(self.functions(), request_process(self.as_ptr()));
    }

    /// Asks the host to call `on_main_thread`. On any thread.
    pub(crate) fn request_callback(self) {
        call!(self.functions(), request_callback(self.as_ptr()));
    }

    /// Returns an extension of that id; null if the host has none.
    pub(crate) fn get_extension(self, id: &CStr) -> *const c_void {
        call!(self.functions(), get_extension(self.as_ptr(), id)).unwrap_or(null())
    }

    /// Returns an extension.
    pub(crate) fn extension<'a, E: Extension>(self) -> Option<Functions<'a, E>> {
        find_extension(|id| self.get_extension(id))
    }

    /// Lets the host read the parameters again.
    pub(crate) fn rescan_parameters(self, flags: clap_param_rescan_flags) {
        if let Some(params) = self.extension::<clap_host_params>() {
            call!(params, rescan(self.as_ptr(), flags));
        }
    }

    /// Asks the host to call `flush`, or `process`.
    pub(crate) fn request_flush(self) {
        if let Some(params) = self.extension::<clap_host_params>() {
            call!(params, request_flush(self.as_ptr()));
        }
    }

    /// Lets the host read the number of voices again.
    pub(crate) fn voice_info_changed(self) {
        if let Some(voice_info) = self.extension::<clap_host_voice_info>() {
            call!(voice_info, changed(self.as_ptr()));
        }
    }

    /// Marks the project as changed.
    pub(crate) fn mark_dirty(self) {
        if let Some(state) = self.extension::<clap_host_state>() {
            call!(state, mark_dirty(self.as_ptr()));
        }
    }

    /// Writes a warning to the host's log.
    pub(crate) fn log_warning(self, text: &CStr) {
        if let Some(log) = self.extension::<clap_host_log>() {
            call!(log, log(self.as_ptr(), CLAP_LOG_WARNING, text));
        }
    }

    /// Starts a timer; `None` if the host has no timers.
    pub(crate) fn start_timer(self, period_ms: u32) -> Option<clap_id> {
        let mut id = CLAP_INVALID_ID;
        let timers = self.extension::<clap_host_timer_support>()?;
        call!(timers, register_timer(self.as_ptr(), period_ms, &mut id))?.then_some(id)
    }

    /// Stops a timer.
    pub(crate) fn stop_timer(self, id: clap_id) {
        if let Some(timers) = self.extension::<clap_host_timer_support>() {
            call!(timers, unregister_timer(self.as_ptr(), id));
        }
    }

    /// Tells the host that a preset is loaded.
    pub(crate) fn preset_loaded(
        self,
        kind: clap_preset_discovery_location_kind,
        location: Option<&CStr>,
        key: Option<&CStr>,
    ) {
        if let Some(preset_load) = self.extension::<clap_host_preset_load>() {
            call!(preset_load, loaded(self.as_ptr(), kind, location, key));
        }
    }

    /// Tells the host why a preset is not loaded; `os_error` is 0 if it is no error of the system.
    pub(crate) fn preset_refused(
        self,
        kind: clap_preset_discovery_location_kind,
        location: Option<&CStr>,
        key: Option<&CStr>,
        os_error: i32,
        reason: &CStr,
    ) {
        if let Some(preset_load) = self.extension::<clap_host_preset_load>() {
            call!(
                preset_load,
                on_error(self.as_ptr(), kind, location, key, os_error, reason)
            );
        }
    }
}
