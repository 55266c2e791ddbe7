//! Creates wrapped plugins, and implements the CLAP functions that differ from the framework's.

use std::ffi::{CStr, c_void};
use std::ptr::{from_ref, null};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap_sys::ext::audio_ports::CLAP_EXT_AUDIO_PORTS;
use clap_sys::ext::audio_ports_config::CLAP_EXT_AUDIO_PORTS_CONFIG;
use clap_sys::ext::configurable_audio_ports::{
    CLAP_EXT_CONFIGURABLE_AUDIO_PORTS, CLAP_EXT_CONFIGURABLE_AUDIO_PORTS_COMPAT,
};
use clap_sys::ext::note_ports::CLAP_EXT_NOTE_PORTS;
use clap_sys::ext::params::CLAP_EXT_PARAMS;
use clap_sys::ext::preset_load::{CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT};
use clap_sys::ext::state::CLAP_EXT_STATE;
use clap_sys::ext::state_context::CLAP_EXT_STATE_CONTEXT;
use clap_sys::ext::tail::{CLAP_EXT_TAIL, clap_plugin_tail};
use clap_sys::ext::timer_support::{CLAP_EXT_TIMER_SUPPORT, clap_plugin_timer_support};
use clap_sys::ext::voice_info::CLAP_EXT_VOICE_INFO;
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{CLAP_PROCESS_ERROR, clap_process, clap_process_status};
use nice_assert_no_alloc::assert_no_alloc;
use nice_plug::prelude::ClapPlugin;
use ondes_engine::sync::lock;
use ondes_player::product::Product;

use super::audio_port_extensions::{CONFIGURABLE, CONFIGURATIONS, PORTS, select_layout};
use super::block_buffers::{BlockBuffers, MAX_PIECE};
use super::block_events::BlockEvents;
use super::c_interface::{CResult, c_function, catch_panic};
use super::deferred_rescan::DeferredRescan;
use super::framework::{Framework, RequestInstance};
use super::host::Host;
use super::host_block::HostBlock;
use super::host_notices::HostNotices;
use super::main_thread_timer::MainThreadTimer;
use super::note_extensions::{NOTE_PORTS, VOICE_INFO};
use super::parameter_changes::ParameterChanges;
use super::parameter_list::{HostScale, ParameterList};
use super::params_extension::PARAMS;
use super::plugin_wrapper::{Block, PluginWrapper};
use super::port_layout::AudioPorts;
use super::waiting_changes::WaitingChanges;
use crate::preset::preset_load::PRESET_LOAD;
use crate::preset::state_as_preset::{STATE, STATE_CONTEXT};

const _: () = assert!(<clap_process_status as CResult>::FAILURE == CLAP_PROCESS_ERROR);

