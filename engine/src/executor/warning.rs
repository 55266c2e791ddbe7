//! The last warning of an executor, and the loss of a program, per thread.

use std::cell::{Cell, RefCell};

thread_local! {
    static WARNING: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_PROGRAM_LOST: Cell<bool> = const { Cell::new(false) };
}

/// Logs a warning and keeps it, replacing an older one, for the caller on this thread that prepares
/// or steps the executor.
pub(crate) fn push_warning(text: &str) {
    tracing::warn!("{text}");
    WARNING.set(Some(text.to_owned()));
}

/// Removes and returns the last warning of an executor on this thread: one line for the user, about
/// something that did not stop the model from playing.
#[must_use]
pub fn take_warning() -> Option<String> {
    WARNING.take()
}

/// Notes that the step which fails now has lost the process of its program, for the caller on this
/// thread.
pub(crate) fn mark_program_lost() {
    IS_PROGRAM_LOST.set(true);
}

/// Returns true if a step that failed on this thread has lost the process of its program, once.
pub(crate) fn take_program_lost() -> bool {
    IS_PROGRAM_LOST.take()
}
