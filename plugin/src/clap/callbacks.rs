//! Creates wrapped plugins, and implements the CLAP functions that differ from the framework's.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_ref, null};
use std::sync::{Arc, Mutex, mpsc};

use clap_sys::ext::note_ports::CLAP_EXT_NOTE_PORTS;
use clap_sys::ext::params::{CLAP_EXT_PARAMS, clap_param_info, clap_plugin_params};
use clap_sys::ext::state::CLAP_EXT_STATE;
use clap_sys::ext::state_context::CLAP_EXT_STATE_CONTEXT;
use clap_sys::ext::tail::{CLAP_EXT_TAIL, clap_plugin_tail};
use clap_sys::ext::timer_support::CLAP_EXT_TIMER_SUPPORT;
use clap_sys::ext::voice_info::CLAP_EXT_VOICE_INFO;
use clap_sys::host::clap_host;
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_ERROR, clap_process, clap_process_status};
use nice_assert_no_alloc::assert_no_alloc;
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::Wrapper;
use ondes_engine::sync::lock;
use ondes_player::parameter::{Parameter, ParameterId};
use ondes_player::product::Product;

use super::audio_ports::{self, AudioPorts};
use super::block_buffers::{BlockBuffers, MAX_PIECE};
use super::block_events::BlockEvents;
use super::converted_events::ConvertedEvents;
use super::deferred_rescan::DeferredRescan;
use super::host_notices::HostNotices;
use super::inactive_changes::InactiveChanges;
use super::main_thread_timer::{self, MainThreadTimer};
use super::midi_learn_events::{AutomatableParameter, MidiLearnEvents};
use super::parameter_list::{HostScale, ParameterList};
use super::plugin_wrapper::{Block, PluginWrapper, RequestInstance, framework_params};
use super::{note_extensions, params_extension};
use crate::preset::{preset_load, state_as_preset};

/// Creates a plugin for a host; null if the framework does not answer.
///
/// # Safety
/// The host is valid, and outlives the plugin.
pub unsafe fn create<P: ClapPlugin<BackgroundTask = RequestInstance>>(
    host: *const clap_host,
) -> *const clap_plugin {
    // SAFETY: guaranteed by the caller.
    let deferred_rescan = unsafe { DeferredRescan::for_host(host) };
    let framework_host = deferred_rescan
        .as_ref()
        .map_or(host, |deferred| deferred.proxy());
    // SAFETY: guaranteed by the caller; the wrapper keeps a proxy until the framework's plugin is
    // destroyed.
    let wrapper = unsafe { Wrapper::<P>::new(framework_host) };
    let (sender, receiver) = mpsc::channel();
    (wrapper.task_executor.lock())(RequestInstance(sender));
    let Ok(instance) = receiver.try_recv() else {
        return null();
    };
    let ids = wrapper.param_ptr_to_hash.iter();
    let ids = ids.filter_map(|(pointer, id)| {
        Some((*id, Parameter::find(wrapper.param_id_from_ptr(*pointer)?)?))
    });
    let ids: HashMap<clap_id, ParameterId> = ids.collect();
    let inner = *wrapper.clap_plugin.borrow();
    // SAFETY: guaranteed by the caller.
    let scale = if unsafe { is_vst3(host) } {
        HostScale::Position
    } else {
        HostScale::Unit
    };
    // SAFETY: the framework's plugin is complete.
    let in_order = unsafe { parameter_ids(&inner) }
        .into_iter()
        .filter_map(|id| Some((id, *ids.get(&id)?)));
    let parameters = ParameterList::new(scale, instance.product, in_order);
    // A controller may also trigger what automation may not.
    let learnable = parameters
        .listed()
        .iter()
        .filter(|listed| listed.parameter.automatable);
    let learnable: Box<[AutomatableParameter]> = learnable
        .map(|listed| AutomatableParameter {
            id: listed.clap_id,
            parameter: listed.parameter,
            scale,
        })
        .collect();
    instance.midi_bindings.set_parameters(
        learnable
            .iter()
            .map(|learnable| learnable.parameter.id.to_owned()),
    );
    let waker = HostCaller(host);
    instance
        .sleep_state
        .set_host_wake(Some(Box::new(move || waker.request_process())));
    let caller = HostCaller(host);
    instance
        .host_notifier
        .set_request_call(Some(Box::new(move || caller.request_callback())));
    let plugin = clap_plugin {
        init: Some(init),
        destroy: Some(destroy),
        activate: Some(activate),
        deactivate: Some(deactivate),
        reset: Some(reset),
        process: Some(process),
        get_extension: Some(get_extension),
        on_main_thread: Some(on_main_thread),
        ..inner
    };
    // The framework takes it back in `destroy`.
    let _ = Arc::into_raw(wrapper);
    let learn_events = UnsafeCell::new(MidiLearnEvents::new(learnable));
    // Ardour does not read names again; there the value of a macro tells what it does.
    let names_follow = deferred_rescan.is_none();
    let notices = HostNotices::new(&instance);
    let wrapper = PluginWrapper {
        plugin,
        inner,
        host,
        instance,
        parameters,
        names_follow,
        notices,
        inactive_changes: InactiveChanges::default(),
        timer: MainThreadTimer::default(),
        audio_ports: AudioPorts::of::<P>(),
        block: Mutex::new(None),
        learn_events,
        deferred_rescan,
    };
    Box::into_raw(Box::new(wrapper)).cast_const().cast()
}

