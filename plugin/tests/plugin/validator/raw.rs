//! A plugin behind its C interface, with every event and buffer that CLAP allows.

use std::ffi::{CStr, c_void};
use std::ptr::{from_ref, null, null_mut};

use clap_sys::audio_buffer::clap_audio_buffer;
use clap_sys::events::*;
use clap_sys::ext::audio_ports::{
    CLAP_EXT_AUDIO_PORTS, clap_audio_port_info, clap_plugin_audio_ports,
};
use clap_sys::ext::params::{CLAP_EXT_PARAMS, clap_param_info, clap_plugin_params};
use clap_sys::ext::state::{CLAP_EXT_STATE, clap_plugin_state};
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_ERROR, clap_process};
use clap_sys::stream::{clap_istream, clap_ostream};

use crate::host::Host;

/// An input event.
#[derive(Clone, Copy)]
pub enum InputEvent {
    Parameter(clap_event_param_value),
    Note(clap_event_note),
    Midi(clap_event_midi),
}

impl InputEvent {
    fn header(&self) -> &clap_event_header {
        match self {
            Self::Parameter(event) => &event.header,
            Self::Note(event) => &event.header,
            Self::Midi(event) => &event.header,
        }
    }

    pub fn parameter(time: u32, param_id: clap_id, value: f64) -> Self {
        let header = header::<clap_event_param_value>(time, CLAP_EVENT_PARAM_VALUE);
        let cookie = null_mut();
        Self::Parameter(clap_event_param_value {
            header,
            param_id,
            cookie,
            note_id: -1,
            port_index: -1,
            channel: -1,
            key: -1,
            value,
        })
    }

    /// An event of one of the note types.
    pub fn note(
        time: u32,
        type_: u16,
        note_id: i32,
        channel: i16,
        key: i16,
        velocity: f64,
    ) -> Self {
        let header = header::<clap_event_note>(time, type_);
        Self::Note(clap_event_note {
            header,
            note_id,
            port_index: 0,
            channel,
            key,
            velocity,
        })
    }

    pub fn midi(time: u32, data: [u8; 3]) -> Self {
        Self::Midi(clap_event_midi {
            header: header::<clap_event_midi>(time, CLAP_EVENT_MIDI),
            port_index: 0,
            data,
        })
    }

    /// Moves the event to a namespace that no plugin knows.
    pub fn in_another_namespace(mut self) -> Self {
        match &mut self {
            Self::Parameter(event) => event.header.space_id = 0xB33F,
            Self::Note(event) => event.header.space_id = 0xB33F,
            Self::Midi(event) => event.header.space_id = 0xB33F,
        }
        self
    }
}

fn header<T>(time: u32, type_: u16) -> clap_event_header {
    clap_event_header {
        size: size_of::<T>() as u32,
        time,
        space_id: CLAP_CORE_EVENT_SPACE_ID,
        type_,
        flags: 0,
    }
}

unsafe extern "C" fn size(list: *const clap_input_events) -> u32 {
    // SAFETY: only `input_list` makes such lists, around a slice.
    unsafe { (*list).ctx.cast::<&[InputEvent]>().read().len() as u32 }
}

unsafe extern "C" fn get(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: as above.
    let events = unsafe { (*list).ctx.cast::<&[InputEvent]>().read() };
    events
        .get(index as usize)
        .map_or(null(), |event| event.header())
}

fn input_list(events: &&[InputEvent]) -> clap_input_events {
    clap_input_events {
        ctx: from_ref(events).cast_mut().cast(),
        size: Some(size),
        get: Some(get),
    }
}

unsafe extern "C" fn accept(_: *const clap_output_events, _: *const clap_event_header) -> bool {
    true
}

const OUTPUT_LIST: clap_output_events = clap_output_events {
    ctx: null_mut(),
    try_push: Some(accept),
};

/// A parameter as the host sees it.
pub struct Info {
    pub id: clap_id,
    pub name: String,
    pub min: f64,
    pub max: f64,
    pub default: f64,
    pub flags: u32,
}

/// `[port][channel][frame]`
pub type Audio = Vec<Vec<Vec<f32>>>;

pub struct Plugin {
    _host: Host,
    raw: *const clap_plugin,
    active: bool,
}

