//! Messages of libraries on standard error.

/// Keeps ALSA from printing to standard error on this thread.
pub(super) fn silence() {
    #[cfg(target_os = "linux")]
    {
        // Lasts as long as the thread. If it cannot be set, ALSA prints its messages.
        drop(alsa::Output::local_error_handler());
    }
}
