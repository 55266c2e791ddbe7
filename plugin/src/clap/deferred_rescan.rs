//! Defers parameter notifications for hosts that deadlock on them (Ardour).
//!
//! A state load changes parameter values, and the framework then calls the host's `rescan`. Ardour
//! 7.3 holds a lock while a VST3 plugin loads a preset, and waits for that lock forever if `rescan`
//! is called meanwhile. For such hosts the values are sent as output events of the next block, and
//! `rescan`, which refreshes the values cached by the VST3 wrapper, is called in the next
//! main-thread callback (the wrapper's timer calls it while the plugin's window is open).

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use clap_sys::events::{
    CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_DONT_RECORD, CLAP_EVENT_PARAM_VALUE, clap_event_header,
    clap_event_param_value, clap_output_events,
};
use clap_sys::ext::params::{
    CLAP_EXT_PARAMS, CLAP_PARAM_RESCAN_VALUES, clap_host_params, clap_param_clear_flags,
    clap_param_rescan_flags,
};
use clap_sys::host::clap_host;
use clap_sys::id::clap_id;

/// Suffix that the VST3 wrapper adds to the host's name.
const VST3_SUFFIX: &str = "(CLAP-as-VST3)";
/// Ardour and the products built from its source.
const HOSTS: [&str; 3] = ["Ardour", "Mixbus", "LiveTrax"];

/// Host proxy that the framework gets instead of such a host.
#[repr(C)]
pub struct DeferredRescan {
    /// The host that the framework sees. Must be the first field: its address is the proxy's.
    proxy: clap_host,
    host: *const clap_host,
    /// A state load is in progress.
    loading: AtomicBool,
    /// The next block must send all values.
    values_pending: AtomicBool,
    /// The next main-thread callback must call `rescan`.
    rescan_pending: AtomicBool,
}

impl DeferredRescan {
    /// Creates a proxy if the host needs one.
    ///
    /// # Safety
    /// The host is null, or valid and outlives this.
    pub unsafe fn for_host(host: *const clap_host) -> Option<Box<Self>> {
        // SAFETY: guaranteed by the caller; a host's name is NUL-terminated.
        let (proxy, name) = unsafe {
            let proxy = *host.as_ref()?;
            (
                proxy,
                (!proxy.name.is_null()).then(|| CStr::from_ptr(proxy.name).to_string_lossy())?,
            )
        };
        let needed = name.ends_with(VST3_SUFFIX) && HOSTS.iter().any(|host| name.starts_with(host));
        // `host_data` stays: the VST3 wrapper finds its plugin by it.
        let proxy = clap_host {
            get_extension: Some(get_extension),
            ..proxy
        };
        let unset = || AtomicBool::new(false);
        needed.then(|| {
            Box::new(Self {
                proxy,
                host,
                loading: unset(),
                values_pending: unset(),
                rescan_pending: unset(),
            })
        })
    }

    /// Returns the host to give to the framework.
    pub fn proxy(&self) -> *const clap_host {
        from_ref(self).cast()
    }

    /// Runs a state load; `rescan` calls within it are deferred.
    pub fn during_load<T>(&self, load: impl FnOnce() -> T) -> T {
        self.loading.store(true, Ordering::Relaxed);
        let result = load();
        self.loading.store(false, Ordering::Relaxed);
        result
    }

    /// Calls the host's `rescan` if one was deferred. On the main thread.
    pub fn rescan_if_pending(&self) {
        if self.rescan_pending.swap(false, Ordering::Relaxed) {
            // SAFETY: the host outlives this.
            unsafe { self.rescan(CLAP_PARAM_RESCAN_VALUES) };
        }
    }

    /// Pushes all parameter values to the host at `time` of a block, if a `rescan` was deferred
    /// since the last call.
    ///
    /// # Safety
    /// The list is null or valid.
    pub unsafe fn push_values(
        &self,
        time: u32,
        output: *const clap_output_events,
        values: impl Iterator<Item = (clap_id, f64)>,
    ) {
        // SAFETY: guaranteed by the caller.
        let Some(push) = unsafe { output.as_ref() }.and_then(|list| list.try_push) else {
            return;
        };
        if !self.values_pending.swap(false, Ordering::Acquire) {
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
            let event = clap_event_param_value {
                header,
                param_id,
                cookie,
                note_id,
                port_index,
                channel,
                key,
                value,
            };
            // SAFETY: the function belongs to this list; the event is valid during the call.
            unsafe { push(output, &raw const event.header) };
        }
    }

