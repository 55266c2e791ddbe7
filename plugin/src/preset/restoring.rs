//! The plugin's states as hosts see them: those of the framework, and presets beside. To a VST3 host a preset is a file around a
//! state; with this it is a file around one of ours.

use std::ffi::c_void;
use std::ptr;

use clap_sys::ext::state::{CLAP_EXT_STATE, clap_plugin_state};
use clap_sys::plugin::clap_plugin;
use clap_sys::stream::{clap_istream, clap_ostream};
use ondes_processor::preset::file;

use super::{guarded, loading, streams};
use crate::clap::shell::Shell;

static STATE: clap_plugin_state = clap_plugin_state { save: Some(save), load: Some(load) };

/// The extension, the same for all instances.
#[must_use]
pub fn extension() -> *const c_void {
    ptr::from_ref(&STATE).cast()
}

/// What the framework has for states.
///
/// # Safety
/// The plugin is one of ours, alive.
pub unsafe fn frameworks<'a>(plugin: *const clap_plugin) -> Option<&'a clap_plugin_state> {
    // SAFETY: the caller's; what the framework gives for this id is of that type, or null.
    unsafe {
        let get = Shell::of(plugin)?.inner.get_extension?;
        get(plugin, CLAP_EXT_STATE.as_ptr()).cast::<clap_plugin_state>().as_ref()
    }
}

unsafe extern "C" fn save(plugin: *const clap_plugin, stream: *const clap_ostream) -> bool {
    // SAFETY: the host calls this on its main thread, for an instance that it got from us.
    unsafe { frameworks(plugin).and_then(|functions| functions.save).is_some_and(|save| save(plugin, stream)) }
}

unsafe extern "C" fn load(plugin: *const clap_plugin, stream: *const clap_istream) -> bool {
    // SAFETY: as above; the stream is the host's.
    guarded(false, || unsafe {
        let Some((functions, bytes)) = frameworks(plugin).zip(streams::all_of(stream)) else { return false };
        let take = || match file::parse(&bytes) {
            Ok(preset) => loading::put(plugin, functions, &preset).is_ok(),
            Err(_) => streams::load(plugin, functions, &bytes),
        };
        match Shell::of(plugin).and_then(|shell| shell.reticence.as_ref()) {
            Some(reticence) => reticence.taking(take),
            None => take(),
        }
    })
}