/// Returns whether a host is the VST3 wrapper, by its name: that of the VST3 host with a suffix, or
/// the wrapper's own.
///
/// # Safety
/// The host is valid.
unsafe fn is_vst3(host: *const clap_host) -> bool {
    // SAFETY: guaranteed by the caller; a host's name is null or NUL-terminated.
    let name = unsafe {
        let name = (*host).name;
        if name.is_null() {
            c""
        } else {
            CStr::from_ptr(name)
        }
    };
    name.to_string_lossy()
        .to_ascii_lowercase()
        .contains("clap-as-vst3")
}

/// Returns the CLAP ids of the framework's parameters, in the host's order.
///
/// # Safety
/// The plugin is one of the framework's.
unsafe fn parameter_ids(plugin: &clap_plugin) -> Vec<clap_id> {
    // SAFETY: guaranteed by the caller.
    let params = unsafe { framework_params(plugin) };
    let Some(&clap_plugin_params {
        count: Some(count),
        get_info: Some(get_info),
        ..
    }) = params
    else {
        return Vec::new();
    };
    // SAFETY: as above.
    let infos = (0..unsafe { count(plugin) }).filter_map(|index| {
        let mut info = MaybeUninit::<clap_param_info>::uninit();
        // SAFETY: there is room for one; it is initialised if the framework returns true.
        unsafe { get_info(plugin, index, info.as_mut_ptr()).then(|| info.assume_init().id) }
    });
    infos.collect()
}

/// Calls the host from any thread.
struct HostCaller(*const clap_host);

// SAFETY: the pointer is only used for calls that CLAP allows on any thread. `destroy` drops this
// before the host may go.
unsafe impl Send for HostCaller {}

impl HostCaller {
    /// Asks the host to call `process` again.
    fn request_process(&self) {
        // SAFETY: the host outlives the instance, which drops this when it is destroyed.
        if let Some(request) = unsafe { (*self.0).request_process } {
            // SAFETY: as above.
            unsafe { request(self.0) };
        }
    }

    /// Asks the host to call `on_main_thread`.
    fn request_callback(&self) {
        // SAFETY: as above.
        if let Some(request) = unsafe { (*self.0).request_callback } {
            // SAFETY: as above.
            unsafe { request(self.0) };
        }
    }
}

/// Replaces the framework's extension, which knows the tail only after a processed block and not
/// during sleep.
static TAIL: clap_plugin_tail = clap_plugin_tail { get: Some(tail) };

unsafe extern "C" fn tail(plugin: *const clap_plugin) -> u32 {
    // SAFETY: the host passes the pointer that `create` returned.
    unsafe { PluginWrapper::of(plugin) }
        .map_or(0, |wrapper| wrapper.instance.sleep_state.tail_samples())
}

