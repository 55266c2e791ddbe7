//! The last warning of an executor, per thread.

use std::cell::RefCell;

thread_local! {
    static WARNING: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Logs a warning and keeps it, replacing an older one, for the caller on this thread that prepares or steps the
/// executor.
pub(crate) fn push_warning(text: &str) {
    tracing::warn!("{text}");
    WARNING.set(Some(text.to_owned()));
}

/// Removes and returns the last warning of an executor on this thread: one line for the user, about something that did
/// not stop the model from playing.
#[must_use]
pub fn take_warning() -> Option<String> {
    WARNING.take()
}
