//! Starts a TorchScript program again whose process was lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::background_jobs::run_in_background;
use super::controller_state::{ActiveHost, ControllerInner, LoadStatus, PendingChange};
use super::guard::STAYS_SILENT;

impl ControllerInner {
    /// Starts watching the model, if it is a program in real time.
    pub fn start_program_watch(self: &Arc<Self>) {
        let mut state = self.state();
        let is_program = state
            .factories
            .first()
            .is_some_and(|factory| factory.is_program());
        if is_program && !std::mem::replace(&mut state.program_watch.is_running, true) {
            let inner = Arc::downgrade(self);
            run_in_background(Box::new(move || {
                inner.upgrade().is_some_and(|inner| inner.watch_program())
            }));
        }
    }

    /// Builds the model anew if its program was lost. Returns true to be called again.
    fn watch_program(&self) -> bool {
        let mut state = self.state();
        let is_program = state
            .factories
            .first()
            .is_some_and(|factory| factory.is_program());
        let is_lost = |host: &&ActiveHost| {
            let metrics = host.newest_metrics();
            host.has_failed()
                && metrics.is_some_and(|metrics| metrics.is_program_lost.load(Ordering::Relaxed))
        };
        let lost = state.host.as_ref().filter(is_lost);
        // A bounce would miss some sound; it ends with the error.
        let reason = lost
            .map(ActiveHost::failure_reason)
            .filter(|_| state.status == LoadStatus::Ready && !state.has_time());
        let gives_up = reason.is_some() && !state.program_watch.may_restart(Instant::now());
        state.program_watch.is_running = is_program && state.is_played() && !gives_up;
        if !state.program_watch.is_running {
            return false;
        }
        let Some(reason) = reason else { return true };
        let request = self.begin_request(&mut state);
        drop(state);
        self.try_request(request, || self.change(request, PendingChange::Rebuild));
        let reason = reason.strip_suffix(STAYS_SILENT).unwrap_or(&reason);
        let state = self.state();
        if state.status == LoadStatus::Ready
            && let Some(metrics) = state.host.as_ref().and_then(ActiveHost::newest_metrics)
        {
            metrics.set_warning(&format!("{reason}; it was started again"));
        }
        drop(state);
        self.free_retired();
        true
    }
}
