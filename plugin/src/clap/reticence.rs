//! How Ardour learns that a state has changed the parameters.
//!
//! Other hosts are told at once, while they wait for the state to be taken. Ardour holds a lock while a VST3 plugin takes a
//! preset, and waits for that lock for ever when it is told meanwhile that values have changed (seen with 7.3). So it learns
//! them from the next block, and what the VST3 wrapper remembers of them is renewed when the main thread is lent to the plugin
//! the next time, as while its window is open.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use clap_sys::events::{
    CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_DONT_RECORD, CLAP_EVENT_PARAM_VALUE, clap_event_header,
    clap_event_param_value, clap_output_events,
};
use clap_sys::ext::params::{
    CLAP_EXT_PARAMS, CLAP_PARAM_RESCAN_VALUES, clap_host_params, clap_param_clear_flags, clap_param_rescan_flags,
};
use clap_sys::host::clap_host;
use clap_sys::id::clap_id;

/// How the wrapper marks the names of VST3 hosts.
const WRAPPED: &str = "(CLAP-as-VST3)";
/// Ardour, and what is made from its source.
const HOSTS: [&str; 3] = ["Ardour", "Mixbus", "LiveTrax"];

/// Stands between the framework and such a host.
#[repr(C)]
pub struct Reticence {
    /// What the framework takes for its host. The first field: its address is the whole's.
    front: clap_host,
    host: *const clap_host,
    /// Whether the host waits for a state to be taken.
    waiting: AtomicBool,
    /// Whether the next block has to tell all values.
    block: AtomicBool,
    /// Whether the main thread has to.
    main: AtomicBool,
}

impl Reticence {
    /// For a host that needs it.
    ///
    /// # Safety
    /// The host is valid, and outlives this.
    pub unsafe fn of(host: *const clap_host) -> Option<Box<Self>> {
        // SAFETY: the caller says so, and a host's name ends with a zero.
        let (front, name) = unsafe {
            let front = *host.as_ref()?;
            (front, (!front.name.is_null()).then(|| CStr::from_ptr(front.name).to_string_lossy())?)
        };
        let needed = name.ends_with(WRAPPED) && HOSTS.iter().any(|host| name.starts_with(host));
        // What the wrapper knows a plugin by stays in it.
        let front = clap_host { get_extension: Some(get_extension), ..front };
        let no = || AtomicBool::new(false);
        needed.then(|| Box::new(Self { front, host, waiting: no(), block: no(), main: no() }))
    }

    /// The host for the framework.
    pub fn front(&self) -> *const clap_host {
        from_ref(self).cast()
    }

    /// Has a state taken while the host waits for it.
    pub fn taking<T>(&self, take: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let taken = take();
        self.waiting.store(false, Ordering::Relaxed);
        taken
    }

    /// Tells the host what is left to be told. On the main thread.
    pub fn settle(&self) {
        if self.main.swap(false, Ordering::Relaxed) {
            // SAFETY: the host outlives this.
            unsafe { self.rescan(CLAP_PARAM_RESCAN_VALUES) };
        }
    }

    /// Tells the host at `time` of a block where the parameters stand, if it is to learn that from this block.
    ///
    /// # Safety
    /// The list is none or valid.
    pub unsafe fn tell(
        &self,
        time: u32,
        output: *const clap_output_events,
        values: impl Iterator<Item = (clap_id, f64)>,
    ) {
        // SAFETY: the caller says so.
        let Some(push) = unsafe { output.as_ref() }.and_then(|list| list.try_push) else { return };
        if !self.block.swap(false, Ordering::Acquire) {
            return;
        }
        for (param_id, value) in values {
            let header = clap_event_header {
                size: size_of::<clap_event_param_value>() as u32,
                time,
                space_id: CLAP_CORE_EVENT_SPACE_ID,
                type_: CLAP_EVENT_PARAM_VALUE,
                flags: CLAP_EVENT_DONT_RECORD,
            };
            let (cookie, note_id, port_index, channel, key) = (null_mut(), -1, -1, -1, -1);
            let event = clap_event_param_value { header, param_id, cookie, note_id, port_index, channel, key, value };
            // SAFETY: a list is told through itself.
            unsafe { push(output, &raw const event.header) };
        }
    }

    /// What the host itself has for parameters.
    ///
    /// # Safety
    /// The host is alive.
    unsafe fn params(&self) -> Option<&clap_host_params> {
        // SAFETY: the caller says so; what a host gives for this id is of that type, or none.
        unsafe {
            ((*self.host).get_extension?)(self.host, CLAP_EXT_PARAMS.as_ptr()).cast::<clap_host_params>().as_ref()
        }
    }

    /// # Safety
    /// The host is alive, and this is its main thread.
    unsafe fn rescan(&self, flags: clap_param_rescan_flags) {
        // SAFETY: the caller says so.
        unsafe {
            if let Some(rescan) = self.params().and_then(|params| params.rescan) {
                rescan(self.host, flags);
            }
        }
    }
}

/// # Safety
/// The host is one that [`Reticence::front`] has given, alive.
unsafe fn reticence<'a>(host: *const clap_host) -> &'a Reticence {
    // SAFETY: the caller says so, and what the framework has is the first field.
    unsafe { &*host.cast::<Reticence>() }
}

static PARAMS: clap_host_params =
    clap_host_params { rescan: Some(rescan), clear: Some(clear), request_flush: Some(request_flush) };

unsafe extern "C" fn get_extension(host: *const clap_host, id: *const c_char) -> *const c_void {
    // SAFETY: only fronts have this function; the framework gives a text that ends with a zero.
    unsafe {
        let real = reticence(host).host;
        let extension = (*real).get_extension.map_or(null(), |get| get(real, id));
        if !extension.is_null() && CStr::from_ptr(id) == CLAP_EXT_PARAMS { from_ref(&PARAMS).cast() } else { extension }
    }
}

