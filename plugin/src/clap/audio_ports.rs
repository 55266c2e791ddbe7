//! Audio ports: each may have one or two channels, and the side-chain none.
//!
//! The framework offers a fixed list of layouts. This extension announces any combination,
//! processes it in the nearest of the framework's layouts, and leaves the difference to
//! [`BlockBuffers`](super::block_buffers::BlockBuffers).

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::{from_ref, null};

use clap_sys::ext::audio_ports::{
    CLAP_EXT_AUDIO_PORTS, CLAP_PORT_MONO, CLAP_PORT_STEREO, clap_audio_port_info,
    clap_plugin_audio_ports,
};
use clap_sys::ext::audio_ports_config::{
    CLAP_EXT_AUDIO_PORTS_CONFIG, clap_audio_ports_config, clap_plugin_audio_ports_config,
};
use clap_sys::ext::configurable_audio_ports::{
    CLAP_EXT_CONFIGURABLE_AUDIO_PORTS, CLAP_EXT_CONFIGURABLE_AUDIO_PORTS_COMPAT,
    clap_audio_port_configuration_request, clap_plugin_configurable_audio_ports,
};
use clap_sys::id::{CLAP_INVALID_ID, clap_id};
use clap_sys::plugin::clap_plugin;
use nice_plug::prelude::{AudioIOLayout, Plugin};

use super::plugin_wrapper::PluginWrapper;

/// Channels of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// Main input; an instrument has none.
    pub input: u32,
    /// Side-chain.
    pub side_chain: u32,
    /// Main output.
    pub output: u32,
}

impl PortLayout {
    fn of(layout: &AudioIOLayout) -> Self {
        Self {
            input: layout.main_input_channels.map_or(0, Into::into),
            side_chain: layout
                .aux_input_ports
                .first()
                .copied()
                .map_or(0, Into::into),
            output: layout.main_output_channels.map_or(0, Into::into),
        }
    }

    /// Returns the channels of a port; `None` if the index is too large.
    fn channels(&mut self, is_input: bool, index: u32) -> Option<&mut u32> {
        match (is_input, index) {
            (true, 0) if self.input > 0 => Some(&mut self.input),
            (true, 0) if self.input == 0 => Some(&mut self.side_chain),
            (true, 1) if self.input > 0 => Some(&mut self.side_chain),
            (false, 0) => Some(&mut self.output),
            _ => None,
        }
    }

    fn count(self, is_input: bool) -> u32 {
        if is_input {
            1 + u32::from(self.input > 0)
        } else {
            1
        }
    }

    /// Returns this with a port of that many channels; `None` if the port cannot have them.
    fn with(mut self, is_input: bool, index: u32, channels: u32) -> Option<Self> {
        let is_side_chain = is_input && index == self.count(true) - 1;
        let port = self.channels(is_input, index)?;
        *port = channels;
        ((1..=2).contains(&channels) || channels == 0 && is_side_chain).then_some(self)
    }
}

/// Layouts of one instance. Used by the main thread only.
pub struct AudioPorts {
    /// The framework's layouts; configurations refer to them by their index.
    offered: Vec<PortLayout>,
    announced: Cell<PortLayout>,
}

impl AudioPorts {
    /// Announces the first layout of a plugin.
    #[must_use]
    pub fn of<P: Plugin>() -> Self {
        let offered: Vec<PortLayout> = P::AUDIO_IO_LAYOUTS.iter().map(PortLayout::of).collect();
        let announced = Cell::new(offered[0]);
        Self { offered, announced }
    }

    /// Returns index and ports of the framework's layout that plays the announced one: that with
    /// the same main input, or, for an instrument, with the same side-chain; then with the same
    /// output.
    #[must_use]
    pub fn nearest(&self) -> (clap_id, PortLayout) {
        let PortLayout {
            input,
            side_chain,
            output,
        } = self.announced.get();
        let differs = |layout: &PortLayout| {
            let input = if input > 0 {
                layout.input != input
            } else {
                layout.side_chain != side_chain
            };
            (input, layout.output != output)
        };
        let mut indexed = (0..)
            .zip(&self.offered)
            .map(|(index, layout)| (index, *layout));
        let first = indexed.next().unwrap_or((0, self.announced.get()));
        // The first of several equally near ones.
        indexed.fold(first, |best, next| {
            if differs(&next.1) < differs(&best.1) {
                next
            } else {
                best
            }
        })
    }
}

static PORTS: clap_plugin_audio_ports = clap_plugin_audio_ports {
    count: Some(count),
    get: Some(get),
};

static CONFIGURABLE: clap_plugin_configurable_audio_ports = clap_plugin_configurable_audio_ports {
    can_apply_configuration: Some(can_apply_configuration),
    apply_configuration: Some(apply_configuration),
};

static CONFIGURATIONS: clap_plugin_audio_ports_config = clap_plugin_audio_ports_config {
    count: Some(configuration_count),
    get: Some(get_configuration),
    select: Some(select_configuration),
};

/// Returns the extension of that id, if it is one of these.
#[must_use]
pub fn extension(id: &CStr) -> Option<*const c_void> {
    if id == CLAP_EXT_AUDIO_PORTS {
        Some(from_ref(&PORTS).cast())
    } else if id == CLAP_EXT_AUDIO_PORTS_CONFIG {
        Some(from_ref(&CONFIGURATIONS).cast())
    } else if id == CLAP_EXT_CONFIGURABLE_AUDIO_PORTS
        || id == CLAP_EXT_CONFIGURABLE_AUDIO_PORTS_COMPAT
    {
        Some(from_ref(&CONFIGURABLE).cast())
    } else {
        None
    }
}

