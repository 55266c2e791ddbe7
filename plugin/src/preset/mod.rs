//! For hosts that show presets themselves: [`discovery`] tells which there are, and [`loading`] plays one of them, put
//! into the plugin's own [`state`]. Hosts that know presets only as states find that [`restoring`] takes them too.

#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
pub mod discovery;
#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
pub mod loading;
#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
pub mod restoring;
pub mod state;
#[allow(unsafe_code, reason = "it speaks the CLAP ABI")]
mod streams;

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A text for C, without what would end it early.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Does something that C has asked for; a panic ends here and means `otherwise`.
fn guarded<T>(otherwise: T, deed: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(deed)).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_goes_no_further() {
        assert!(!guarded(false, || panic!("on purpose")));
        assert_eq!(c_string("a\0b").to_bytes(), b"ab");
    }
}