unsafe extern "C" fn get_extension(plugin: *const clap_plugin, id: *const c_char) -> *const c_void {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = unsafe { PluginWrapper::of(plugin) }.filter(|_| !id.is_null()) else {
        return null();
    };
    // SAFETY: CLAP passes a NUL-terminated string.
    let name = unsafe { CStr::from_ptr(id) };
    if preset_load::IDS.contains(&name) {
        return preset_load::extension();
    }
    if name == CLAP_EXT_STATE {
        return state_as_preset::extension();
    }
    if name == CLAP_EXT_STATE_CONTEXT {
        return state_as_preset::context_extension();
    }
    if name == CLAP_EXT_TAIL {
        return from_ref(&TAIL).cast();
    }
    if name == CLAP_EXT_TIMER_SUPPORT {
        return main_thread_timer::extension();
    }
    if name == CLAP_EXT_PARAMS {
        return params_extension::extension();
    }
    if let Some(extension) = audio_ports::extension(name) {
        return extension;
    }
    if wrapper.instance.product == Product::Instrument {
        if name == CLAP_EXT_NOTE_PORTS {
            return note_extensions::note_ports();
        }
        if name == CLAP_EXT_VOICE_INFO {
            return note_extensions::voice_info();
        }
    }
    // SAFETY: the framework uses only `plugin_data`, which is its own.
    wrapper
        .inner
        .get_extension
        .map_or(null(), |get| unsafe { get(plugin, id) })
}

unsafe extern "C" fn init(plugin: *const clap_plugin) -> bool {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    let Some(init) = wrapper.inner.init else {
        return false;
    };
    // SAFETY: the framework uses only `plugin_data`, which is its own.
    let is_ready = unsafe { init(plugin) };
    // The VST3 wrapper calls back by a timer of its own.
    // SAFETY: the host is valid.
    if is_ready && !unsafe { is_vst3(wrapper.host) } {
        wrapper.start_timer();
    }
    is_ready
}

unsafe extern "C" fn activate(
    plugin: *const clap_plugin,
    sample_rate: f64,
    min_frames_count: u32,
    max_frames_count: u32,
) -> bool {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return false;
    };
    let Some(activate) = wrapper
        .inner
        .activate
        .filter(|_| sample_rate.is_finite() && sample_rate > 0.0)
    else {
        return false;
    };
    let Some(layout) = wrapper.select_layout() else {
        return false;
    };
    let longest = max_frames_count.min(MAX_PIECE);
    // SAFETY: the framework uses only `plugin_data`, which is its own.
    let active = unsafe { activate(plugin, sample_rate, min_frames_count.min(longest), longest) };
    let buffers = active.then(|| BlockBuffers::new(layout, longest as usize));
    *lock(&wrapper.block) = buffers.map(|buffers| Block {
        buffers,
        events: BlockEvents::default(),
    });
    wrapper.inactive_changes.set_active(active);
    active
}

unsafe extern "C" fn deactivate(plugin: *const clap_plugin) {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return;
    };
    *lock(&wrapper.block) = None;
    if let Some(deactivate) = wrapper.inner.deactivate {
        // SAFETY: the framework uses only `plugin_data`, which is its own.
        unsafe { deactivate(plugin) };
    }
    wrapper.inactive_changes.set_active(false);
}

unsafe extern "C" fn reset(plugin: *const clap_plugin) {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return;
    };
    if let Ok(mut block) = wrapper.block.try_lock()
        && let Some(block) = &mut *block
    {
        block.events.clear();
    }
    if let Some(reset) = wrapper.inner.reset {
        // SAFETY: the framework uses only `plugin_data`, which is its own.
        unsafe { reset(plugin) };
    }
}

unsafe extern "C" fn process(
    plugin: *const clap_plugin,
    block: *const clap_process,
) -> clap_process_status {
    // SAFETY: the host passes the pointer that `create` returned.
    let wrapper = unsafe { PluginWrapper::of(plugin) };
    // SAFETY: the host passes a valid block, or null.
    let (Some(wrapper), Some(host_block)) = (wrapper, unsafe { block.as_ref() }) else {
        return CLAP_PROCESS_ERROR;
    };
    let Ok(mut block) = wrapper.block.try_lock() else {
        return CLAP_PROCESS_ERROR;
    };
    let Some(Block { buffers, events }) = &mut *block else {
        return CLAP_PROCESS_ERROR;
    };
    let frames = host_block.frames_count;
    let mut start = 0_u32;
    events.begin();
    loop {
        let longest = frames.min(start.saturating_add(buffers.capacity() as u32));
        // SAFETY: the host's list is null, or valid for this block.
        let end = assert_no_alloc(|| unsafe {
            events.take(host_block.in_events, start, longest, frames)
        });
        let (first, length) = (start as usize, (end - start) as usize);
        // SAFETY: the host's pointers are null, or valid for this block.
        assert_no_alloc(|| unsafe { buffers.read(host_block, first, length) });
        let (input, output) = (events.input(), events.output(host_block.out_events));
        let output = output.list();
        let piece = clap_process {
            in_events: &raw const input,
            out_events: if host_block.out_events.is_null() {
                null()
            } else {
                &raw const output
            },
            // Without a position, playback continues.
            transport: if start == 0 {
                host_block.transport
            } else {
                null()
            },
            ..buffers.piece(host_block, length)
        };
        // SAFETY: audio and lists of the piece live longer than this call.
        let status = unsafe { process_piece(wrapper, &piece) };
        events.finish(end - start);
        // SAFETY: as above.
        assert_no_alloc(|| unsafe { buffers.write(host_block, first, length) });
        if end == frames || status == CLAP_PROCESS_ERROR {
            return status;
        }
        start = end;
    }
}

