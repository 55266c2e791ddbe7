//! Changes that a host has to hear of on its main thread: the project has to be saved, or
//! parameters have other names.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use ondes_engine::sync::lock;

/// Asks the host for a call on its main thread.
type RequestCall = Box<dyn Fn() + Send>;

/// Changes of one instance since its host was last notified.
#[derive(Default)]
pub struct HostNotifier {
    state_changed: AtomicBool,
    names_changed: AtomicBool,
    values_changed: AtomicBool,
    rescan_due: AtomicBool,
    preset_read: AtomicBool,
    request_call: Mutex<Option<RequestCall>>,
}

impl HostNotifier {
    /// Notes that what a project saves has changed, other than by the host. Not for the audio
    /// thread.
    pub fn mark_state_changed(&self) {
        self.mark(&self.state_changed);
    }

    /// Notes that parameters may have other names. Not for the audio thread.
    pub fn mark_names_changed(&self) {
        self.mark(&self.names_changed);
    }

    /// Notes that the window has changed values of parameters. Not for the audio thread.
    pub fn mark_values_changed(&self) {
        self.mark(&self.values_changed);
    }

    /// Notes that the host has to read all values of parameters again. Not for the audio thread.
    pub fn mark_rescan_due(&self) {
        self.mark(&self.rescan_due);
    }

    /// Returns whether [`mark_state_changed`](Self::mark_state_changed) was called since the last
    /// time.
    pub fn take_state_changed(&self) -> bool {
        self.state_changed.swap(false, Relaxed)
    }

    /// Returns whether [`mark_names_changed`](Self::mark_names_changed) was called since the last
    /// time.
    pub fn take_names_changed(&self) -> bool {
        self.names_changed.swap(false, Relaxed)
    }

    /// Returns whether [`mark_values_changed`](Self::mark_values_changed) was called since the last
    /// time.
    pub fn take_values_changed(&self) -> bool {
        self.values_changed.swap(false, Relaxed)
    }

    /// Returns whether [`mark_rescan_due`](Self::mark_rescan_due) was called since the last
    /// time.
    pub fn take_rescan_due(&self) -> bool {
        self.rescan_due.swap(false, Relaxed)
    }

    /// Notes that a preset has been read, and waits to be played. Not for the audio thread.
    pub fn mark_preset_read(&self) {
        self.mark(&self.preset_read);
    }

    /// Returns whether [`mark_preset_read`](Self::mark_preset_read) was called since the last
    /// time.
    pub fn take_preset_read(&self) -> bool {
        self.preset_read.swap(false, Relaxed)
    }

    /// Sets the function that asks the host for a call on its main thread, or removes it. It may be
    /// called on any thread but the audio thread.
    pub fn set_request_call(&self, request: Option<RequestCall>) {
        *self.request_call() = request;
    }

    fn mark(&self, change: &AtomicBool) {
        if !change.swap(true, Relaxed)
            && let Some(request) = &*self.request_call()
        {
            request();
        }
    }

    fn request_call(&self) -> MutexGuard<'_, Option<RequestCall>> {
        lock(&self.request_call)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_host_is_asked_once_for_each_kind_of_change() {
        let (notifier, calls) = (HostNotifier::default(), Arc::new(AtomicUsize::new(0)));
        notifier.mark_state_changed();
        assert!(
            notifier.take_state_changed() && !notifier.take_state_changed(),
            "also without a host"
        );
        let counted = calls.clone();
        notifier.set_request_call(Some(Box::new(move || {
            counted.fetch_add(1, Relaxed);
        })));
        notifier.mark_state_changed();
        notifier.mark_state_changed();
        notifier.mark_names_changed();
        assert_eq!(calls.load(Relaxed), 2);
        assert!(
            notifier.take_state_changed()
                && notifier.take_names_changed()
                && !notifier.take_names_changed()
        );
        notifier.mark_names_changed();
        assert_eq!(calls.load(Relaxed), 3);
        notifier.set_request_call(None);
        assert_eq!(Arc::strong_count(&calls), 1);
    }
}
