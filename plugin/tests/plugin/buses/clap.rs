//! A CLAP instance by its C interface.

use std::ptr::{from_ref, null, null_mut};

use clap_sys::audio_buffer::clap_audio_buffer;
use clap_sys::ext::audio_ports::{
    CLAP_EXT_AUDIO_PORTS, clap_audio_port_info, clap_plugin_audio_ports,
};
use clap_sys::ext::configurable_audio_ports::{
    CLAP_EXT_CONFIGURABLE_AUDIO_PORTS, clap_audio_port_configuration_request,
    clap_plugin_configurable_audio_ports,
};
use clap_sys::plugin::clap_plugin;
use clap_sys::process::clap_process;

use super::{Bus, Instance};
use crate::host::Host;

pub struct Clap {
    _host: Host,
    pub raw: *const clap_plugin,
    active: bool,
}

impl Clap {
    pub fn new(id: &str, state: &[u8]) -> Self {
        let mut host = Host::new(id);
        assert!(host.load(state));
        host.set_offline(true);
        let raw = from_ref(host.instance.raw_instance());
        Self {
            _host: host,
            raw,
            active: false,
        }
    }

    fn extension<T>(&self, id: &std::ffi::CStr) -> &T {
        // SAFETY: the plugin is alive; for these ids it returns that type, or null.
        unsafe {
            (*self.raw).get_extension.unwrap()(self.raw, id.as_ptr())
                .cast::<T>()
                .as_ref()
        }
        .expect("the extension")
    }
}

impl Instance for Clap {
    fn arrange(&mut self, inputs: &[u32], outputs: &[u32]) -> bool {
        let request = |is_input: bool, channels: &[u32]| {
            let request = move |(port_index, channel_count): (u32, &u32)| {
                clap_audio_port_configuration_request {
                    is_input,
                    port_index,
                    channel_count: *channel_count,
                    port_type: null(),
                    port_details: null(),
                }
            };
            (0..).zip(channels).map(request).collect::<Vec<_>>()
        };
        let requests = [request(true, inputs), request(false, outputs)].concat();
        let configurable: &clap_plugin_configurable_audio_ports =
            self.extension(CLAP_EXT_CONFIGURABLE_AUDIO_PORTS);
        // SAFETY: the plugin is alive, and the requests outlive the calls.
        unsafe {
            let (requests, count) = (requests.as_ptr(), requests.len() as u32);
            let can = configurable.can_apply_configuration.unwrap()(self.raw, requests, count);
            let is_applied = configurable.apply_configuration.unwrap()(self.raw, requests, count);
            assert_eq!(can, is_applied);
            is_applied
        }
    }

    fn arrangement(&self) -> [Vec<u32>; 2] {
        let ports: &clap_plugin_audio_ports = self.extension(CLAP_EXT_AUDIO_PORTS);
        [true, false].map(|is_input| {
            let channels =
                // SAFETY: the plugin is alive, and fills the structure.
                (0..unsafe { ports.count.unwrap()(self.raw, is_input) }).map(|index| unsafe {
                    let mut info: clap_audio_port_info = std::mem::zeroed();
                    assert!(ports.get.unwrap()(self.raw, index, is_input, &raw mut info));
                    info.channel_count
                });
            channels.collect()
        })
    }

    fn activate(&mut self, sample_rate: f64, block: usize) -> bool {
        // SAFETY: the calls follow CLAP's order.
        self.active = unsafe {
            (*self.raw).activate.unwrap()(self.raw, sample_rate, 1, block as u32)
                && (*self.raw).start_processing.unwrap()(self.raw)
        };
        self.active
    }

    fn deactivate(&mut self) {
        if std::mem::take(&mut self.active) {
            // SAFETY: as above.
            unsafe {
                (*self.raw).stop_processing.unwrap()(self.raw);
                (*self.raw).deactivate.unwrap()(self.raw);
            }
        }
    }

    fn process(
        &mut self,
        inputs: Option<&[Bus]>,
        outputs: Option<&[Bus]>,
        frames: usize,
        is_wide: bool,
    ) {
        let buffers = |buses: Option<&[Bus]>| -> Vec<clap_audio_buffer> {
            let buffer = |bus: &Bus| {
                let pointers = bus.pointers(is_wide);
                let (data32, data64) = if is_wide {
                    (null_mut(), pointers)
                } else {
                    (pointers, null_mut())
                };
                let (data32, data64) = (data32.cast(), data64.cast());
                clap_audio_buffer {
                    data32,
                    data64,
                    channel_count: bus.channels,
                    latency: 0,
                    constant_mask: 0,
                }
            };
            buses.unwrap_or_default().iter().map(buffer).collect()
        };
        let (ins, mut outs) = (buffers(inputs), buffers(outputs));
        let block = clap_process {
            steady_time: -1,
            frames_count: frames as u32,
            transport: null(),
            audio_inputs: if inputs.is_some() {
                ins.as_ptr()
            } else {
                null()
            },
            audio_outputs: if outputs.is_some() {
                outs.as_mut_ptr()
            } else {
                null_mut()
            },
            // A null pointer for ports that are counted.
            audio_inputs_count: inputs.map_or(2, |inputs| inputs.len() as u32),
            audio_outputs_count: outputs.map_or(1, |outputs| outputs.len() as u32),
            in_events: null(),
            out_events: null(),
        };
        // SAFETY: the buffers live longer than the call.
        unsafe { (*self.raw).process.unwrap()(self.raw, &raw const block) };
    }
}

impl Drop for Clap {
    fn drop(&mut self) {
        self.deactivate();
    }
}