/// Processes a piece of a block, whose audio and events are as announced.
///
/// # Safety
/// Audio and lists are valid; the list of output events may be null.
unsafe fn process_piece(wrapper: &PluginWrapper, block: &clap_process) -> clap_process_status {
    let Some(process) = wrapper.inner.process else {
        return CLAP_PROCESS_ERROR;
    };
    // SAFETY: CLAP lets one thread at a time process, and nothing else accesses this cell.
    let learn_events = unsafe { &mut *wrapper.learn_events.get() };
    // SAFETY: guaranteed by the caller.
    let begin = || unsafe {
        learn_events.begin(
            &wrapper.instance.midi_bindings,
            block.in_events,
            block.out_events,
        )
    };
    let any_learned = assert_no_alloc(begin);
    let learn_events = &*learn_events;
    let (merged_input, merged_output) = (learn_events.input(), learn_events.output());
    let (input, output) = if any_learned {
        (
            &raw const merged_input,
            if block.out_events.is_null() {
                null()
            } else {
                &raw const merged_output
            },
        )
    } else {
        (block.in_events, block.out_events)
    };
    // SAFETY: the lists are null, or valid for this block.
    let events =
        unsafe { ConvertedEvents::new(&wrapper.parameters, &wrapper.instance, input, output) };
    let (converted_input, converted_output) = (events.input(), events.output());
    let converted = clap_process {
        in_events: if input.is_null() {
            null()
        } else {
            &raw const converted_input
        },
        out_events: if output.is_null() {
            null()
        } else {
            &raw const converted_output
        },
        ..*block
    };
    // SAFETY: the framework uses only `plugin_data`, which is its own; our lists live longer than
    // this call.
    let status = unsafe { process(&raw const wrapper.plugin, &raw const converted) };
    if any_learned {
        assert_no_alloc(|| learn_events.report_until(u32::MAX));
    }
    if let Some(deferred) = &wrapper.deferred_rescan {
        let ids = learn_events
            .parameters()
            .iter()
            .map(|parameter| parameter.id);
        let values = ids.filter_map(|id| Some((id, wrapper.parameter_value(id)?)));
        let last = block.frames_count.saturating_sub(1);
        // SAFETY: guaranteed by the caller.
        assert_no_alloc(|| unsafe { deferred.push_values(last, block.out_events, values) });
    }
    wrapper.finish_block(status)
}

unsafe extern "C" fn on_main_thread(plugin: *const clap_plugin) {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else {
        return;
    };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        wrapper.instance.apply_requested_variant()
    }));
    if let Some(deferred) = &wrapper.deferred_rescan {
        deferred.rescan_if_pending();
    }
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if wrapper.instance.host_notifier.take_values_changed() {
            wrapper.apply_inactive_changes();
        }
        wrapper.report_inactive_changes();
        wrapper.notify_host();
    }));
    if let Some(on_main_thread) = wrapper.inner.on_main_thread {
        // SAFETY: the framework uses only `plugin_data`, which is its own.
        unsafe { on_main_thread(plugin) };
    }
}

unsafe extern "C" fn destroy(plugin: *const clap_plugin) {
    if plugin.is_null() {
        return;
    }
    // SAFETY: the host passes the pointer that `create` returned, for the last time.
    let wrapper = unsafe { Box::from_raw(plugin.cast::<PluginWrapper>().cast_mut()) };
    let remove_calls = || {
        wrapper.instance.sleep_state.set_host_wake(None);
        wrapper.instance.host_notifier.set_request_call(None);
        wrapper.stop_timer();
    };
    let _ = catch_unwind(AssertUnwindSafe(remove_calls));
    if let Some(destroy) = wrapper.inner.destroy {
        // SAFETY: the framework takes back its own plugin, once.
        unsafe { destroy(&raw const wrapper.inner) };
    }
    // Cancels the instance's background work.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(wrapper)));
}
