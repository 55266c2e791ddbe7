//! CLAP host for tests; loads the built shared object as a DAW does.

#![allow(dead_code, reason = "not every test binary uses everything")]

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use clack_extensions::gui::{GuiSize, HostGui, HostGuiImpl};
use clack_extensions::latency::{HostLatency, HostLatencyImpl, PluginLatency};
use clack_extensions::params::{
    HostParams, HostParamsImplMainThread, HostParamsImplShared, ParamClearFlags, ParamInfoBuffer,
    ParamRescanFlags, PluginParams,
};
use clack_extensions::render::{PluginRender, RenderMode};
use clack_extensions::state::{HostState, HostStateImpl, PluginState};
use clack_extensions::tail::PluginTail;
use clack_extensions::timer::{HostTimer, HostTimerImpl, PluginTimer, TimerId};
use clack_extensions::voice_info::{HostVoiceInfo, HostVoiceInfoImpl, PluginVoiceInfo};
use clack_host::events::event_types::{
    MidiEvent, NoteExpressionEvent, NoteExpressionType, NoteOffEvent, NoteOnEvent, ParamModEvent,
    ParamValueEvent,
};
use clack_host::events::spaces::CoreEventSpace;
use clack_host::prelude::*;
use clap_sys::ext::audio_ports_config::{
    CLAP_EXT_AUDIO_PORTS_CONFIG, clap_plugin_audio_ports_config,
};
use clap_sys::ext::preset_load::{CLAP_EXT_PRESET_LOAD, clap_plugin_preset_load};
use clap_sys::factory::preset_discovery::CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN;
use ondes_player::parameter::{PARAMETERS, Parameter};

pub const INSTRUMENT: &str = "org.ondes.instrument";
pub const EFFECT: &str = "org.ondes.effect";

/// Event at one sample of a block.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// Key and velocity, 0 … 1.
    NoteOn(u8, f64),
    /// Key.
    NoteOff(u8),
    /// Key, id and velocity of a note that the host numbers itself.
    NumberedNoteOn(u8, u32, f64),
    /// Key and id.
    NumberedNoteOff(u8, u32),
    /// Raw MIDI message.
    Midi([u8; 3]),
    /// Key, expression and value.
    NoteExpression(u8, NoteExpressionType, f64),
    /// Label of a parameter in the table, and value in its unit.
    SetParameter(&'static str, f64),
    /// Label of a parameter in the table, and offset in its unit.
    Modulate(&'static str, f64),
}

#[derive(Default)]
pub struct Shared {
    pub restart: AtomicBool,
    /// The plugin requested processing.
    pub process: AtomicBool,
    callback: AtomicBool,
    /// Size that the window requested last.
    pub size: Mutex<Option<GuiSize>>,
}

impl SharedHandler<'_> for Shared {
    fn request_restart(&self) {
        self.restart.store(true, Ordering::Relaxed);
    }
    fn request_process(&self) {
        self.process.store(true, Ordering::Relaxed);
    }
    fn request_callback(&self) {
        self.callback.store(true, Ordering::Relaxed);
    }
}

impl HostGuiImpl for Shared {
    fn resize_hints_changed(&self) {}
    fn request_resize(&self, new_size: GuiSize) -> Result<(), HostError> {
        *self.size.lock().unwrap() = Some(new_size);
        Ok(())
    }
    fn request_show(&self) -> Result<(), HostError> {
        Ok(())
    }
    fn request_hide(&self) -> Result<(), HostError> {
        Ok(())
    }
    fn closed(&self, _: bool) {}
}

impl HostParamsImplShared for Shared {
    fn request_flush(&self) {}
}

#[derive(Default)]
pub struct Main {
    pub latency_changes: Cell<usize>,
    pub voice_changes: Cell<usize>,
    /// Flags of all parameter rescans.
    pub rescans: Cell<u32>,
    pub dirty: Cell<bool>,
    timer: Cell<Option<TimerId>>,
}