impl Plugin {
    pub fn new(id: &str) -> Self {
        let mut host = Host::new(id);
        // So that a busy machine causes no dropouts.
        host.set_offline(true);
        let raw = from_ref(host.instance.raw_instance());
        Self {
            _host: host,
            raw,
            active: false,
        }
    }

    /// Returns an extension, of the type of its id.
    fn extension<T>(&self, id: &CStr) -> &T {
        // SAFETY: the plugin is alive; for these ids it returns that type, or null.
        unsafe {
            (*self.raw).get_extension.unwrap()(self.raw, id.as_ptr())
                .cast::<T>()
                .as_ref()
        }
        .expect("the extension")
    }

    fn params(&self) -> &clap_plugin_params {
        self.extension(CLAP_EXT_PARAMS)
    }

    pub fn infos(&self) -> Vec<Info> {
        let params = self.params();
        // SAFETY: the plugin is alive, and fills the structure.
        let infos = (0..unsafe { params.count.unwrap()(self.raw) }).map(|index| unsafe {
            let mut info: clap_param_info = std::mem::zeroed();
            assert!(params.get_info.unwrap()(self.raw, index, &raw mut info));
            let name = CStr::from_ptr(info.name.as_ptr())
                .to_str()
                .unwrap()
                .to_owned();
            let clap_param_info {
                id,
                min_value: min,
                max_value: max,
                default_value: default,
                flags,
                ..
            } = info;
            Info {
                id,
                name,
                min,
                max,
                default,
                flags,
            }
        });
        infos.collect()
    }

    pub fn value(&self, id: clap_id) -> f64 {
        let mut value = f64::NAN;
        // SAFETY: the plugin is alive, and there is room for a value.
        assert!(unsafe { self.params().get_value.unwrap()(self.raw, id, &raw mut value) });
        value
    }

    pub fn text(&self, id: clap_id, value: f64) -> String {
        let mut text = [0; 256];
        // SAFETY: there is room for the text, which ends with NUL.
        unsafe {
            assert!(self.params().value_to_text.unwrap()(
                self.raw,
                id,
                value,
                text.as_mut_ptr(),
                text.len() as u32
            ));
            CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_owned()
        }
    }

    pub fn parse(&self, id: clap_id, text: &str) -> Option<f64> {
        let text = std::ffi::CString::new(text).unwrap();
        let mut value = f64::NAN;
        // SAFETY: the text ends with NUL, and there is room for a value.
        unsafe { self.params().text_to_value.unwrap()(self.raw, id, text.as_ptr(), &raw mut value) }
            .then_some(value)
    }

    pub fn flush(&self, events: &[InputEvent]) {
        let (list, output_list) = (input_list(&events), OUTPUT_LIST);
        // SAFETY: lists and events live longer than the call.
        unsafe { self.params().flush.unwrap()(self.raw, &raw const list, &raw const output_list) };
    }

    /// Saves the state to a stream that takes at most `chunk` bytes at a time.
    pub fn save(&self, chunk: usize) -> Vec<u8> {
        unsafe extern "C" fn write(
            stream: *const clap_ostream,
            from: *const c_void,
            size: u64,
        ) -> i64 {
            // SAFETY: this is the context of the stream below; the plugin passes that many bytes.
            unsafe {
                let (bytes, chunk) = &mut *(*stream).ctx.cast::<(Vec<u8>, usize)>();
                let size = (size as usize).min(*chunk);
                bytes.extend_from_slice(std::slice::from_raw_parts(from.cast(), size));
                size as i64
            }
        }
        let mut target = (Vec::new(), chunk);
        let stream = clap_ostream {
            ctx: (&raw mut target).cast(),
            write: Some(write),
        };
        let state: &clap_plugin_state = self.extension(CLAP_EXT_STATE);
        // SAFETY: the stream lives longer than the call.
        assert!(unsafe { state.save.unwrap()(self.raw, &raw const stream) });
        target.0
    }

    /// Loads a state from a stream that returns at most `chunk` bytes at a time.
    pub fn load(&self, bytes: &[u8], chunk: usize) -> bool {
        unsafe extern "C" fn read(stream: *const clap_istream, to: *mut c_void, size: u64) -> i64 {
            // SAFETY: this is the context of the stream below; the plugin has room for that many
            // bytes.
            unsafe {
                let (rest, chunk) = &mut *(*stream).ctx.cast::<(&[u8], usize)>();
                let (now, later) = rest.split_at((size as usize).min(*chunk).min(rest.len()));
                std::ptr::copy_nonoverlapping(now.as_ptr(), to.cast(), now.len());
                *rest = later;
                now.len() as i64
            }
        }
        let mut source = (bytes, chunk);
        let stream = clap_istream {
            ctx: (&raw mut source).cast(),
            read: Some(read),
        };
        let state: &clap_plugin_state = self.extension(CLAP_EXT_STATE);
        // SAFETY: the stream lives longer than the call.
        unsafe { state.load.unwrap()(self.raw, &raw const stream) }
    }

