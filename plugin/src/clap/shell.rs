//! What a host holds: the framework's plugin with what the framework does not know around it.
//!
//! A host gets a `clap_plugin` of ours. It is a copy of the framework's, with the same data behind it, so that all functions and
//! extensions of the framework work with our pointer; only the functions here are ours, and call on.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_ref, null};
use std::sync::{Arc, mpsc};

use clap_sys::ext::params::{
    CLAP_EXT_PARAMS, CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_STEPPED, clap_param_info, clap_plugin_params,
};
use clap_sys::ext::state::CLAP_EXT_STATE;
use clap_sys::ext::tail::{CLAP_EXT_TAIL, clap_plugin_tail};
use clap_sys::host::clap_host;
use clap_sys::id::clap_id;
use clap_sys::plugin::clap_plugin;
use clap_sys::process::{
    CLAP_PROCESS_CONTINUE, CLAP_PROCESS_ERROR, CLAP_PROCESS_SLEEP, clap_process, clap_process_status,
};
use nice_assert_no_alloc::assert_no_alloc;
use nice_plug::prelude::ClapPlugin;
use nice_plug::wrapper::clap::Wrapper;
use ondes_processor::shared::Shared;

use super::reticence::Reticence;
use super::turns::{Parameter, Turns};
use crate::preset::{loading, restoring};

/// Asks an instance who it is; the answer goes where this says. The framework hides the plugins that it makes, but lets them do
/// tasks of their own kind: this is the only one.
pub struct Introduce(mpsc::Sender<Arc<Shared>>);

impl Introduce {
    /// What answers for that instance.
    #[must_use]
    pub fn answer(shared: &Arc<Shared>) -> Box<dyn Fn(Self) + Send> {
        let shared = shared.clone();
        // Nobody may want to know any more.
        Box::new(move |Self(asker)| drop(asker.send(shared.clone())))
    }
}

/// One instance, as its host holds it.
#[repr(C)]
pub struct Shell {
    /// What the host sees. The first field: its address is the shell's.
    plugin: clap_plugin,
    /// The framework's.
    pub(crate) inner: clap_plugin,
    /// Who holds it; lives longer than this.
    pub(crate) host: *const clap_host,
    /// What window, state and player share.
    pub(crate) shared: Arc<Shared>,
    /// The audio thread's alone.
    turns: UnsafeCell<Turns>,
    /// Where the host must not be told all at once; the framework holds it for its host.
    pub(crate) reticence: Option<Box<Reticence>>,
}

/// Makes a plugin for a host; none where that cannot be.
///
/// # Safety
/// The host is valid, and outlives the plugin.
pub unsafe fn make<P: ClapPlugin<BackgroundTask = Introduce>>(host: *const clap_host) -> *const clap_plugin {
    // SAFETY: the caller says so.
    let reticence = unsafe { Reticence::of(host) };
    let front = reticence.as_ref().map_or(host, |reticence| reticence.front());
    // SAFETY: the caller says so, and the shell keeps a front until the framework's plugin is destroyed.
    let wrapper = unsafe { Wrapper::<P>::new(front) };
    let (asker, answer) = mpsc::channel();
    (wrapper.task_executor.lock())(Introduce(asker));
    let Ok(shared) = answer.try_recv() else { return null() };
    let ids = wrapper.param_ptr_to_hash.iter();
    let ids = ids.filter_map(|(parameter, id)| Some((*id, wrapper.param_id_from_ptr(*parameter)?.to_owned())));
    let inner = *wrapper.clap_plugin.borrow();
    // SAFETY: the framework's plugin is whole.
    let (ids, parameters) = unsafe { turnable(&inner, &ids.collect()) };
    shared.controllers.begin(ids);
    let holder = Holder(host);
    shared.rest.wake_by(Some(Box::new(move || holder.wake())));
    let plugin = clap_plugin {
        destroy: Some(destroy),
        process: Some(process),
        get_extension: Some(get_extension),
        on_main_thread: Some(on_main_thread),
        ..inner
    };
    // The framework takes it back when it is destroyed.
    let _ = Arc::into_raw(wrapper);
    let turns = UnsafeCell::new(Turns::new(parameters.into()));
    Box::into_raw(Box::new(Shell { plugin, inner, host, shared, turns, reticence })).cast_const().cast()
}

