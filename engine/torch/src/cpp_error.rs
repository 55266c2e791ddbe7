//! Errors of code in C++.

use std::ffi::{CStr, c_char};

/// Panics with a text of C++, and frees it; does nothing if it is null.
///
/// # Safety
/// The text ends with a zero, and the caller owns it: `malloc` made it.
///
/// # Panics
/// Panics if there is a text.
pub unsafe fn raise(error: *mut c_char) {
    if error.is_null() {
        return;
    }
    // SAFETY: stated above.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        libc::free(error.cast());
        text
    };
    panic!("{text}");
}