    /// Activates and starts processing; returns whether the plugin accepts that.
    pub fn activate(&mut self, sample_rate: f64, max_block: u32) -> bool {
        self.deactivate();
        // SAFETY: the calls follow CLAP's order.
        self.active = unsafe {
            (*self.raw).activate.unwrap()(self.raw, sample_rate, 1, max_block)
                && (*self.raw).start_processing.unwrap()(self.raw)
        };
        self.active
    }

    pub fn deactivate(&mut self) {
        if std::mem::take(&mut self.active) {
            // SAFETY: as above.
            unsafe {
                (*self.raw).stop_processing.unwrap()(self.raw);
                (*self.raw).deactivate.unwrap()(self.raw);
            }
        }
    }

    pub fn reset(&self) {
        assert!(self.active);
        // SAFETY: the plugin is active.
        unsafe { (*self.raw).reset.unwrap()(self.raw) };
    }

    /// Returns the number of channels of each port.
    pub fn ports(&self, is_input: bool) -> Vec<usize> {
        let ports: &clap_plugin_audio_ports = self.extension(CLAP_EXT_AUDIO_PORTS);
        let channels =
            // SAFETY: the plugin is alive, and fills the structure.
            (0..unsafe { ports.count.unwrap()(self.raw, is_input) }).map(|index| unsafe {
                let mut info: clap_audio_port_info = std::mem::zeroed();
                assert!(ports.get.unwrap()(self.raw, index, is_input, &raw mut info));
                info.channel_count as usize
            });
        channels.collect()
    }

    /// Processes one block, with the output in the input's buffers if `in_place`; returns the
    /// output ports' audio.
    pub fn process(&self, events: &[InputEvent], input: &Audio, in_place: bool) -> Audio {
        assert!(self.active);
        let frames = input
            .iter()
            .flatten()
            .map(Vec::len)
            .next()
            .expect("a plugin with input");
        let mut inputs = input.clone();
        let outputs = self.ports(false);
        let mut apart: Audio = outputs
            .iter()
            .map(|channels| vec![vec![f32::NAN; frames]; *channels])
            .collect();
        let pointers = |audio: &mut Audio| -> Vec<Vec<*mut f32>> {
            audio
                .iter_mut()
                .map(|port| {
                    port.iter_mut()
                        .map(|channel| channel.as_mut_ptr())
                        .collect()
                })
                .collect()
        };
        let mut in_pointers = pointers(&mut inputs);
        let mut out_pointers = if in_place {
            in_pointers.clone()
        } else {
            pointers(&mut apart)
        };
        let buffers = |pointers: &mut Vec<Vec<*mut f32>>| -> Vec<clap_audio_buffer> {
            let buffer = |port: &mut Vec<*mut f32>| clap_audio_buffer {
                data32: port.as_mut_ptr(),
                data64: null_mut(),
                channel_count: port.len() as u32,
                latency: 0,
                constant_mask: 0,
            };
            pointers.iter_mut().map(buffer).collect()
        };
        let (ins, mut outs) = (buffers(&mut in_pointers), buffers(&mut out_pointers));
        let (list, output_list) = (input_list(&events), OUTPUT_LIST);
        let block = clap_process {
            steady_time: -1,
            frames_count: frames as u32,
            transport: null(),
            audio_inputs: ins.as_ptr(),
            audio_outputs: outs.as_mut_ptr(),
            audio_inputs_count: ins.len() as u32,
            audio_outputs_count: outs.len() as u32,
            in_events: &raw const list,
            out_events: &raw const output_list,
        };
        // SAFETY: buffers and lists live longer than the call.
        let status = unsafe { (*self.raw).process.unwrap()(self.raw, &raw const block) };
        assert_ne!(status, CLAP_PROCESS_ERROR);
        if in_place { inputs } else { apart }
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.deactivate();
    }
}
