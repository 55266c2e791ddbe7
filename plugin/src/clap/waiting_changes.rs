//! Changes by the window that wait for a host, which may not ask for them.

use std::sync::Mutex;
use std::time::Instant;

use ondes_engine::sync::lock;

use crate::parameters::{HostParameters, PATIENCE};

/// Request to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostRequest {
    /// To take the changes in `process` or `flush`.
    Flush,
    /// To read all values, in place of the changes.
    Rescan,
}

/// Time since which changes wait.
#[derive(Default)]
pub(super) struct WaitingChanges(Mutex<Option<Instant>>);

impl WaitingChanges {
    /// Returns what to ask the host for: nothing, or changes to be taken, or all values to be read
    /// if it takes none: it has not activated the plugin, or stands still. On the main thread.
    pub(super) fn request(&self, values: &HostParameters, is_active: bool) -> Option<HostRequest> {
        let (has_changed, is_full) = values.take_notices();
        let mut since = lock(&self.0);
        *since = values
            .has_changes()
            .then(|| since.unwrap_or_else(Instant::now));
        let is_idle = since.is_some_and(|since| since.elapsed() >= PATIENCE);
        if is_full || is_idle || has_changed && !is_active {
            *since = None;
            values.pass_changes(|_| true);
            return Some(HostRequest::Rescan);
        }
        has_changed.then_some(HostRequest::Flush)
    }
}

#[cfg(test)]
mod tests {
    use ondes_player::instance::InstanceHandle;
    use ondes_player::parameter::MIX;
    use ondes_player::parameter_source::ParameterSetter;
    use ondes_player::product::Product;

    use super::*;

    #[test]
    fn a_host_that_takes_nothing_reads_all_values() {
        let instance = InstanceHandle::new(Product::Effect, || ());
        let values = HostParameters::new(&instance, Default::default());
        let waiting = WaitingChanges::default();
        assert_eq!(waiting.request(&values, true), None);
        values.begin_gesture(MIX);
        assert_eq!(waiting.request(&values, true), Some(HostRequest::Flush));
        assert_eq!(waiting.request(&values, true), None, "it has time");
        *lock(&waiting.0) = Some(Instant::now() - PATIENCE);
        assert_eq!(waiting.request(&values, true), Some(HostRequest::Rescan));
        assert!(!values.has_changes());
        values.end_gesture(MIX);
        assert_eq!(waiting.request(&values, false), Some(HostRequest::Rescan));
        assert_eq!(waiting.request(&values, false), None);
    }
}
