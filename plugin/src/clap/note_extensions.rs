//! Extensions of the instrument for notes: MPE on its note port, and its number of voices.

use clap_sys::ext::note_ports::{
    CLAP_NOTE_DIALECT_CLAP, CLAP_NOTE_DIALECT_MIDI, CLAP_NOTE_DIALECT_MIDI_MPE,
    clap_note_port_info, clap_plugin_note_ports,
};
use clap_sys::ext::voice_info::{
    CLAP_VOICE_INFO_SUPPORTS_OVERLAPPING_NOTES, clap_plugin_voice_info, clap_voice_info,
};
use ondes_player::instance::host_view::MAX_VOICES;

use super::c_interface::c_function;
use super::c_text::text_field;
use super::plugin_wrapper::PluginWrapper;

/// Replaces the framework's extension, which does not offer MPE.
pub(super) static NOTE_PORTS: clap_plugin_note_ports = clap_plugin_note_ports {
    count: c_function!(count, (_wrapper: &PluginWrapper, is_input: bool) -> u32),
    get: c_function!(
        get,
        (_wrapper: &PluginWrapper, index: u32, is_input: bool, info: &mut clap_note_port_info)
            -> bool
    ),
};

pub(super) static VOICE_INFO: clap_plugin_voice_info = clap_plugin_voice_info {
    get: c_function!(get_voice_info, (wrapper: &PluginWrapper, info: &mut clap_voice_info) -> bool),
};

fn count(_: &PluginWrapper, is_input: bool) -> u32 {
    is_input.into()
}

fn get(_: &PluginWrapper, index: u32, is_input: bool, info: &mut clap_note_port_info) -> bool {
    if index > 0 || !is_input {
        return false;
    }
    *info = clap_note_port_info {
        id: 0,
        supported_dialects: CLAP_NOTE_DIALECT_CLAP
            | CLAP_NOTE_DIALECT_MIDI
            | CLAP_NOTE_DIALECT_MIDI_MPE,
        preferred_dialect: CLAP_NOTE_DIALECT_CLAP,
        name: text_field("Note Input"),
    };
    true
}

fn get_voice_info(wrapper: &PluginWrapper, info: &mut clap_voice_info) -> bool {
    *info = clap_voice_info {
        voice_count: wrapper.instance.voice_count(),
        voice_capacity: MAX_VOICES,
        // Ids tell notes of one key apart.
        flags: CLAP_VOICE_INFO_SUPPORTS_OVERLAPPING_NOTES,
    };
    true
}
