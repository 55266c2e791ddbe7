//! Defers parameter notifications for hosts that deadlock on them (Ardour).
//!
//! A state load changes parameter values, which the host has to read again by its `rescan`. Ardour
//! 7.3 holds a lock while a VST3 plugin loads a preset, and waits for that lock forever if `rescan`
//! is called meanwhile. For such hosts the values are sent as output events of the next block, and
//! `rescan`, which refreshes the values cached by the VST3 wrapper, is called in the next
//! main-thread callback (the wrapper's timer calls it while the plugin's window is open).

use std::sync::atomic::{AtomicBool, Ordering};

use clap_sys::events::CLAP_EVENT_DONT_RECORD;
use clap_sys::ext::params::CLAP_PARAM_RESCAN_VALUES;
use clap_sys::id::clap_id;

use super::event::{Event, HostOutput};
use super::host::Host;

/// Suffix that the VST3 wrapper adds to the host's name.
const VST3_SUFFIX: &str = "(CLAP-as-VST3)";
/// Ardour and the products built from its source.
const HOSTS: [&str; 3] = ["Ardour", "Mixbus", "LiveTrax"];

/// State of a deferred notification.
#[derive(Default)]
pub(crate) struct DeferredRescan {
    /// A state load is in progress.
    loading: AtomicBool,
    /// The next block must send all values.
    values_pending: AtomicBool,
    /// The next main-thread callback must call `rescan`.
    rescan_pending: AtomicBool,
}

impl DeferredRescan {
    /// Returns the state for a host that needs one.
    pub(super) fn for_host(host: Host) -> Option<Self> {
        let name = host.name();
        let needed = name.ends_with(VST3_SUFFIX) && HOSTS.iter().any(|host| name.starts_with(host));
        needed.then(Self::default)
    }

    /// Runs a state load; notifications within it are deferred.
    pub(crate) fn during_load<T>(&self, load: impl FnOnce() -> T) -> T {
        self.loading.store(true, Ordering::Relaxed);
        let result = load();
        self.loading.store(false, Ordering::Relaxed);
        result
    }

    /// Lets the host read all values again, now or after the load. On the main thread.
    pub(super) fn rescan_values(&self, host: Host) {
        if !self.loading.load(Ordering::Relaxed) {
            return host.rescan_parameters(CLAP_PARAM_RESCAN_VALUES);
        }
        // Release: the audio thread that reads the flag also sees the new values.
        self.values_pending.store(true, Ordering::Release);
        self.rescan_pending.store(true, Ordering::Relaxed);
        host.request_callback();
    }

    /// Calls the host's `rescan` if one was deferred. On the main thread.
    pub(super) fn rescan_if_pending(&self, host: Host) {
        if self.rescan_pending.swap(false, Ordering::Relaxed) {
            host.rescan_parameters(CLAP_PARAM_RESCAN_VALUES);
        }
    }

    /// Pushes all parameter values to the host at `time` of a block, if a `rescan` was deferred
    /// since the last call.
    pub(super) fn push_values(
        &self,
        time: u32,
        output: &HostOutput<'_>,
        values: impl Iterator<Item = (clap_id, f64)>,
    ) {
        if self.values_pending.swap(false, Ordering::Acquire) {
            for (id, value) in values {
                output.push(&Event::parameter(time, CLAP_EVENT_DONT_RECORD, id, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ffi::{CStr, c_char, c_void};
    use std::ptr::{from_ref, null};

    use clap_sys::events::{clap_event_header, clap_event_param_value, clap_output_events};
    use clap_sys::ext::params::{
        CLAP_EXT_PARAMS, clap_host_params, clap_param_clear_flags, clap_param_rescan_flags,
    };
    use clap_sys::host::clap_host;
    use clap_sys::version::CLAP_VERSION;

    use super::*;
    use crate::clap::c_interface::FromHost;

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
        // SAFETY: the host lives as long as this test.
        let host = unsafe { Host::from_host(&raw const host) }.unwrap();
        let deferred = DeferredRescan::for_host(host).unwrap();
        let list = clap_output_events {
            ctx: from_ref(&log).cast_mut().cast(),
            try_push: Some(log_event),
        };
        // SAFETY: the list is alive.
        let list = unsafe { HostOutput::from_host(&raw const list) }.unwrap();
        let block = || deferred.push_values(63, &list, [(7, 0.5), (9, 2.0)].into_iter());
        let rescan = || deferred.rescan_values(host);

        rescan();
        block();
        deferred.rescan_if_pending(host);
        assert_eq!(log.take(), ["rescan 1"], "immediate outside of a load");
        deferred.during_load(rescan);
        assert_eq!(log.take(), ["callback"]);
        block();
        assert_eq!(log.take(), ["63 7 0.5", "63 9 2"]);
        block();
        assert!(log.take().is_empty(), "values are sent once");
        deferred.rescan_if_pending(host);
        deferred.rescan_if_pending(host);
        assert_eq!(log.take(), ["rescan 1"]);
    }

    #[test]
    fn other_hosts_need_no_deferral() {
        let log = CallLog::default();
        for name in [
            c"Ardour",
            c"REAPER (CLAP-as-VST3)",
            c"Not Ardour (CLAP-as-VST3)",
            c"",
        ] {
            let host = host(name, &log);
            // SAFETY: the host is alive.
            let host = unsafe { Host::from_host(&raw const host) }.unwrap();
            assert!(DeferredRescan::for_host(host).is_none(), "{name:?}");
        }
    }
}
