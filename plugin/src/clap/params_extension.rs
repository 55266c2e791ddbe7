//! The parameter extension: parameters in groups, in their units, under the names of what they do.

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

use clap_sys::events::clap_event_midi;
use clap_sys::ext::params::{
    CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_BYPASS, CLAP_PARAM_IS_ENUM, CLAP_PARAM_IS_HIDDEN,
    CLAP_PARAM_IS_MODULATABLE, CLAP_PARAM_IS_READONLY, CLAP_PARAM_IS_STEPPED, clap_param_info,
    clap_param_info_flags, clap_plugin_params,
};
use clap_sys::id::clap_id;
use ondes_player::macros::MACRO_COUNT;
use ondes_player::parameter::{BYPASS, Parameter, ParameterId, ParameterKind, ParameterScope};

use super::block_events::TakeChange;
use super::c_interface::{HostArray, c_function};
use super::c_text::{copy_text, text_field};
use super::event::{HostInput, HostOutput};
use super::parameter_changes::ParameterChanges;
use super::parameter_list::ListedParameter;
use super::plugin_wrapper::PluginWrapper;

pub(super) static PARAMS: clap_plugin_params = clap_plugin_params {
    count: c_function!(count, (wrapper: &PluginWrapper) -> u32),
    get_info: c_function!(
        get_info,
        (wrapper: &PluginWrapper, index: u32, to: &mut clap_param_info) -> bool
    ),
    get_value: c_function!(
        get_value,
        (wrapper: &PluginWrapper, id: clap_id, to: &mut f64) -> bool
    ),
    value_to_text: c_function!(
        value_to_text,
        (wrapper: &PluginWrapper, id: clap_id, value: f64, to: HostArray<*mut c_char>, size: u32) -> bool
    ),
    text_to_value: c_function!(
        text_to_value,
        (wrapper: &PluginWrapper, id: clap_id, text: &CStr, to: &mut f64) -> bool
    ),
    flush: c_function!(
        flush,
        (wrapper: &PluginWrapper, input: Option<HostInput<'_>>, output: Option<HostOutput<'_>>)
    ),
};

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
            .notices
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
            .macro_label(id.0 as usize)
            .filter(|_| !self.notices.names_follow)
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

fn count(wrapper: &PluginWrapper) -> u32 {
    wrapper.parameters.listed().len() as u32
}

fn get_info(wrapper: &PluginWrapper, index: u32, to: &mut clap_param_info) -> bool {
    let listed = wrapper.parameters.listed().get(index as usize);
    listed.map(|listed| *to = wrapper.info(listed)).is_some()
}

fn get_value(wrapper: &PluginWrapper, id: clap_id, to: &mut f64) -> bool {
    let value = wrapper.parameter_value(id);
    value.map(|value| *to = value).is_some()
}

fn value_to_text(
    wrapper: &PluginWrapper,
    id: clap_id,
    value: f64,
    mut to: HostArray<*mut c_char>,
    size: u32,
) -> bool {
    let Some(listed) = wrapper.parameters.find(id) else {
        return false;
    };
    // SAFETY: this is the size of the array.
    let to = unsafe { to.elements_mut(size) };
    copy_text(&wrapper.text(listed, value), to);
    true
}

fn text_to_value(wrapper: &PluginWrapper, id: clap_id, text: &CStr, to: &mut f64) -> bool {
    let listed = wrapper.parameters.find(id);
    let value = text.to_str().ok().zip(listed).and_then(|(text, listed)| {
        let value = if is_macro(listed.id) {
            wrapper.instance.parse_value(listed.id, text)
        } else {
            // Not through a knob position, which is not exact.
            listed.parameter.parse(text)
        };
        value.map(|value| wrapper.parameters.scale.host_value(listed.parameter, value))
    });
    value.map(|value| *to = value).is_some()
}

fn flush(wrapper: &PluginWrapper, input: Option<HostInput<'_>>, output: Option<HostOutput<'_>>) {
    let changes = ParameterChanges { wrapper, output };
    if let Some(input) = input {
        let events = (0..input.len()).filter_map(|index| input.event(index));
        for event in events.filter(|event| event.get::<clap_event_midi>().is_none()) {
            changes.take(&event);
        }
    }
    changes.tell_window_changes();
}
