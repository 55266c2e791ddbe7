//! Creates wrapped plugins, and implements the CLAP functions that differ from the framework's.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_ref, null};
use std::sync::{Arc, mpsc};

use clap_sys::ext::params::{CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_STEPPED, clap_param_info, clap_plugin_params};
use clap_sys::ext::state::CLAP_EXT_STATE;
use clap_sys::ext::tail::{CLAP_EXT_TAIL, clap_plugin_tail};
use clap_sys::host::clap_host;
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_ERROR, clap_process, clap_process_status};
use nice_assert_no_alloc::assert_no_alloc;
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::Wrapper;

use super::deferred_rescan::DeferredRescan;
use super::midi_learn_events::{AutomatableParameter, MidiLearnEvents};
use super::plugin_wrapper::{PluginWrapper, RequestInstance, params_extension};
use crate::preset::{preset_load, state_as_preset};

/// Creates a plugin for a host; null if the framework does not answer.
///
/// # Safety
/// The host is valid, and outlives the plugin.
pub unsafe fn create<P: ClapPlugin<BackgroundTask = RequestInstance>>(host: *const clap_host) -> *const clap_plugin {
    // SAFETY: guaranteed by the caller.
    let deferred_rescan = unsafe { DeferredRescan::for_host(host) };
    let framework_host = deferred_rescan.as_ref().map_or(host, |deferred| deferred.proxy());
    // SAFETY: guaranteed by the caller; the wrapper keeps a proxy until the framework's plugin is destroyed.
    let wrapper = unsafe { Wrapper::<P>::new(framework_host) };
    let (sender, receiver) = mpsc::channel();
    (wrapper.task_executor.lock())(RequestInstance(sender));
    let Ok(instance) = receiver.try_recv() else { return null() };
    let ids = wrapper.param_ptr_to_hash.iter();
    let ids = ids.filter_map(|(parameter, id)| Some((*id, wrapper.param_id_from_ptr(*parameter)?.to_owned())));
    let inner = *wrapper.clap_plugin.borrow();
    // SAFETY: the framework's plugin is complete.
    let (ids, parameters) = unsafe { automatable_parameters(&inner, &ids.collect()) };
    instance.midi_bindings.set_parameters(ids);
    let waker = HostWaker(host);
    instance.sleep_state.set_host_wake(Some(Box::new(move || waker.wake())));
    let plugin = clap_plugin {
        destroy: Some(destroy),
        process: Some(process),
        get_extension: Some(get_extension),
        on_main_thread: Some(on_main_thread),
        ..inner
    };
    // The framework takes it back in `destroy`.
    let _ = Arc::into_raw(wrapper);
    let learn_events = UnsafeCell::new(MidiLearnEvents::new(parameters.into()));
    Box::into_raw(Box::new(PluginWrapper { plugin, inner, host, instance, learn_events, deferred_rescan }))
        .cast_const()
        .cast()
}

/// Returns the string ids and the ranges of all automatable parameters, in the host's order.
///
/// # Safety
/// The plugin is one of the framework's.
unsafe fn automatable_parameters(
    plugin: &clap_plugin,
    ids: &HashMap<clap_id, String>,
) -> (Vec<String>, Vec<AutomatableParameter>) {
    // SAFETY: guaranteed by the caller.
    let params = unsafe { params_extension(plugin) };
    let Some(&clap_plugin_params { count: Some(count), get_info: Some(get_info), .. }) = params else {
        return Default::default();
    };
    // SAFETY: as above.
    let infos = (0..unsafe { count(plugin) }).filter_map(|index| {
        let mut info = MaybeUninit::<clap_param_info>::uninit();
        // SAFETY: there is room for one; it is initialised if the framework returns true.
        unsafe { get_info(plugin, index, info.as_mut_ptr()).then(|| info.assume_init()) }
    });
    let automatable = infos.filter(|info| info.flags & CLAP_PARAM_IS_AUTOMATABLE != 0).filter_map(|info| {
        let clap_param_info { id, min_value: min, max_value: max, flags, .. } = info;
        let stepped = flags & CLAP_PARAM_IS_STEPPED != 0;
        Some((ids.get(&id)?.clone(), AutomatableParameter { id, min, max, stepped }))
    });
    automatable.unzip()
}

/// Asks the host to call `process` again, from any thread.
struct HostWaker(*const clap_host);

// SAFETY: only `wake` uses the pointer, for a call that CLAP allows on any thread. `destroy` drops this before the host
// may go.
unsafe impl Send for HostWaker {}