impl PluginWrapper {
    /// Returns one of the framework's extensions.
    ///
    /// # Safety
    /// `T` is the type of that id.
    unsafe fn framework_extension<T>(&self, id: &CStr) -> Option<&T> {
        // SAFETY: the framework's plugin is alive; for this id it returns that type, or null.
        unsafe {
            self.inner.get_extension?(&raw const self.inner, id.as_ptr())
                .cast::<T>()
                .as_ref()
        }
    }

    /// Selects the framework's layout for the announced one; returns its ports.
    pub(super) fn select_layout(&self) -> Option<PortLayout> {
        let (index, layout) = self.audio_ports.nearest();
        // SAFETY: this is the type of that id, and the framework's plugin is alive.
        let is_selected = unsafe {
            let configurations: &clap_plugin_audio_ports_config =
                self.framework_extension(CLAP_EXT_AUDIO_PORTS_CONFIG)?;
            configurations.select?(&raw const self.inner, index)
        };
        is_selected.then_some(layout)
    }

    /// Returns the layout that requests lead to; `None` if it is not supported.
    ///
    /// # Safety
    /// The requests are null or an array of that length.
    unsafe fn requested_layout(
        &self,
        requests: *const clap_audio_port_configuration_request,
        count: u32,
    ) -> Option<PortLayout> {
        if self.inactive_changes.is_active() || requests.is_null() && count > 0 {
            return None;
        }
        (0..count as usize).try_fold(self.audio_ports.announced.get(), |layout, index| {
            // SAFETY: guaranteed by the caller; the index is below the count.
            let request = unsafe { &*requests.add(index) };
            layout.with(request.is_input, request.port_index, request.channel_count)
        })
    }

    /// Describes an announced port. The framework describes the port of the same index.
    fn port_info(&self, index: u32, is_input: bool, info: &mut clap_audio_port_info) -> bool {
        let mut layout = self.audio_ports.announced.get();
        let Some(&mut channels) = layout.channels(is_input, index) else {
            return false;
        };
        // SAFETY: this is the type of that id, the framework's plugin is alive, and there is room
        // for an info.
        let is_known = unsafe {
            let ports = self.framework_extension::<clap_plugin_audio_ports>(CLAP_EXT_AUDIO_PORTS);
            ports
                .and_then(|ports| ports.get)
                .is_some_and(|get| get(&raw const self.inner, index, is_input, info))
        };
        info.channel_count = channels;
        info.port_type = match channels {
            1 => CLAP_PORT_MONO.as_ptr(),
            2 => CLAP_PORT_STEREO.as_ptr(),
            _ => null(),
        };
        if layout.input != layout.output {
            info.in_place_pair = CLAP_INVALID_ID;
        }
        is_known
    }
}

unsafe extern "C" fn count(plugin: *const clap_plugin, is_input: bool) -> u32 {
    // SAFETY: the host passes the pointer that `create` returned, here and below.
    unsafe { PluginWrapper::of(plugin) }.map_or(0, |wrapper| {
        wrapper.audio_ports.announced.get().count(is_input)
    })
}

unsafe extern "C" fn get(
    plugin: *const clap_plugin,
    index: u32,
    is_input: bool,
    info: *mut clap_audio_port_info,
) -> bool {
    // SAFETY: as above; there is room for an info.
    let (wrapper, info) = unsafe { (PluginWrapper::of(plugin), info.as_mut()) };
    let (Some(wrapper), Some(info)) = (wrapper, info) else {
        return false;
    };
    wrapper.port_info(index, is_input, info)
}

unsafe extern "C" fn can_apply_configuration(
    plugin: *const clap_plugin,
    requests: *const clap_audio_port_configuration_request,
    count: u32,
) -> bool {
    // SAFETY: as above; the host passes an array of that length.
    unsafe {
        PluginWrapper::of(plugin)
            .is_some_and(|wrapper| wrapper.requested_layout(requests, count).is_some())
    }
}

unsafe extern "C" fn apply_configuration(
    plugin: *const clap_plugin,
    requests: *const clap_audio_port_configuration_request,
    count: u32,
) -> bool {
    // SAFETY: as above.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    // SAFETY: as above.
    let Some(layout) = (unsafe { wrapper.requested_layout(requests, count) }) else {
        return false;
    };
    wrapper.audio_ports.announced.set(layout);
    true
}

unsafe extern "C" fn configuration_count(plugin: *const clap_plugin) -> u32 {
    // SAFETY: as above.
    unsafe { PluginWrapper::of(plugin) }
        .map_or(0, |wrapper| wrapper.audio_ports.offered.len() as u32)
}

unsafe extern "C" fn get_configuration(
    plugin: *const clap_plugin,
    index: u32,
    to: *mut clap_audio_ports_config,
) -> bool {
    // SAFETY: as above.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    if index as usize >= wrapper.audio_ports.offered.len() {
        return false;
    }
    // SAFETY: this is the type of that id, and the framework's plugin is alive; the framework
    // checks the pointer.
    unsafe {
        let get = wrapper
            .framework_extension::<clap_plugin_audio_ports_config>(CLAP_EXT_AUDIO_PORTS_CONFIG);
        get.and_then(|configurations| configurations.get)
            .is_some_and(|get| get(&raw const wrapper.inner, index, to))
    }
}

unsafe extern "C" fn select_configuration(plugin: *const clap_plugin, id: clap_id) -> bool {
    // SAFETY: as above.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    let layout = wrapper
        .audio_ports
        .offered
        .get(id as usize)
        .filter(|_| !wrapper.inactive_changes.is_active());
    layout
        .inspect(|layout| wrapper.audio_ports.announced.set(**layout))
        .is_some()
}