impl MainThreadHandler<'_> for Main {}

impl HostLatencyImpl for Main {
    fn changed(&self) {
        self.latency_changes.set(self.latency_changes.get() + 1);
    }
}

impl HostParamsImplMainThread for Main {
    fn rescan(&self, flags: ParamRescanFlags) {
        self.rescans.set(self.rescans.get() | flags.bits());
    }
    fn clear(&self, _: ClapId, _: ParamClearFlags) {}
}

impl HostStateImpl for Main {
    fn mark_dirty(&self) {
        self.dirty.set(true);
    }
}

impl HostTimerImpl for Main {
    fn register_timer(&self, _: u32) -> Result<TimerId, HostError> {
        assert_eq!(
            self.timer.replace(Some(TimerId(5))),
            None,
            "one timer per instance"
        );
        Ok(TimerId(5))
    }
    fn unregister_timer(&self, timer: TimerId) -> Result<(), HostError> {
        assert_eq!(self.timer.take(), Some(timer));
        Ok(())
    }
}

impl HostVoiceInfoImpl for Main {
    fn changed(&self) {
        self.voice_changes.set(self.voice_changes.get() + 1);
    }
}

pub struct Handlers;

impl HostHandlers for Handlers {
    type Shared<'a> = Shared;
    type MainThread<'a> = Main;
    type AudioProcessor<'a> = ();

    fn declare_extensions(builder: &mut HostExtensions<Self>, _: &Self::Shared<'_>) {
        builder
            .register::<HostGui>()
            .register::<HostLatency>()
            .register::<HostParams>();
        builder
            .register::<HostState>()
            .register::<HostTimer>()
            .register::<HostVoiceInfo>();
    }
}

/// Returns the shared object's path, next to the test binary.
pub fn object() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let name = format!(
        "{}ondes_plugin{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let path = test.with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing; build the ondes-plugin library first",
        path.display()
    );
    path
}

pub fn entry() -> &'static PluginEntry {
    static ENTRY: OnceLock<PluginEntry> = OnceLock::new();
    // SAFETY: the plugin is our own; its entry conforms to the CLAP ABI.
    ENTRY.get_or_init(|| unsafe { PluginEntry::load(object()) }.unwrap())
}

/// Returns the id for hosts of the parameter with that label in the table.
pub fn parameter_id(label: &str) -> u32 {
    let id = PARAMETERS
        .iter()
        .find(|parameter| parameter.label == label)
        .expect("the parameter exists")
        .id;
    id.bytes().fold(0_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    }) & (u32::MAX >> 1)
}

/// One plugin instance with stereo ports: an input, the effect's side-chain, and an output.
pub struct Host {
    processor: Option<StartedPluginAudioProcessor<Handlers>>,
    /// Ids by the label in the table, which the name for the host may differ from.
    pub parameters: HashMap<String, ClapId>,
    /// Lowest and highest value by label.
    pub ranges: HashMap<String, (f64, f64)>,
    ports: (AudioPorts, AudioPorts),
    /// The effect has a side-chain beside its input.
    has_side_chain: bool,
    /// Sound of the effect's side-chain for the next blocks; silent beyond.
    pub side_chain: Vec<f32>,
    /// Parameter events that the plugin sent in the last block: time, id, value.
    pub parameter_events: Vec<(u32, ClapId, f64)>,
    /// Status of the last block.
    pub status: Option<ProcessStatus>,
    pub instance: PluginInstance<Handlers>,
}

impl Host {
    pub fn new(id: &str) -> Self {
        Self::with_entry(entry(), id)
    }

