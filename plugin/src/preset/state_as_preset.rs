//! The state extension: accepts the framework's states and preset files; and the state-context
//! extension.
//!
//! VST3 hosts load a preset file's content as a state, so a preset file with our JSON as its
//! content can be loaded too. A CLAP host that says that it saves a preset gets such a content: the
//! sound, without what belongs to the project. If it loads a whole state as a preset, only the
//! sound of it is taken. Duplicates and projects are whole states.

use std::ffi::c_void;
use std::ptr;

use clap_sys::ext::state::clap_plugin_state;
use clap_sys::ext::state_context::{
    CLAP_STATE_CONTEXT_FOR_PRESET, clap_plugin_state_context, clap_plugin_state_context_type,
};
use clap_sys::plugin::clap_plugin;
use clap_sys::stream::{clap_istream, clap_ostream};
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::preset::file;
use ondes_player::preset::location::PresetLocation;

use super::{catch_panic, preset_load, state, streams};
use crate::clap::plugin_wrapper::PluginWrapper;

static STATE: clap_plugin_state = clap_plugin_state {
    save: Some(save),
    load: Some(load),
};

static STATE_CONTEXT: clap_plugin_state_context = clap_plugin_state_context {
    save: Some(save_in_context),
    load: Some(load_in_context),
};

/// Returns the extension, which all instances share.
#[must_use]
pub fn extension() -> *const c_void {
    ptr::from_ref(&STATE).cast()
}

/// Returns the state-context extension, which all instances share.
#[must_use]
pub fn context_extension() -> *const c_void {
    ptr::from_ref(&STATE_CONTEXT).cast()
}

unsafe extern "C" fn save(plugin: *const clap_plugin, stream: *const clap_ostream) -> bool {
    // SAFETY: the host calls this on its main thread, for an instance of ours.
    catch_panic(false, || unsafe {
        let Some(wrapper) = PluginWrapper::of(plugin) else {
            return false;
        };
        wrapper.apply_inactive_changes();
        wrapper
            .state_extension()
            .and_then(|functions| functions.save)
            .is_some_and(|save| save(plugin, stream))
    })
}

unsafe extern "C" fn save_in_context(
    plugin: *const clap_plugin,
    stream: *const clap_ostream,
    context: clap_plugin_state_context_type,
) -> bool {
    if context != CLAP_STATE_CONTEXT_FOR_PRESET {
        // SAFETY: as above.
        return unsafe { save(plugin, stream) };
    }
    // SAFETY: as above; the stream is the host's.
    catch_panic(false, || unsafe {
        let Some(wrapper) = PluginWrapper::of(plugin) else {
            return false;
        };
        wrapper.apply_inactive_changes();
        let whole = wrapper
            .state_extension()
            .and_then(|functions| streams::save(plugin, functions));
        let preset =
            whole.and_then(|whole| state::sound_as_preset(&whole, wrapper.instance.product));
        preset
            .and_then(|preset| file::serialize(&preset).ok())
            .is_some_and(|bytes| streams::write_all(stream, &bytes))
    })
}

unsafe extern "C" fn load(plugin: *const clap_plugin, stream: *const clap_istream) -> bool {
    // SAFETY: as above.
    unsafe { load_in_context(plugin, stream, 0) }
}

unsafe extern "C" fn load_in_context(
    plugin: *const clap_plugin,
    stream: *const clap_istream,
    context: clap_plugin_state_context_type,
) -> bool {
    // SAFETY: as above; the stream is the host's.
    catch_panic(false, || unsafe {
        let Some((wrapper, bytes)) = PluginWrapper::of(plugin).zip(streams::read_all(stream))
        else {
            return false;
        };
        let Some(functions) = wrapper.state_extension() else {
            return false;
        };
        let for_preset = context == CLAP_STATE_CONTEXT_FOR_PRESET;
        let sound =
            || state::sound_as_preset(&bytes, wrapper.instance.product).filter(|_| for_preset);
        let load = || match file::parse(&bytes).ok().or_else(sound) {
            Some(mut preset) => {
                let factory = FactoryPreset::equal_to(&preset);
                preset.sound.selection.preset =
                    factory.map(|factory| PresetLocation::Factory(factory.key.into()));
                preset_load::apply(plugin, functions, &preset).is_ok()
            }
            None => !for_preset && streams::load(plugin, functions, &bytes),
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