/// Creates a plugin for a host; `None` if the framework does not answer.
pub(super) fn create<P: ClapPlugin<BackgroundTask = RequestInstance>>(
    host: Host,
) -> Option<*const clap_plugin> {
    let deferred_rescan = DeferredRescan::for_host(host);
    let (framework, (instance, values)) = Framework::new::<P>(host)?;
    let scale = if host.is_vst3() {
        HostScale::Position
    } else {
        HostScale::Unit
    };
    let parameters = ParameterList::new(scale, instance.product);
    // The bindings number the parameters in this order.
    let ids = parameters.automatable().iter();
    let ids = ids.map(|listed| listed.parameter.id.to_owned());
    instance.midi_bindings.set_parameters(ids);
    instance
        .sleep_state
        .set_host_wake(Some(Box::new(move || host.request_process())));
    instance
        .host_notifier
        .set_request_call(Some(Box::new(move || host.request_callback())));
    let plugin = clap_plugin {
        init: c_function!(init, (wrapper: &PluginWrapper) -> bool),
        destroy: c_function!(destroy, (wrapper: Box<PluginWrapper>)),
        activate: c_function!(
            activate,
            (wrapper: &PluginWrapper, sample_rate: f64, min_frames: u32, max_frames: u32) -> bool
        ),
        deactivate: c_function!(deactivate, (wrapper: &PluginWrapper)),
        reset: c_function!(reset, (wrapper: &PluginWrapper)),
        process: c_function!(
            process,
            (wrapper: &PluginWrapper, block: HostBlock<'_>) -> clap_process_status
        ),
        get_extension: c_function!(
            get_extension,
            (wrapper: &PluginWrapper, id: &CStr) -> *const c_void
        ),
        on_main_thread: c_function!(on_main_thread, (wrapper: &PluginWrapper)),
        ..framework.to_raw()
    };
    // Ardour does not read names again; there the value of a macro tells what it does.
    let notices = HostNotices::new(&instance, deferred_rescan.is_none());
    let wrapper = PluginWrapper {
        plugin,
        framework,
        deferred_rescan,
        host,
        instance,
        values,
        parameters,
        notices,
        waiting_changes: WaitingChanges::default(),
        is_active: AtomicBool::new(false),
        timer: MainThreadTimer::default(),
        audio_ports: AudioPorts::new::<P>(),
        block: Mutex::new(None),
    };
    // `destroy` takes it back.
    Some(Box::into_raw(Box::new(wrapper)).cast_const().cast())
}

/// Replaces the framework's extension, which knows the tail only after a processed block and not
/// during sleep.
static TAIL: clap_plugin_tail = clap_plugin_tail {
    get: c_function!(tail, (wrapper: &PluginWrapper) -> u32),
};

static TIMER_SUPPORT: clap_plugin_timer_support = clap_plugin_timer_support {
    on_timer: c_function!(on_timer, (wrapper: &PluginWrapper, _timer: clap_id)),
};

fn tail(wrapper: &PluginWrapper) -> u32 {
    wrapper.instance.sleep_state.tail_samples()
}

fn on_timer(wrapper: &PluginWrapper, _: clap_id) {
    on_main_thread(wrapper);
}

fn get_extension(wrapper: &PluginWrapper, id: &CStr) -> *const c_void {
    let is_instrument = wrapper.instance.product == Product::Instrument;
    match id {
        _ if id == CLAP_EXT_PRESET_LOAD || id == CLAP_EXT_PRESET_LOAD_COMPAT => {
            from_ref(&PRESET_LOAD).cast()
        }
        _ if id == CLAP_EXT_STATE => from_ref(&STATE).cast(),
        _ if id == CLAP_EXT_STATE_CONTEXT => from_ref(&STATE_CONTEXT).cast(),
        _ if id == CLAP_EXT_TAIL => from_ref(&TAIL).cast(),
        _ if id == CLAP_EXT_TIMER_SUPPORT => from_ref(&TIMER_SUPPORT).cast(),
        _ if id == CLAP_EXT_PARAMS => from_ref(&PARAMS).cast(),
        _ if id == CLAP_EXT_AUDIO_PORTS => from_ref(&PORTS).cast(),
        _ if id == CLAP_EXT_AUDIO_PORTS_CONFIG => from_ref(&CONFIGURATIONS).cast(),
        _ if id == CLAP_EXT_CONFIGURABLE_AUDIO_PORTS
            || id == CLAP_EXT_CONFIGURABLE_AUDIO_PORTS_COMPAT =>
        {
            from_ref(&CONFIGURABLE).cast()
        }
        _ if id == CLAP_EXT_NOTE_PORTS && is_instrument => from_ref(&NOTE_PORTS).cast(),
        _ if id == CLAP_EXT_VOICE_INFO && is_instrument => from_ref(&VOICE_INFO).cast(),
        _ => wrapper.framework.get_extension(id),
    }
}

fn init(wrapper: &PluginWrapper) -> bool {
    let is_ready = wrapper.framework.init();
    // The VST3 wrapper calls back by a timer of its own.
    if is_ready && !wrapper.host.is_vst3() {
        wrapper.timer.start(wrapper.host);
    }
    is_ready
}

fn activate(wrapper: &PluginWrapper, sample_rate: f64, min_frames: u32, max_frames: u32) -> bool {
    if !(sample_rate.is_finite() && sample_rate > 0.0) {
        return false;
    }
    let Some(layout) = select_layout(wrapper) else {
        return false;
    };
    let longest = max_frames.min(MAX_PIECE);
    let active = wrapper
        .framework
        .activate(sample_rate, min_frames.min(longest), longest);
    *lock(&wrapper.block) = active.then(|| Block {
        buffers: BlockBuffers::new(layout, longest as usize),
        events: BlockEvents::default(),
    });
    wrapper.is_active.store(active, Relaxed);
    active
}

fn deactivate(wrapper: &PluginWrapper) {
    *lock(&wrapper.block) = None;
    wrapper.framework.deactivate();
    wrapper.is_active.store(false, Relaxed);
}

fn reset(wrapper: &PluginWrapper) {
    if let Ok(mut block) = wrapper.block.try_lock()
        && let Some(block) = &mut *block
    {
        block.events.clear();
    }
    wrapper.framework.reset();
}

fn process(wrapper: &PluginWrapper, host_block: HostBlock<'_>) -> clap_process_status {
    let Ok(mut block) = wrapper.block.try_lock() else {
        return CLAP_PROCESS_ERROR;
    };
    let Some(block) = &mut *block else {
        return CLAP_PROCESS_ERROR;
    };
    let frames = host_block.as_raw().frames_count;
    let longest = block.buffers.capacity() as u32;
    let mut start = 0_u32;
    let changes = ParameterChanges {
        wrapper,
        output: host_block.output_events(),
    };
    assert_no_alloc(|| changes.tell_window_changes());
    block.events.begin();
    loop {
        let end = assert_no_alloc(|| {
            block.events.take(
                host_block.input_events(),
                [start, frames.min(start.saturating_add(longest)), frames],
                &changes,
            )
        });
        let status = process_piece(wrapper, block, &host_block, start, end);
        block.events.finish(end - start);
        if end == frames || status == CLAP_PROCESS_ERROR {
            return status;
        }
        start = end;
    }
}

/// Processes the samples from `start` to `end` of a block.
fn process_piece(
    wrapper: &PluginWrapper,
    Block { buffers, events }: &mut Block,
    host_block: &HostBlock<'_>,
    start: u32,
    end: u32,
) -> clap_process_status {
    let (first, length) = (start as usize, (end - start) as usize);
    assert_no_alloc(|| buffers.read(host_block, first, length));
    let in_events = events.list();
    let host_piece = clap_process {
        in_events: &raw const in_events,
        out_events: null(),
        // Without a position, playback continues.
        transport: if start == 0 {
            host_block.as_raw().transport
        } else {
            null()
        },
        ..*host_block.as_raw()
    };
    // SAFETY: audio and lists of the piece live longer than this call; the host's transport is null
    // or valid.
    let status = buffers.process_piece(&host_piece, length, |piece| unsafe {
        wrapper.framework.process(&piece)
    });
    if let Some((output, deferred)) = host_block
        .output_events()
        .zip(wrapper.deferred_rescan.as_ref())
    {
        let listed = wrapper.parameters.automatable().iter();
        let values = listed
            .filter_map(|listed| Some((listed.clap_id, wrapper.parameter_value(listed.clap_id)?)));
        let last = end.saturating_sub(1).max(start);
        assert_no_alloc(|| deferred.push_values(last, &output, values));
    }
    let status = wrapper.finish_block(status);
    assert_no_alloc(|| buffers.write(host_block, first, length));
    status
}

fn on_main_thread(wrapper: &PluginWrapper) {
    let PluginWrapper { instance, host, .. } = wrapper;
    // A failure of one does not keep the others from their work.
    catch_panic(|| {
        instance.apply_requested_variant();
        instance.follow_program(&*wrapper.values, &*wrapper.values);
        instance.follow_scene(&*wrapper.values, &*wrapper.values);
        Some(())
    });
    catch_panic(|| {
        if let Some(deferred) = &wrapper.deferred_rescan {
            deferred.rescan_if_pending(*host);
        }
        wrapper.report_window_changes();
        wrapper.notices.notify(instance, *host);
        Some(())
    });
    wrapper.framework.on_main_thread();
}

/// Destroys the instance, which cancels its background work.
fn destroy(wrapper: Box<PluginWrapper>) {
    wrapper.instance.sleep_state.set_host_wake(None);
    wrapper.instance.host_notifier.set_request_call(None);
    wrapper.timer.stop(wrapper.host);
}