    /// Creates an instance from any entry, not necessarily the shared object's.
    pub fn with_entry(entry: &PluginEntry, id: &str) -> Self {
        let info = HostInfo::new("Ondes tests", "Ondes", "", "1").unwrap();
        let id = std::ffi::CString::new(id).unwrap();
        let mut instance = PluginInstance::<Handlers>::new(
            |()| Shared::default(),
            |_| Main::default(),
            entry,
            &id,
            &info,
        )
        .unwrap();
        let (mut parameters, mut ranges) = (HashMap::new(), HashMap::new());
        let plugin = instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        for index in 0..params.count(&plugin) {
            let mut buffer = ParamInfoBuffer::new();
            let info = params.get_info(&plugin, index, &mut buffer).unwrap();
            let is_this = |parameter: &&Parameter| parameter_id(parameter.label) == info.id.get();
            let label = PARAMETERS
                .iter()
                .find(is_this)
                .expect("the table has it")
                .label
                .to_owned();
            ranges.insert(label.clone(), (info.min_value, info.max_value));
            parameters.insert(label, info.id);
        }
        let ports = || AudioPorts::with_capacity(4, 2);
        let has_side_chain = id.as_bytes() == EFFECT.as_bytes();
        Self {
            processor: None,
            parameters,
            ranges,
            ports: (ports(), ports()),
            has_side_chain,
            side_chain: Vec::new(),
            parameter_events: Vec::new(),
            status: None,
            instance,
        }
    }

    pub fn active_offline(id: &str, sample_rate: f64, max_block: u32) -> Self {
        let mut host = Self::new(id);
        // Offline, so that a busy machine causes no dropouts.
        host.set_offline(true);
        host.activate(sample_rate, max_block);
        host
    }

    pub fn activate(&mut self, sample_rate: f64, max_frames_count: u32) {
        let configuration = PluginAudioConfiguration {
            sample_rate,
            min_frames_count: 1,
            max_frames_count,
        };
        let processor = self.instance.activate(|_, _| (), configuration).unwrap();
        self.processor = Some(processor.start_processing().unwrap());
    }

    pub fn deactivate(&mut self) {
        if let Some(processor) = self.processor.take() {
            self.instance.deactivate(processor.stop_processing());
        }
    }

    pub fn reset(&mut self) {
        self.processor.as_mut().unwrap().reset();
    }

    fn push_event(&self, time: u32, event: &HostEvent, buffer: &mut EventBuffer) {
        let note = |key: u8| Pckn::new(0u16, 0u16, u16::from(key), 1000 + u32::from(key));
        // Also of a parameter that is not listed.
        let event_id = |name: &str| ClapId::new(parameter_id(name));
        match *event {
            HostEvent::NoteOn(key, velocity) => {
                buffer.push(&NoteOnEvent::new(time, note(key), velocity))
            }
            HostEvent::NoteOff(key) => buffer.push(&NoteOffEvent::new(time, note(key), 0.5)),
            HostEvent::NumberedNoteOn(key, id, velocity) => {
                buffer.push(&NoteOnEvent::new(
                    time,
                    Pckn::new(0u16, 0u16, u16::from(key), id),
                    velocity,
                ));
            }
            HostEvent::NumberedNoteOff(key, id) => {
                buffer.push(&NoteOffEvent::new(
                    time,
                    Pckn::new(0u16, 0u16, u16::from(key), id),
                    0.5,
                ));
            }
            HostEvent::Midi(bytes) => buffer.push(&MidiEvent::new(time, 0, bytes)),
            HostEvent::NoteExpression(key, expression, value) => {
                buffer.push(&NoteExpressionEvent::new(
                    time,
                    note(key),
                    expression,
                    value,
                ));
            }
            HostEvent::SetParameter(name, value) => {
                buffer.push(&ParamValueEvent::new(
                    time,
                    event_id(name),
                    Pckn::match_all(),
                    value,
                ));
            }
            HostEvent::Modulate(name, amount) => {
                buffer.push(&ParamModEvent::new(
                    time,
                    event_id(name),
                    Pckn::match_all(),
                    amount,
                ));
            }
        }
    }

    /// Plays one block with the same input on both channels; returns both output channels.
    pub fn block(
        &mut self,
        frames: usize,
        events: &[(u32, HostEvent)],
        input: Option<&[f32]>,
    ) -> [Vec<f32>; 2] {
        self.channels_block(frames, events, input.map(|input| [input; 2]))
    }

