//! Libraries that write to standard error whatever happens, kept from it.

/// Keeps ALSA from writing to standard error when this thread calls it. JACK's library says nothing as it is used here.
pub(super) fn hush() {
    #[cfg(target_os = "linux")]
    {
        // It stays for as long as the thread; the text goes nowhere. Without memory for that, ALSA will be heard.
        drop(alsa::Output::local_error_handler());
    }
}