/// What the framework has for parameters.
///
/// # Safety
/// The plugin is one of the framework's.
unsafe fn params(plugin: &clap_plugin) -> Option<&clap_plugin_params> {
    // SAFETY: the framework knows its extensions from the beginning; by this name it gives that, or nothing.
    unsafe { plugin.get_extension?(plugin, CLAP_EXT_PARAMS.as_ptr()).cast::<clap_plugin_params>().as_ref() }
}

/// The parameters that a controller can turn, with their ids, in the order in which hosts see them.
///
/// # Safety
/// The plugin is one of the framework's.
unsafe fn turnable(plugin: &clap_plugin, ids: &HashMap<clap_id, String>) -> (Vec<String>, Vec<Parameter>) {
    // SAFETY: the caller says so.
    let params = unsafe { params(plugin) };
    let Some(&clap_plugin_params { count: Some(count), get_info: Some(get_info), .. }) = params else {
        return Default::default();
    };
    // SAFETY: as above.
    let infos = (0..unsafe { count(plugin) }).filter_map(|index| {
        let mut info = MaybeUninit::<clap_param_info>::uninit();
        // SAFETY: there is room for one, and it is there when the framework says so.
        unsafe { get_info(plugin, index, info.as_mut_ptr()).then(|| info.assume_init()) }
    });
    let turnable = infos.filter(|info| info.flags & CLAP_PARAM_IS_AUTOMATABLE != 0).filter_map(|info| {
        let clap_param_info { id, min_value: min, max_value: max, flags, .. } = info;
        let stepped = flags & CLAP_PARAM_IS_STEPPED != 0;
        Some((ids.get(&id)?.clone(), Parameter { id, min, max, stepped }))
    });
    turnable.unzip()
}

impl Shell {
    /// The shell that a host means.
    ///
    /// # Safety
    /// None, or a plugin that [`make`] has given and that is not destroyed yet.
    pub(crate) unsafe fn of<'a>(plugin: *const clap_plugin) -> Option<&'a Self> {
        // SAFETY: the caller says so, and what a host sees is the first field of a shell.
        unsafe { plugin.cast::<Self>().as_ref() }
    }

    /// Where a parameter stands, in CLAP's values.
    fn value(&self, id: clap_id) -> Option<f64> {
        // SAFETY: the framework's plugin is alive; it reads values on all threads alike.
        let get = unsafe { params(&self.inner) }?.get_value?;
        let mut value = 0.0;
        // SAFETY: as above, and there is room for a value.
        unsafe { get(&raw const self.inner, id, &raw mut value) }.then_some(value)
    }

    /// A block was played: has the main thread called where it is needed. Gives the status for the host: an instance that rests
    /// need not be called before something comes in.
    fn played(&self, status: clap_process_status) -> clap_process_status {
        if self.shared.is_due() {
            // SAFETY: the host outlives the instance, and CLAP lets all threads call that.
            if let Some(request) = unsafe { (*self.host).request_callback } {
                // SAFETY: as above.
                unsafe { request(self.host) };
            }
        }
        if status == CLAP_PROCESS_CONTINUE && self.shared.rest.is_resting() { CLAP_PROCESS_SLEEP } else { status }
    }
}

/// The host, for those who wake it.
struct Holder(*const clap_host);

// SAFETY: only `wake` looks at it, and CLAP lets all threads call that. It is forgotten before the host may go.
unsafe impl Send for Holder {}

impl Holder {
    fn wake(&self) {
        // SAFETY: the host is there as long as the instance, which forgets this when it is destroyed.
        if let Some(request) = unsafe { (*self.0).request_process } {
            // SAFETY: as above.
            unsafe { request(self.0) };
        }
    }
}

/// The framework knows a tail only between two blocks; ours is known from the beginning, and in rest too.
static TAIL: clap_plugin_tail = clap_plugin_tail { get: Some(tail) };