    /// Plays one block with ports of N channels; returns all output channels.
    pub fn channels_block<const N: usize>(
        &mut self,
        frames: usize,
        events: &[(u32, HostEvent)],
        input: Option<[&[f32]; N]>,
    ) -> [Vec<f32>; N] {
        let mut buffer = EventBuffer::with_capacity(events.len());
        events
            .iter()
            .for_each(|(time, event)| self.push_event(*time, event, &mut buffer));
        let mut inputs = input.map_or_else(
            || std::array::from_fn(|_| vec![0.0; frames]),
            |input| input.map(<[f32]>::to_vec),
        );
        let mut outputs: [Vec<f32>; N] = std::array::from_fn(|_| vec![f32::NAN; frames]);
        let mut side_chain = vec![0.0; frames];
        let here = frames.min(self.side_chain.len());
        side_chain[..here].copy_from_slice(&self.side_chain[..here]);
        self.side_chain.drain(..here);
        let mut side_chain: [Vec<f32>; N] = std::array::from_fn(|_| side_chain.clone());
        let buffers = if self.has_side_chain {
            vec![&mut inputs, &mut side_chain]
        } else {
            vec![&mut inputs]
        };
        let input = self
            .ports
            .0
            .with_input_buffers(buffers.into_iter().map(|channels| AudioPortBuffer {
                latency: 0,
                channels: AudioPortBufferType::f32_input_only(
                    channels.iter_mut().map(InputChannel::variable),
                ),
            }));
        let mut output = self.ports.1.with_output_buffers([AudioPortBuffer {
            latency: 0,
            channels: AudioPortBufferType::f32_output_only(
                outputs.iter_mut().map(Vec::as_mut_slice),
            ),
        }]);
        // Large enough for all events: a push must not allocate on the plugin's audio thread.
        let mut output_events = EventBuffer::with_capacity(4096);
        let processor = self.processor.as_mut().expect("active");
        let status = processor.process(
            &input,
            &mut output,
            &buffer.as_input(),
            &mut output_events.as_output(),
            None,
            None,
        );
        self.status = Some(status.expect("the plugin plays"));
        self.parameter_events.clear();
        for event in output_events.iter() {
            if let Some(CoreEventSpace::ParamValue(event)) = event.as_core_event() {
                self.parameter_events.push((
                    event.header().time(),
                    event.param_id().unwrap(),
                    event.value(),
                ));
            }
        }
        self.call_back();
        outputs
    }

    /// Calls the plugin on the main thread if it has asked for that. Returns whether it has.
    pub fn call_back(&mut self) -> bool {
        let requested = self
            .instance
            .access_shared_handler(|shared| shared.callback.swap(false, Ordering::Relaxed));
        if requested {
            self.instance.call_on_main_thread_callback();
        }
        requested
    }

    /// Calls the plugin by its timer, as a host does that ignores requests for a call.
    pub fn tick(&mut self) {
        let timer = self
            .instance
            .access_handler(|main| main.timer.get())
            .expect("the plugin has a timer");
        let plugin = self.instance.plugin_handle();
        plugin
            .get_extension::<PluginTimer>()
            .unwrap()
            .on_timer(&plugin, timer);
    }

    /// Returns a parameter's name for the host, by its label in the table.
    pub fn name(&mut self, label: &str) -> String {
        let plugin = self.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        let mut buffer = ParamInfoBuffer::new();
        let index = (0..params.count(&plugin)).find(|index| {
            params.get_info(&plugin, *index, &mut buffer).unwrap().id == self.parameters[label]
        });
        let info = params
            .get_info(&plugin, index.unwrap(), &mut buffer)
            .unwrap();
        String::from_utf8(info.name.to_vec()).unwrap()
    }