impl HostWaker {
    fn wake(&self) {
        // SAFETY: the host outlives the instance, which drops this when it is destroyed.
        if let Some(request) = unsafe { (*self.0).request_process } {
            // SAFETY: as above.
            unsafe { request(self.0) };
        }
    }
}

/// Replaces the framework's extension, which knows the tail only after a processed block and not during sleep.
static TAIL: clap_plugin_tail = clap_plugin_tail { get: Some(tail) };

unsafe extern "C" fn tail(plugin: *const clap_plugin) -> u32 {
    // SAFETY: the host passes the pointer that `create` returned.
    unsafe { PluginWrapper::of(plugin) }.map_or(0, |wrapper| wrapper.instance.sleep_state.tail_samples())
}

unsafe extern "C" fn get_extension(plugin: *const clap_plugin, id: *const c_char) -> *const c_void {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = unsafe { PluginWrapper::of(plugin) }.filter(|_| !id.is_null()) else { return null() };
    // SAFETY: CLAP passes a NUL-terminated string.
    let name = unsafe { CStr::from_ptr(id) };
    if preset_load::IDS.contains(&name) {
        return preset_load::extension();
    }
    if name == CLAP_EXT_STATE {
        return state_as_preset::extension();
    }
    if name == CLAP_EXT_TAIL {
        return from_ref(&TAIL).cast();
    }
    // SAFETY: the framework uses only `plugin_data`, which is its own.
    wrapper.inner.get_extension.map_or(null(), |get| unsafe { get(plugin, id) })
}

unsafe extern "C" fn process(plugin: *const clap_plugin, block: *const clap_process) -> clap_process_status {
    // SAFETY: the host passes the pointer that `create` returned.
    let wrapper = unsafe { PluginWrapper::of(plugin) };
    // SAFETY: the host passes a valid block, or null.
    let (Some(wrapper), Some(host_block)) = (wrapper, unsafe { block.as_ref() }) else { return CLAP_PROCESS_ERROR };
    let Some(process) = wrapper.inner.process else { return CLAP_PROCESS_ERROR };
    // SAFETY: CLAP lets one thread at a time process, and nothing else accesses this cell.
    let learn_events = unsafe { &mut *wrapper.learn_events.get() };
    // SAFETY: the host's lists are valid for this block.
    let begin =
        || unsafe { learn_events.begin(&wrapper.instance.midi_bindings, host_block.in_events, host_block.out_events) };
    let any_learned = assert_no_alloc(begin);
    let learn_events = &*learn_events;
    let status = if any_learned {
        let (input, output) = (learn_events.input(), learn_events.output());
        let output = if host_block.out_events.is_null() { null() } else { &raw const output };
        let merged = clap_process { in_events: &raw const input, out_events: output, ..*host_block };
        // SAFETY: the framework uses only `plugin_data`, which is its own; our lists live longer than this call.
        let status = unsafe { process(plugin, &raw const merged) };
        assert_no_alloc(|| learn_events.report_until(u32::MAX));
        status
    } else {
        // SAFETY: as above.
        unsafe { process(plugin, block) }
    };
    if let Some(deferred) = &wrapper.deferred_rescan {
        let ids = learn_events.parameters().iter().map(|parameter| parameter.id);
        let values = ids.filter_map(|id| Some((id, wrapper.parameter_value(id)?)));
        let last = host_block.frames_count.saturating_sub(1);
        // SAFETY: the host's list is valid for this block.
        assert_no_alloc(|| unsafe { deferred.push_values(last, host_block.out_events, values) });
    }
    wrapper.finish_block(status)
}

unsafe extern "C" fn on_main_thread(plugin: *const clap_plugin) {
    // SAFETY: the host passes the pointer that `create` returned.
    let Some(wrapper) = (unsafe { PluginWrapper::of(plugin) }) else { return };
    let _ = catch_unwind(AssertUnwindSafe(|| wrapper.instance.apply_requested_variant()));
    if let Some(deferred) = &wrapper.deferred_rescan {
        deferred.rescan_if_pending();
    }
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
    let _ = catch_unwind(AssertUnwindSafe(|| wrapper.instance.sleep_state.set_host_wake(None)));
    if let Some(destroy) = wrapper.inner.destroy {
        // SAFETY: the framework takes back its own plugin, once.
        unsafe { destroy(&raw const wrapper.inner) };
    }
    // Cancels the instance's background work.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(wrapper)));
}