unsafe extern "C" fn tail(plugin: *const clap_plugin) -> u32 {
    // SAFETY: the host gives what it got from us.
    unsafe { Shell::of(plugin) }.map_or(0, |shell| shell.shared.rest.tail_samples())
}

unsafe extern "C" fn get_extension(plugin: *const clap_plugin, id: *const c_char) -> *const c_void {
    // SAFETY: the host gives what it got from us.
    let Some(shell) = unsafe { Shell::of(plugin) }.filter(|_| !id.is_null()) else { return null() };
    // SAFETY: CLAP gives a text that ends with a zero.
    let name = unsafe { CStr::from_ptr(id) };
    if loading::IDS.contains(&name) {
        return loading::extension();
    }
    if name == CLAP_EXT_STATE {
        return restoring::extension();
    }
    if name == CLAP_EXT_TAIL {
        return from_ref(&TAIL).cast();
    }
    // SAFETY: the framework looks only at the data, which is its own.
    shell.inner.get_extension.map_or(null(), |get| unsafe { get(plugin, id) })
}

unsafe extern "C" fn process(plugin: *const clap_plugin, block: *const clap_process) -> clap_process_status {
    // SAFETY: the host gives what it got from us.
    let shell = unsafe { Shell::of(plugin) };
    // SAFETY: it gives a block, too.
    let (Some(shell), Some(given)) = (shell, unsafe { block.as_ref() }) else { return CLAP_PROCESS_ERROR };
    let Some(process) = shell.inner.process else { return CLAP_PROCESS_ERROR };
    // SAFETY: CLAP lets one thread at a time process, and nothing else looks at this.
    let turns = unsafe { &mut *shell.turns.get() };
    // SAFETY: the lists of the host are valid for this block.
    let begin = || unsafe { turns.begin(&shell.shared.controllers, given.in_events, given.out_events) };
    let turned = assert_no_alloc(begin);
    let turns = &*turns;
    let status = if turned {
        let (input, output) = (turns.input(), turns.output());
        let output = if given.out_events.is_null() { null() } else { &raw const output };
        let ours = clap_process { in_events: &raw const input, out_events: output, ..*given };
        // SAFETY: the framework looks only at the data, which is its own; our lists live longer than this call.
        let status = unsafe { process(plugin, &raw const ours) };
        assert_no_alloc(|| turns.tell(u32::MAX));
        status
    } else {
        // SAFETY: as above.
        unsafe { process(plugin, block) }
    };
    if let Some(reticence) = &shell.reticence {
        let ids = turns.parameters().iter().map(|parameter| parameter.id);
        let values = ids.filter_map(|id| Some((id, shell.value(id)?)));
        // SAFETY: the host's list is valid for this block.
        assert_no_alloc(|| unsafe { reticence.tell(given.frames_count.saturating_sub(1), given.out_events, values) });
    }
    shell.played(status)
}

unsafe extern "C" fn on_main_thread(plugin: *const clap_plugin) {
    // SAFETY: the host gives what it got from us.
    let Some(shell) = (unsafe { Shell::of(plugin) }) else { return };
    let _ = catch_unwind(AssertUnwindSafe(|| shell.shared.settle()));
    if let Some(reticence) = &shell.reticence {
        reticence.settle();
    }
    if let Some(on_main_thread) = shell.inner.on_main_thread {
        // SAFETY: the framework looks only at the data, which is its own.
        unsafe { on_main_thread(plugin) };
    }
}

unsafe extern "C" fn destroy(plugin: *const clap_plugin) {
    if plugin.is_null() {
        return;
    }
    // SAFETY: the host gives what it got from us, for the last time.
    let shell = unsafe { Box::from_raw(plugin.cast::<Shell>().cast_mut()) };
    let _ = catch_unwind(AssertUnwindSafe(|| shell.shared.rest.wake_by(None)));
    if let Some(destroy) = shell.inner.destroy {
        // SAFETY: the framework takes back what it has made, once.
        unsafe { destroy(&raw const shell.inner) };
    }
    // What was going on ends where nobody waits for it any more.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(shell)));
}