    /// Sends parameter changes while nothing is processed. Returns the events that the plugin sends
    /// back.
    pub fn flush(&mut self, events: &[HostEvent]) -> Vec<(ClapId, f64)> {
        let mut buffer = EventBuffer::with_capacity(events.len());
        events
            .iter()
            .for_each(|event| self.push_event(0, event, &mut buffer));
        let mut output = EventBuffer::with_capacity(64);
        let plugin = self.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        let mut plugin = self.instance.inactive_plugin_handle().expect("not active");
        params.flush(&mut plugin, &buffer.as_input(), &mut output.as_output());
        let values = output
            .iter()
            .filter_map(|event| match event.as_core_event() {
                Some(CoreEventSpace::ParamValue(event)) => Some((event.param_id()?, event.value())),
                _ => None,
            });
        values.collect()
    }

    /// Returns the number of voices and their capacity; `None` without the extension.
    pub fn voices(&mut self) -> Option<(u32, u32)> {
        let plugin = self.instance.plugin_handle();
        let info = plugin.get_extension::<PluginVoiceInfo>()?.get(&plugin)?;
        Some((info.voice_count, info.voice_capacity))
    }

    /// Plays `frames` samples in blocks, with events at samples of the whole; returns the left
    /// channel.
    pub fn play(
        &mut self,
        frames: usize,
        block: usize,
        events: &[(usize, HostEvent)],
        input: Option<&[f32]>,
    ) -> Vec<f32> {
        let mut sound = Vec::with_capacity(frames);
        while sound.len() < frames {
            let (start, length) = (sound.len(), block.min(frames - sound.len()));
            let here = events
                .iter()
                .filter(|(time, _)| (start..start + length).contains(time));
            let here: Vec<_> = here
                .map(|(time, event)| ((time - start) as u32, event.clone()))
                .collect();
            let [left, _] = self.block(
                length,
                &here,
                input.map(|input| &input[start..start + length]),
            );
            sound.extend(left);
        }
        sound
    }

    pub fn save(&mut self) -> Vec<u8> {
        let plugin = self.instance.plugin_handle();
        let state: PluginState = plugin.get_extension().unwrap();
        let mut bytes = Vec::new();
        state.save(&plugin, &mut bytes).unwrap();
        bytes
    }

    pub fn load(&mut self, mut bytes: &[u8]) -> bool {
        let plugin = self.instance.plugin_handle();
        let state: PluginState = plugin.get_extension().unwrap();
        state.load(&plugin, &mut bytes).is_ok()
    }

    /// Selects a configuration of the ports, by its index.
    pub fn select_ports(&mut self, index: u32) -> bool {
        let plugin = self.instance.raw_instance();
        // SAFETY: the plugin is alive, this is its main thread, and the extension has the type of
        // its id.
        unsafe {
            let extension =
                plugin.get_extension.unwrap()(plugin, CLAP_EXT_AUDIO_PORTS_CONFIG.as_ptr());
            let configurations = &*extension.cast::<clap_plugin_audio_ports_config>();
            index < configurations.count.unwrap()(plugin)
                && configurations.select.unwrap()(plugin, index)
        }
    }

    /// Loads a factory preset through the preset-load extension.
    pub fn load_preset(&mut self, key: &str) -> bool {
        let (plugin, key) = (
            self.instance.raw_instance(),
            std::ffi::CString::new(key).unwrap(),
        );
        // SAFETY: the plugin is alive, this is its main thread, and the extension has the type of
        // its id.
        unsafe {
            let extension = plugin.get_extension.unwrap()(plugin, CLAP_EXT_PRESET_LOAD.as_ptr());
            let load = (*extension.cast::<clap_plugin_preset_load>())
                .from_location
                .unwrap();
            load(
                plugin,
                CLAP_PRESET_DISCOVERY_LOCATION_PLUGIN,
                null(),
                key.as_ptr(),
            )
        }
    }

    pub fn latency(&mut self) -> usize {
        let plugin = self.instance.plugin_handle();
        let latency: PluginLatency = plugin.get_extension().unwrap();
        latency.get(&plugin) as usize
    }

