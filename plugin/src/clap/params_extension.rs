//! The parameter extension: parameters in groups, in their units, under the names of what they do.
//!
//! It takes the place of the framework's, which shows all continuous parameters as 0 … 1. Values
//! still pass through the framework, in [converted events](super::converted_events).

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{from_ref, null, null_mut};

use clap_sys::events::{clap_input_events, clap_output_events};
use clap_sys::ext::params::{
    CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_BYPASS, CLAP_PARAM_IS_ENUM, CLAP_PARAM_IS_HIDDEN,
    CLAP_PARAM_IS_MODULATABLE, CLAP_PARAM_IS_READONLY, CLAP_PARAM_IS_STEPPED, clap_param_info,
    clap_param_info_flags, clap_plugin_params,
};
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{BYPASS, Parameter, ParameterId, ParameterKind, ParameterScope};

use super::converted_events::ConvertedEvents;
use super::parameter_list::ListedParameter;
use super::plugin_wrapper::{PluginWrapper, framework_params};
use crate::preset::catch_panic;

static PARAMS: clap_plugin_params = clap_plugin_params {
    count: Some(count),
    get_info: Some(get_info),
    get_value: Some(get_value),
    value_to_text: Some(value_to_text),
    text_to_value: Some(text_to_value),
    flush: Some(flush),
};

/// Returns the extension, which all instances share.
#[must_use]
pub fn extension() -> *const c_void {
    from_ref(&PARAMS).cast()
}

impl PluginWrapper {
    /// Returns a parameter's value as the host counts it, without modulation.
    pub(super) fn parameter_value(&self, id: clap_id) -> Option<f64> {
        let ListedParameter { id, parameter, .. } = *self.parameters.find(id)?;
        let value = self.instance.parameter_value(id)?;
        Some(self.parameters.scale.host_value(parameter, value))
    }

    /// Returns a parameter's name: that of the control that a macro is bound to, if the host can be
    /// told of a new one.
    pub(super) fn parameter_name(&self, id: ParameterId) -> String {
        let name = self
            .names_follow
            .then(|| self.instance.parameter_label(id))
            .flatten();
        name.or_else(|| Parameter::get(id).map(|parameter| parameter.label.to_owned()))
            .unwrap_or_default()
    }

    fn text(&self, listed: &ListedParameter, value: f64) -> String {
        let ListedParameter { id, parameter, .. } = *listed;
        let value = self.parameters.scale.table_value(parameter, value);
        if !is_macro(id) {
            return parameter.format(value) + parameter.unit;
        }
        let text = self.instance.format_value(id, value).unwrap_or_default();
        // Where the name does not tell what a macro does, the value does.
        match self
            .instance
            .macro_control(id.0 as usize)
            .filter(|_| !self.names_follow)
        {
            Some(control) => format!("{control} {text}"),
            None => text,
        }
    }

    fn info(&self, listed: &ListedParameter) -> clap_param_info {
        let ListedParameter {
            clap_id,
            id,
            parameter,
        } = *listed;
        let [min_value, max_value] = self.parameters.scale.range(parameter);
        clap_param_info {
            id: clap_id,
            flags: flags(id, parameter),
            cookie: null_mut(),
            name: text_field(&self.parameter_name(id)),
            module: text_field(parameter.group),
            min_value,
            max_value,
            default_value: self
                .parameters
                .scale
                .host_value(parameter, parameter.default()),
        }
    }
}

fn is_macro(id: ParameterId) -> bool {
    (id.0 as usize) < MACRO_COUNT
}