unsafe extern "C" fn rescan(host: *const clap_host, flags: clap_param_rescan_flags) {
    // SAFETY: only fronts have this function, which the framework calls on the main thread; CLAP lets all threads request.
    unsafe {
        let reticence = reticence(host);
        if !reticence.waiting.load(Ordering::Relaxed) {
            return reticence.rescan(flags);
        }
        // The audio thread that sees this sees the values, too.
        reticence.block.store(true, Ordering::Release);
        reticence.main.store(true, Ordering::Relaxed);
        if let Some(request) = (*reticence.host).request_callback {
            request(reticence.host);
        }
    }
}

unsafe extern "C" fn clear(host: *const clap_host, id: clap_id, flags: clap_param_clear_flags) {
    // SAFETY: as above.
    unsafe {
        let reticence = reticence(host);
        if let Some(clear) = reticence.params().and_then(|params| params.clear) {
            clear(reticence.host, id, flags);
        }
    }
}

unsafe extern "C" fn request_flush(host: *const clap_host) {
    // SAFETY: as above.
    unsafe {
        let reticence = reticence(host);
        if let Some(request_flush) = reticence.params().and_then(|params| params.request_flush) {
            request_flush(reticence.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap_sys::version::CLAP_VERSION;

    use super::*;

    /// What a host was told, as lines.
    type Told = RefCell<Vec<String>>;

    // SAFETY: what follows is only called with the host below, for which it is made.
    unsafe fn told<'a>(host: *const clap_host) -> &'a Told {
        // SAFETY: as above.
        unsafe { &*(*host).host_data.cast::<Told>() }
    }
    unsafe extern "C" fn nothing(_: *const clap_host) {}
    unsafe extern "C" fn callback(host: *const clap_host) {
        // SAFETY: as above.
        unsafe { told(host) }.borrow_mut().push("callback".into());
    }
    unsafe extern "C" fn rescanned(host: *const clap_host, flags: clap_param_rescan_flags) {
        // SAFETY: as above.
        unsafe { told(host) }.borrow_mut().push(format!("rescan {flags}"));
    }
    unsafe extern "C" fn cleared(_: *const clap_host, _: clap_id, _: clap_param_clear_flags) {}
    unsafe extern "C" fn extension(_: *const clap_host, id: *const c_char) -> *const c_void {
        static PARAMS: clap_host_params =
            clap_host_params { rescan: Some(rescanned), clear: Some(cleared), request_flush: Some(nothing) };
        // SAFETY: ids are texts.
        if unsafe { CStr::from_ptr(id) } == CLAP_EXT_PARAMS { from_ref(&PARAMS).cast() } else { null() }
    }
    unsafe extern "C" fn heard(list: *const clap_output_events, event: *const clap_event_header) -> bool {
        // SAFETY: the list is the one below, the event a value.
        unsafe {
            let clap_event_param_value { header, param_id, value, .. } = *event.cast::<clap_event_param_value>();
            let line = format!("{} {param_id} {value}", header.time);
            (*(*list).ctx.cast::<Told>()).borrow_mut().push(line);
        }
        true
    }

    fn host(name: &'static CStr, told: &Told) -> clap_host {
        let name = name.as_ptr();
        clap_host {
            clap_version: CLAP_VERSION,
            host_data: from_ref(told).cast_mut().cast(),
            name,
            vendor: name,
            url: name,
            version: name,
            get_extension: Some(extension),
            request_restart: Some(nothing),
            request_process: Some(nothing),
            request_callback: Some(callback),
        }
    }

    #[test]
    fn ardour_learns_values_after_a_load() {
        let told = Told::default();
        let host = host(c"Ardour (CLAP-as-VST3)", &told);
        // SAFETY: the host lives as long as this test, here and below.
        let reticence = unsafe { Reticence::of(&host) }.unwrap();
        let front = reticence.front();
        // SAFETY: the front has what the host has.
        let params = unsafe {
            assert!((*front).get_extension.unwrap()(front, c"clap.none".as_ptr()).is_null());
            &*(*front).get_extension.unwrap()(front, CLAP_EXT_PARAMS.as_ptr()).cast::<clap_host_params>()
        };
        let list = clap_output_events { ctx: from_ref(&told).cast_mut().cast(), try_push: Some(heard) };
        // SAFETY: the list is valid.
        let block = || unsafe { reticence.tell(63, &raw const list, [(7, 0.5), (9, 2.0)].into_iter()) };
        // SAFETY: the front is one.
        let rescan = || unsafe { params.rescan.unwrap()(front, CLAP_PARAM_RESCAN_VALUES) };
        let heard = || told.take();

        rescan();
        block();
        reticence.settle();
        assert_eq!(heard(), ["rescan 1"], "at once where the host does not wait");
        reticence.taking(rescan);
        assert_eq!(heard(), ["callback"]);
        block();
        assert_eq!(heard(), ["63 7 0.5", "63 9 2"]);
        block();
        assert!(heard().is_empty(), "once is enough");
        reticence.settle();
        reticence.settle();
        assert_eq!(heard(), ["rescan 1"]);
    }

    #[test]
    fn others_need_no_reticence() {
        let told = Told::default();
        for name in [c"Ardour", c"REAPER (CLAP-as-VST3)", c"Not Ardour (CLAP-as-VST3)", c""] {
            // SAFETY: the host lives longer than this call.
            assert!(unsafe { Reticence::of(&host(name, &told)) }.is_none(), "{name:?}");
        }
        // SAFETY: none is allowed.
        assert!(unsafe { Reticence::of(null()) }.is_none());
    }
}