    /// Returns the tail in samples.
    pub fn tail(&mut self) -> usize {
        let tail: PluginTail = self.instance.plugin_handle().get_extension().unwrap();
        tail.get(&self.processor.as_mut().expect("active").plugin_handle())
            .to_raw() as usize
    }

    pub fn set_offline(&mut self, offline: bool) {
        let plugin = self.instance.plugin_handle();
        let render: PluginRender = plugin.get_extension().unwrap();
        render
            .set(
                &plugin,
                if offline {
                    RenderMode::Offline
                } else {
                    RenderMode::Realtime
                },
            )
            .unwrap();
    }

    pub fn value_to_text(&mut self, name: &str, value: f64) -> String {
        let id = self.parameters[name];
        let plugin = self.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        let mut buffer = [0; 256];
        String::from_utf8(
            params
                .value_to_text(&plugin, id, value, &mut buffer)
                .unwrap()
                .to_vec(),
        )
        .unwrap()
    }

    pub fn text_to_value(&mut self, name: &str, text: &str) -> Option<f64> {
        let id = self.parameters[name];
        let plugin = self.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        params.text_to_value(&plugin, id, &std::ffi::CString::new(text).unwrap())
    }

    pub fn value(&mut self, name: &str) -> f64 {
        let id = self.parameters[name];
        let plugin = self.instance.plugin_handle();
        let params: PluginParams = plugin.get_extension().unwrap();
        params.get_value(&plugin, id).unwrap()
    }

    pub fn restart_requested(&self) -> bool {
        self.instance
            .access_shared_handler(|shared| shared.restart.swap(false, Ordering::Relaxed))
    }

    pub fn process_requested(&self) -> bool {
        self.instance
            .access_shared_handler(|shared| shared.process.swap(false, Ordering::Relaxed))
    }

    /// Restarts the plugin until it requests no further restart.
    pub fn restart_while_requested(&mut self, sample_rate: f64, max_block: u32) {
        for _ in 0..4 {
            if !self.restart_requested() {
                return;
            }
            self.deactivate();
            self.activate(sample_rate, max_block);
        }
        panic!("the plugin requested a restart five times in a row");
    }

    pub fn latency_changes(&self) -> usize {
        self.instance
            .access_handler(|main| main.latency_changes.get())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.deactivate();
    }
}

/// Returns the JSON of a saved state, without its length prefix.
pub fn json(state: &[u8]) -> serde_json::Value {
    serde_json::from_slice(&state[8..]).unwrap()
}

/// Returns the JSON of a saved state with the embedded `ondes` field parsed, for comparisons
/// independent of field order.
pub fn state_content(state: &[u8]) -> serde_json::Value {
    let mut all = json(state);
    all["fields"]["ondes"] =
        serde_json::from_str(all["fields"]["ondes"].as_str().unwrap()).unwrap();
    all
}

/// Returns the state bytes of that JSON.
pub fn state(json: &serde_json::Value) -> Vec<u8> {
    let text = serde_json::to_vec(json).unwrap();
    let mut state = (text.len() as u64).to_le_bytes().to_vec();
    state.extend(text);
    state
}

/// Returns a state with changes to the embedded `ondes` field, such as its model.
pub fn with_selection(saved: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut all = json(saved);
    let mut selection = serde_json::from_str(all["fields"]["ondes"].as_str().unwrap()).unwrap();
    change(&mut selection);
    all["fields"]["ondes"] = serde_json::to_string(&selection).unwrap().into();
    state(&all)
}

/// Returns the mean square.
pub fn energy(sound: &[f32]) -> f64 {
    sound
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum::<f64>()
        / sound.len().max(1) as f64
}

/// Returns a sine of about 328 Hz at 48 kHz.
pub fn sine(frames: usize, amplitude: f32) -> Vec<f32> {
    (0..frames)
        .map(|n| amplitude * (n as f32 * 0.043).sin())
        .collect()
}