    /// Returns the real host's parameter extension.
    ///
    /// # Safety
    /// The host is alive.
    unsafe fn params(&self) -> Option<&clap_host_params> {
        // SAFETY: guaranteed by the caller; for this id a host returns that type, or null.
        unsafe {
            ((*self.host).get_extension?)(self.host, CLAP_EXT_PARAMS.as_ptr())
                .cast::<clap_host_params>()
                .as_ref()
        }
    }

    /// # Safety
    /// The host is alive, and this is its main thread.
    unsafe fn rescan(&self, flags: clap_param_rescan_flags) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(rescan) = self.params().and_then(|params| params.rescan) {
                rescan(self.host, flags);
            }
        }
    }
}

/// # Safety
/// The host comes from [`DeferredRescan::proxy`] and is alive.
unsafe fn of_proxy<'a>(host: *const clap_host) -> &'a DeferredRescan {
    // SAFETY: guaranteed by the caller; the proxy is the first field.
    unsafe { &*host.cast::<DeferredRescan>() }
}

static PARAMS: clap_host_params = clap_host_params {
    rescan: Some(rescan),
    clear: Some(clear),
    request_flush: Some(request_flush),
};

unsafe extern "C" fn get_extension(host: *const clap_host, id: *const c_char) -> *const c_void {
    // SAFETY: only proxies have this function; the framework passes a NUL-terminated string.
    unsafe {
        let real = of_proxy(host).host;
        let extension = (*real).get_extension.map_or(null(), |get| get(real, id));
        if !extension.is_null() && CStr::from_ptr(id) == CLAP_EXT_PARAMS {
            from_ref(&PARAMS).cast()
        } else {
            extension
        }
    }
}

unsafe extern "C" fn rescan(host: *const clap_host, flags: clap_param_rescan_flags) {
    // SAFETY: only proxies have this function, which the framework calls on the main thread; CLAP
    // allows `request_callback` on any thread.
    unsafe {
        let deferred = of_proxy(host);
        if !deferred.loading.load(Ordering::Relaxed) {
            return deferred.rescan(flags);
        }
        // Release: the audio thread that reads the flag also sees the new values.
        deferred.values_pending.store(true, Ordering::Release);
        deferred.rescan_pending.store(true, Ordering::Relaxed);
        if let Some(request) = (*deferred.host).request_callback {
            request(deferred.host);
        }
    }
}

unsafe extern "C" fn clear(host: *const clap_host, id: clap_id, flags: clap_param_clear_flags) {
    // SAFETY: as above.
    unsafe {
        let deferred = of_proxy(host);
        if let Some(clear) = deferred.params().and_then(|params| params.clear) {
            clear(deferred.host, id, flags);
        }
    }
}

