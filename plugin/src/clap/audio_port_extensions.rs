//! Extensions for audio ports with one or two channels each.
//!
//! The framework offers a fixed list of layouts. These announce any combination, which is processed
//! in the nearest of the framework's; [`BlockBuffers`](super::block_buffers::BlockBuffers) make up
//! the difference.

use std::ptr::null;

use clap_sys::ext::audio_ports::{
    CLAP_PORT_MONO, CLAP_PORT_STEREO, clap_audio_port_info, clap_plugin_audio_ports,
};
use clap_sys::ext::audio_ports_config::{clap_audio_ports_config, clap_plugin_audio_ports_config};
use clap_sys::ext::configurable_audio_ports::{
    clap_audio_port_configuration_request, clap_plugin_configurable_audio_ports,
};
use clap_sys::id::{CLAP_INVALID_ID, clap_id};

use super::c_interface::{HostArray, c_function, call};
use super::plugin_wrapper::PluginWrapper;
use super::port_layout::PortLayout;

pub(super) static PORTS: clap_plugin_audio_ports = clap_plugin_audio_ports {
    count: c_function!(count, (wrapper: &PluginWrapper, is_input: bool) -> u32),
    get: c_function!(
        get,
        (wrapper: &PluginWrapper, index: u32, is_input: bool, info: &mut clap_audio_port_info)
            -> bool
    ),
};

pub(super) static CONFIGURABLE: clap_plugin_configurable_audio_ports =
    clap_plugin_configurable_audio_ports {
        can_apply_configuration: c_function!(
            can_apply,
            (wrapper: &PluginWrapper, requests: Option<Requests>, count: u32) -> bool
        ),
        apply_configuration: c_function!(
            apply,
            (wrapper: &PluginWrapper, requests: Option<Requests>, count: u32) -> bool
        ),
    };

pub(super) static CONFIGURATIONS: clap_plugin_audio_ports_config = clap_plugin_audio_ports_config {
    count: c_function!(configuration_count, (wrapper: &PluginWrapper) -> u32),
    get: c_function!(
        get_configuration,
        (wrapper: &PluginWrapper, index: u32, to: &mut clap_audio_ports_config) -> bool
    ),
    select: c_function!(select_configuration, (wrapper: &PluginWrapper, id: clap_id) -> bool),
};

type Requests = HostArray<*const clap_audio_port_configuration_request>;

fn count(wrapper: &PluginWrapper, is_input: bool) -> u32 {
    wrapper.audio_ports.announced().count(is_input)
}

/// Describes an announced port. The framework describes the port of the same index.
fn get(
    wrapper: &PluginWrapper,
    index: u32,
    is_input: bool,
    info: &mut clap_audio_port_info,
) -> bool {
    let mut layout = wrapper.audio_ports.announced();
    let Some(&mut channels) = layout.channels(is_input, index) else {
        return false;
    };
    let ports = wrapper.framework.extension::<clap_plugin_audio_ports>();
    let is_known =
        ports.and_then(|(ports, plugin)| call!(ports, get(plugin, index, is_input, &mut *info)));
    info.channel_count = channels;
    info.port_type = match channels {
        1 => CLAP_PORT_MONO.as_ptr(),
        2 => CLAP_PORT_STEREO.as_ptr(),
        _ => null(),
    };
    if layout.input != layout.output {
        info.in_place_pair = CLAP_INVALID_ID;
    }
    is_known.unwrap_or(false)
}

/// Returns the layout that requests lead to; `None` if it is not supported.
fn requested(
    wrapper: &PluginWrapper,
    requests: Option<Requests>,
    count: u32,
) -> Option<PortLayout> {
    if wrapper.is_active() {
        return None;
    }
    let layout = wrapper.audio_ports.announced();
    let Some(requests) = requests else {
        return (count == 0).then_some(layout);
    };
    // SAFETY: this is the count of these requests.
    let mut requests = unsafe { requests.elements(count) }.iter();
    requests.try_fold(layout, |layout, request| {
        layout.with(request.is_input, request.port_index, request.channel_count)
    })
}

fn can_apply(wrapper: &PluginWrapper, requests: Option<Requests>, count: u32) -> bool {
    requested(wrapper, requests, count).is_some()
}

fn apply(wrapper: &PluginWrapper, requests: Option<Requests>, count: u32) -> bool {
    let layout = requested(wrapper, requests, count);
    layout
        .map(|layout| wrapper.audio_ports.announce(layout))
        .is_some()
}

fn configuration_count(wrapper: &PluginWrapper) -> u32 {
    wrapper.audio_ports.offered.len() as u32
}

fn get_configuration(
    wrapper: &PluginWrapper,
    index: u32,
    to: &mut clap_audio_ports_config,
) -> bool {
    let configurations = wrapper
        .framework
        .extension::<clap_plugin_audio_ports_config>()
        .filter(|_| index < configuration_count(wrapper));
    configurations
        .and_then(|(configurations, plugin)| call!(configurations, get(plugin, index, to)))
        .unwrap_or(false)
}

fn select_configuration(wrapper: &PluginWrapper, id: clap_id) -> bool {
    let layout = wrapper.audio_ports.offered.get(id as usize);
    let layout = layout.filter(|_| !wrapper.is_active());
    layout
        .map(|layout| wrapper.audio_ports.announce(*layout))
        .is_some()
}

/// Selects the framework's layout for the announced one; returns its ports.
pub(super) fn select_layout(wrapper: &PluginWrapper) -> Option<PortLayout> {
    let (index, layout) = wrapper.audio_ports.nearest();
    let (configurations, plugin) = wrapper
        .framework
        .extension::<clap_plugin_audio_ports_config>()?;
    call!(configurations, select(plugin, index))?.then_some(layout)
}