fn flags(id: ParameterId, parameter: &Parameter) -> clap_param_info_flags {
    let is_enum = matches!(parameter.kind, ParameterKind::Choice(_));
    [
        (
            parameter.is_host_automatable(),
            CLAP_PARAM_IS_AUTOMATABLE | CLAP_PARAM_IS_MODULATABLE,
        ),
        // The window has a button for the action.
        (
            parameter.scope == ParameterScope::Momentary,
            CLAP_PARAM_IS_HIDDEN | CLAP_PARAM_IS_READONLY,
        ),
        (parameter.steps() > 0, CLAP_PARAM_IS_STEPPED),
        (is_enum, CLAP_PARAM_IS_ENUM),
        (id == BYPASS, CLAP_PARAM_IS_BYPASS),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// Returns a text as a NUL-terminated array; what does not fit is cut at a character.
fn text_field<const LENGTH: usize>(text: &str) -> [c_char; LENGTH] {
    let mut field = [0; LENGTH];
    copy_text(text, &mut field);
    field
}

/// Writes a NUL-terminated text; what does not fit is cut at a character.
fn copy_text(text: &str, to: &mut [c_char]) {
    let Some(room) = to.len().checked_sub(1) else {
        return;
    };
    let length = text.floor_char_boundary(room);
    for (to, byte) in to
        .iter_mut()
        .zip(text.as_bytes()[..length].iter().chain(&[0]))
    {
        *to = *byte as c_char;
    }
}

unsafe extern "C" fn count(plugin: *const clap_plugin) -> u32 {
    // SAFETY: the host passes the pointer that `create` returned, here and below.
    unsafe { PluginWrapper::of(plugin) }
        .map_or(0, |wrapper| wrapper.parameters.listed().len() as u32)
}

unsafe extern "C" fn get_info(
    plugin: *const clap_plugin,
    index: u32,
    to: *mut clap_param_info,
) -> bool {
    // SAFETY: as above; there is room for an info.
    let (wrapper, to) = unsafe { (PluginWrapper::of(plugin), to.as_mut()) };
    let listed = wrapper
        .and_then(|wrapper| Some((wrapper, wrapper.parameters.listed().get(index as usize)?)));
    let (Some((wrapper, listed)), Some(to)) = (listed, to) else {
        return false;
    };
    catch_panic(false, || {
        *to = wrapper.info(listed);
        true
    })
}

unsafe extern "C" fn get_value(plugin: *const clap_plugin, id: clap_id, to: *mut f64) -> bool {
    // SAFETY: as above; there is room for a value.
    let (wrapper, to) = unsafe { (PluginWrapper::of(plugin), to.as_mut()) };
    let value = wrapper.and_then(|wrapper| wrapper.parameter_value(id));
    let (Some(value), Some(to)) = (value, to) else {
        return false;
    };
    *to = value;
    true
}

unsafe extern "C" fn value_to_text(
    plugin: *const clap_plugin,
    id: clap_id,
    value: f64,
    to: *mut c_char,
    size: u32,
) -> bool {
    // SAFETY: as above.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    let Some(listed) = wrapper.parameters.find(id).filter(|_| !to.is_null()) else {
        return false;
    };
    // SAFETY: not null, so there is room for that many bytes.
    let to = unsafe { std::slice::from_raw_parts_mut(to, size as usize) };
    catch_panic(false, || {
        copy_text(&wrapper.text(listed, value), to);
        true
    })
}

unsafe extern "C" fn text_to_value(
    plugin: *const clap_plugin,
    id: clap_id,
    text: *const c_char,
    to: *mut f64,
) -> bool {
    // SAFETY: as above; there is room for a value.
    let (wrapper, to) = unsafe { (PluginWrapper::of(plugin), to.as_mut()) };
    let (Some(wrapper), Some(to)) = (wrapper, to) else {
        return false;
    };
    let Some(listed) = wrapper.parameters.find(id).filter(|_| !text.is_null()) else {
        return false;
    };
    // SAFETY: not null, so a NUL-terminated string.
    let text = unsafe { CStr::from_ptr(text) };
    let Ok(text) = text.to_str() else {
        return false;
    };
    let parse = || {
        let value = if is_macro(listed.id) {
            wrapper.instance.parse_value(listed.id, text)
        } else {
            // Not through a knob position, which is not exact.
            listed.parameter.parse(text)
        };
        value.map(|value| wrapper.parameters.scale.host_value(listed.parameter, value))
    };
    catch_panic(None, parse).is_some_and(|value| {
        *to = value;
        true
    })
}

unsafe extern "C" fn flush(
    plugin: *const clap_plugin,
    input: *const clap_input_events,
    output: *const clap_output_events,
) {
    // SAFETY: as above.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return;
    };
    // SAFETY: the framework's plugin is alive.
    let Some(flush) = (unsafe { framework_params(&wrapper.inner) }).and_then(|params| params.flush)
    else {
        return;
    };
    // SAFETY: the host's lists are null, or valid during this call.
    let events =
        unsafe { ConvertedEvents::new(&wrapper.parameters, &wrapper.instance, input, output) };
    let (converted_input, converted_output) = (events.input(), events.output());
    let input = if input.is_null() {
        null()
    } else {
        &raw const converted_input
    };
    let output = if output.is_null() {
        null()
    } else {
        &raw const converted_output
    };
    // SAFETY: the framework uses only `plugin_data`, which is its own; our lists live longer than
    // this call.
    unsafe { flush(plugin, input, output) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character() {
        let bytes = |text: &str| text_field::<5>(text).map(|byte| byte as u8);
        assert_eq!(bytes("Tune"), *b"Tune\0");
        assert_eq!(bytes("Glide"), *b"Glid\0");
        assert_eq!(
            bytes("4×××"),
            [b'4', 0xC3, 0x97, 0, 0],
            "half of a character is left out"
        );
        assert_eq!(bytes(""), [0; 5]);
        copy_text("x", &mut []);
    }
}
