//! Presets in the host's browser. [`discovery`] lists them, [`preset_load`] loads one by merging it
//! into the plugin's saved [`state`]. [`state_as_preset`] accepts preset files where a host loads
//! presets as states (VST3).

#[allow(unsafe_code, reason = "implements the CLAP ABI")]
pub mod discovery;
#[allow(unsafe_code, reason = "implements the CLAP ABI")]
pub mod preset_load;
pub mod state;
#[allow(unsafe_code, reason = "implements the CLAP ABI")]
pub mod state_as_preset;
#[allow(unsafe_code, reason = "implements the CLAP ABI")]
mod streams;

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns a C string; removes NUL characters.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Calls `body` from a C function; returns `on_panic` if it panics.
pub(crate) fn catch_panic<T>(on_panic: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(on_panic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught() {
        assert!(!catch_panic(false, || panic!("on purpose")));
        assert_eq!(c_string("a\0b").to_bytes(), b"ab");
    }
}
