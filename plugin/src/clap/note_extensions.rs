//! Extensions of the instrument for notes: MPE on its note port, and its number of voices.

use std::ffi::c_void;
use std::ptr::from_ref;

use clap_sys::ext::note_ports::{
    CLAP_EXT_NOTE_PORTS, CLAP_NOTE_DIALECT_MIDI_MPE, clap_note_port_info, clap_plugin_note_ports,
};
use clap_sys::ext::voice_info::{
    CLAP_VOICE_INFO_SUPPORTS_OVERLAPPING_NOTES, clap_plugin_voice_info, clap_voice_info,
};
use clap_sys::plugin::clap_plugin;
use ondes_player::instance::host_view::MAX_VOICES;

use super::plugin_wrapper::PluginWrapper;

static NOTE_PORTS: clap_plugin_note_ports = clap_plugin_note_ports {
    count: Some(count),
    get: Some(get),
};
static VOICE_INFO: clap_plugin_voice_info = clap_plugin_voice_info {
    get: Some(get_voice_info),
};

/// Returns the extension for note ports: the framework's, with MPE added.
#[must_use]
pub fn note_ports() -> *const c_void {
    from_ref(&NOTE_PORTS).cast()
}

/// Returns the extension for the number of voices.
#[must_use]
pub fn voice_info() -> *const c_void {
    from_ref(&VOICE_INFO).cast()
}

/// Returns the framework's extension.
///
/// # Safety
/// The pointer is null, or comes from [`create`](super::callbacks::create) and is not destroyed
/// yet.
unsafe fn framework_note_ports<'a>(
    plugin: *const clap_plugin,
) -> Option<&'a clap_plugin_note_ports> {
    // SAFETY: guaranteed by the caller; for this id the framework returns that type, or null.
    unsafe {
        let inner = &PluginWrapper::of(plugin)?.inner;
        inner.get_extension?(inner, CLAP_EXT_NOTE_PORTS.as_ptr())
            .cast::<clap_plugin_note_ports>()
            .as_ref()
    }
}

unsafe extern "C" fn count(plugin: *const clap_plugin, is_input: bool) -> u32 {
    // SAFETY: the host passes the pointer that `create` returned, here and below.
    unsafe {
        let count = framework_note_ports(plugin).and_then(|ports| ports.count);
        count.map_or(0, |count| count(plugin, is_input))
    }
}

unsafe extern "C" fn get(
    plugin: *const clap_plugin,
    index: u32,
    is_input: bool,
    info: *mut clap_note_port_info,
) -> bool {
    // SAFETY: as above; there is room for an info, which the framework fills if it returns true.
    unsafe {
        let Some(get) = framework_note_ports(plugin)
            .and_then(|ports| ports.get)
            .filter(|_| !info.is_null())
        else {
            return false;
        };
        let is_there = get(plugin, index, is_input, info);
        if is_there && is_input {
            (*info).supported_dialects |= CLAP_NOTE_DIALECT_MIDI_MPE;
        }
        is_there
    }
}

unsafe extern "C" fn get_voice_info(
    plugin: *const clap_plugin,
    info: *mut clap_voice_info,
) -> bool {
    // SAFETY: as above; there is room for an info.
    let (wrapper, info) = unsafe { (PluginWrapper::of(plugin), info.as_mut()) };
    let (Some(wrapper), Some(info)) = (wrapper, info) else {
        return false;
    };
    *info = clap_voice_info {
        voice_count: wrapper.instance.voice_count(),
        voice_capacity: MAX_VOICES,
        // Ids tell notes of one key apart.
        flags: CLAP_VOICE_INFO_SUPPORTS_OVERLAPPING_NOTES,
    };
    true
}
