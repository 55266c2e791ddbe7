//! The state extension: accepts the framework's states and preset files; and the state-context
//! extension.
//!
//! VST3 hosts load a preset file's content as a state, so a preset file with our JSON as its
//! content can be loaded too. A CLAP host that says that it saves a preset gets such a content: the
//! sound, without what belongs to the project. If it loads a whole state as a preset, only the
//! sound of it is taken. Duplicates and projects are whole states.

use clap_sys::ext::state::clap_plugin_state;
use clap_sys::ext::state_context::{
    CLAP_STATE_CONTEXT_FOR_PRESET, clap_plugin_state_context, clap_plugin_state_context_type,
};
use ondes_player::preset::factory::FactoryPreset;
use ondes_player::preset::file;
use ondes_player::preset::location::PresetLocation;

use super::streams::{InputStream, OutputStream, read_all, write_all};
use super::{preset_load, state};
use crate::clap::c_interface::c_function;
use crate::clap::plugin_wrapper::PluginWrapper;

/// No context: a project.
const NONE: clap_plugin_state_context_type = 0;

pub(crate) static STATE: clap_plugin_state = clap_plugin_state {
    save: c_function!(save, (wrapper: &PluginWrapper, stream: OutputStream<'_>) -> bool),
    load: c_function!(load, (wrapper: &PluginWrapper, stream: InputStream<'_>) -> bool),
};

pub(crate) static STATE_CONTEXT: clap_plugin_state_context = clap_plugin_state_context {
    save: c_function!(
        save_in_context,
        (wrapper: &PluginWrapper, stream: OutputStream<'_>, context: u32) -> bool
    ),
    load: c_function!(
        load_in_context,
        (wrapper: &PluginWrapper, stream: InputStream<'_>, context: u32) -> bool
    ),
};

fn save(wrapper: &PluginWrapper, stream: OutputStream<'_>) -> bool {
    save_in_context(wrapper, stream, NONE)
}

fn save_in_context(
    wrapper: &PluginWrapper,
    stream: OutputStream<'_>,
    context: clap_plugin_state_context_type,
) -> bool {
    let whole = state::current(&wrapper.values, &wrapper.instance);
    let bytes = if context == CLAP_STATE_CONTEXT_FOR_PRESET {
        let preset = state::sound_as_preset(&whole, wrapper.instance.product);
        preset.and_then(|preset| file::serialize(&preset).ok())
    } else {
        state::serialize(&whole).ok()
    };
    bytes.is_some_and(|bytes| write_all(stream, &bytes))
}

fn load(wrapper: &PluginWrapper, stream: InputStream<'_>) -> bool {
    load_in_context(wrapper, stream, NONE)
}

fn load_in_context(
    wrapper: &PluginWrapper,
    stream: InputStream<'_>,
    context: clap_plugin_state_context_type,
) -> bool {
    let Some(bytes) = read_all(stream) else {
        return false;
    };
    let for_preset = context == CLAP_STATE_CONTEXT_FOR_PRESET;
    let whole = || state::parse(&bytes);
    let sound = || state::sound_as_preset(&whole()?, wrapper.instance.product);
    let preset = file::parse(&bytes).ok();
    let load = || match preset.or_else(|| sound().filter(|_| for_preset)) {
        Some(mut preset) => {
            let factory = FactoryPreset::equal_to(&preset);
            preset.sound.selection.preset =
                factory.map(|factory| PresetLocation::Factory(factory.key.into()));
            preset_load::apply(wrapper, &preset).is_ok()
        }
        None => !for_preset && whole().map(|whole| wrapper.restore(&whole)).is_some(),
    };
    let is_loaded = match &wrapper.deferred_rescan {
        Some(deferred) => deferred.during_load(load),
        None => load(),
    };
    // At once, as VST3 hosts may have no other call on the main thread.
    wrapper.notify_after_load();
    is_loaded
}