unsafe extern "C" fn request_flush(host: *const clap_host) {
    // SAFETY: as above.
    unsafe {
        let deferred = of_proxy(host);
        if let Some(request_flush) = deferred.params().and_then(|params| params.request_flush) {
            request_flush(deferred.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clap_sys::version::CLAP_VERSION;

    use super::*;

    /// Calls that the host received, one line each.
    type CallLog = RefCell<Vec<String>>;

    // SAFETY: these functions are only called with the host below, whose `host_data` is a
    // `CallLog`.
    unsafe fn log<'a>(host: *const clap_host) -> &'a CallLog {
        // SAFETY: as above.
        unsafe { &*(*host).host_data.cast::<CallLog>() }
    }
    unsafe extern "C" fn ignore(_: *const clap_host) {}
    unsafe extern "C" fn log_callback(host: *const clap_host) {
        // SAFETY: as above.
        unsafe { log(host) }.borrow_mut().push("callback".into());
    }
    unsafe extern "C" fn log_rescan(host: *const clap_host, flags: clap_param_rescan_flags) {
        // SAFETY: as above.
        unsafe { log(host) }
            .borrow_mut()
            .push(format!("rescan {flags}"));
    }
    unsafe extern "C" fn ignore_clear(_: *const clap_host, _: clap_id, _: clap_param_clear_flags) {}
    unsafe extern "C" fn extension(_: *const clap_host, id: *const c_char) -> *const c_void {
        static PARAMS: clap_host_params = clap_host_params {
            rescan: Some(log_rescan),
            clear: Some(ignore_clear),
            request_flush: Some(ignore),
        };
        // SAFETY: ids are NUL-terminated strings.
        if unsafe { CStr::from_ptr(id) } == CLAP_EXT_PARAMS {
            from_ref(&PARAMS).cast()
        } else {
            null()
        }
    }
    unsafe extern "C" fn log_event(
        list: *const clap_output_events,
        event: *const clap_event_header,
    ) -> bool {
        // SAFETY: the list is the one below, the event a parameter value.
        unsafe {
            let clap_event_param_value {
                header,
                param_id,
                value,
                ..
            } = *event.cast::<clap_event_param_value>();
            let line = format!("{} {param_id} {value}", header.time);
            (*(*list).ctx.cast::<CallLog>()).borrow_mut().push(line);
        }
        true
    }

    fn host(name: &'static CStr, log: &CallLog) -> clap_host {
        let name = name.as_ptr();
        clap_host {
            clap_version: CLAP_VERSION,
            host_data: from_ref(log).cast_mut().cast(),
            name,
            vendor: name,
            url: name,
            version: name,
            get_extension: Some(extension),
            request_restart: Some(ignore),
            request_process: Some(ignore),
            request_callback: Some(log_callback),
        }
    }

    #[test]
    fn ardour_gets_values_and_rescan_after_a_load() {
        let log = CallLog::default();
        let host = host(c"Ardour (CLAP-as-VST3)", &log);
        // SAFETY: the host lives as long as this test, here and below.
        let deferred = unsafe { DeferredRescan::for_host(&host) }.unwrap();
        let proxy = deferred.proxy();
        // SAFETY: the proxy has the host's functions.
        let params = unsafe {
            assert!((*proxy).get_extension.unwrap()(proxy, c"clap.none".as_ptr()).is_null());
            &*(*proxy).get_extension.unwrap()(proxy, CLAP_EXT_PARAMS.as_ptr())
                .cast::<clap_host_params>()
        };
        let list = clap_output_events {
            ctx: from_ref(&log).cast_mut().cast(),
            try_push: Some(log_event),
        };
        // SAFETY: the list is valid.
        let block = || unsafe {
            deferred.push_values(63, &raw const list, [(7, 0.5), (9, 2.0)].into_iter())
        };
        // SAFETY: the proxy is valid.
        let rescan = || unsafe { params.rescan.unwrap()(proxy, CLAP_PARAM_RESCAN_VALUES) };

        rescan();
        block();
        deferred.rescan_if_pending();
        assert_eq!(log.take(), ["rescan 1"], "immediate outside of a load");
        deferred.during_load(rescan);
        assert_eq!(log.take(), ["callback"]);
        block();
        assert_eq!(log.take(), ["63 7 0.5", "63 9 2"]);
        block();
        assert!(log.take().is_empty(), "values are sent once");
        deferred.rescan_if_pending();
        deferred.rescan_if_pending();
        assert_eq!(log.take(), ["rescan 1"]);
    }

    #[test]
    fn other_hosts_get_no_proxy() {
        let log = CallLog::default();
        for name in [
            c"Ardour",
            c"REAPER (CLAP-as-VST3)",
            c"Not Ardour (CLAP-as-VST3)",
            c"",
        ] {
            // SAFETY: the host lives longer than this call.
            let rescan = unsafe { DeferredRescan::for_host(&host(name, &log)) };
            assert!(rescan.is_none(), "{name:?}");
        }
        // SAFETY: null is allowed.
        assert!(unsafe { DeferredRescan::for_host(null()) }.is_none());
    }
}
