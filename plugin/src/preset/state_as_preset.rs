//! The state extension: accepts the framework's states and preset files.
//!
//! VST3 hosts load a preset file's content as a state, so a preset file with our JSON as its content can be loaded too.

use std::ffi::c_void;
use std::ptr;

use clap_sys::ext::state::clap_plugin_state;
use clap_sys::plugin::clap_plugin;
use clap_sys::stream::{clap_istream, clap_ostream};
use ondes_processor::preset::file;

use super::{catch_panic, preset_load, streams};
use crate::clap::plugin_wrapper::PluginWrapper;

static STATE: clap_plugin_state = clap_plugin_state { save: Some(save), load: Some(load) };

/// Returns the extension, which all instances share.
#[must_use]
pub fn extension() -> *const c_void {
    ptr::from_ref(&STATE).cast()
}

unsafe extern "C" fn save(plugin: *const clap_plugin, stream: *const clap_ostream) -> bool {
    // SAFETY: the host calls this on its main thread, for an instance of ours.
    catch_panic(false, || unsafe {
        let Some(wrapper) = PluginWrapper::of(plugin) else { return false };
        wrapper.apply_inactive_changes();
        wrapper.state_extension().and_then(|functions| functions.save).is_some_and(|save| save(plugin, stream))
    })
}

unsafe extern "C" fn load(plugin: *const clap_plugin, stream: *const clap_istream) -> bool {
    // SAFETY: as above; the stream is the host's.
    catch_panic(false, || unsafe {
        let Some((wrapper, bytes)) = PluginWrapper::of(plugin).zip(streams::read_all(stream)) else { return false };
        let Some(functions) = wrapper.state_extension() else { return false };
        let load = || match file::parse(&bytes) {
            Ok(preset) => preset_load::apply(plugin, functions, &preset).is_ok(),
            Err(_) => streams::load(plugin, functions, &bytes),
        };
        let is_loaded = match &wrapper.deferred_rescan {
            Some(deferred) => deferred.during_load(load),
            None => load(),
        };
        // At once, as VST3 hosts may have no other call on the main thread.
        wrapper.notify_names();
        wrapper.log_untrusted();
        is_loaded
    })
}
