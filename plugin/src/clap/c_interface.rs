//! The border between C and Rust: functions for hosts, and calls of functions that come from a host
//! or the framework.
//!
//! [`c_function`] makes a C function of a safe one: it checks the pointers and contains panics.
//! [`call`] calls a C function with references instead of pointers. Both are sound as long as a
//! host keeps CLAP's rules for its pointers: null, or valid as long as CLAP says.

use std::ffi::{CStr, c_char};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;

use clap_sys::ext::audio_ports::clap_audio_port_info;
use clap_sys::ext::audio_ports_config::clap_audio_ports_config;
use clap_sys::ext::configurable_audio_ports::clap_audio_port_configuration_request;
use clap_sys::ext::note_ports::clap_note_port_info;
use clap_sys::ext::params::clap_param_info;
use clap_sys::ext::voice_info::clap_voice_info;
use clap_sys::factory::plugin_factory::clap_plugin_factory;
use clap_sys::factory::preset_discovery::{
    clap_preset_discovery_factory, clap_preset_discovery_filetype, clap_preset_discovery_location,
};
use clap_sys::universal_plugin_id::clap_universal_plugin_id;

/// An argument that a host passes.
pub(crate) trait FromHost: Sized {
    /// Its type in C.
    type Raw;

    /// Converts the argument; `None` for a null pointer.
    ///
    /// # Safety
    /// A pointer is null, or valid and not changed otherwise while the result is used.
    unsafe fn from_host(raw: Self::Raw) -> Option<Self>;
}

/// A type that may be accessed through a host's pointer to `C`.
///
/// # Safety
/// `Self` is `C`, or a structure whose first field is a `C`, and which all such pointers lead to.
pub(crate) unsafe trait Pointee {
    /// The type that C functions know.
    type C;
}

/// Implements the traits for types that are the same in C and in Rust.
macro_rules! same_in_c {
    (values: $($value:ty),*; structures: $($structure:ty),*;) => {
        $(
            impl FromHost for $value {
                type Raw = Self;

                unsafe fn from_host(raw: Self) -> Option<Self> {
                    Some(raw)
                }
            }

            impl IntoC for $value {
                type C = Self;

                fn into_c(self) -> Self {
                    self
                }
            }
        )*
        $(
            // SAFETY: the type is that of C.
            unsafe impl Pointee for $structure {
                type C = Self;
            }
        )*
    };
}

same_in_c! {
    values: bool, i32, u32, u64, f64;
    structures: f64, u32, clap_audio_port_configuration_request, clap_audio_port_info,
        clap_audio_ports_config, clap_note_port_info, clap_param_info, clap_plugin_factory,
        clap_preset_discovery_factory, clap_preset_discovery_filetype,
        clap_preset_discovery_location, clap_universal_plugin_id, clap_voice_info;
}

impl<T: Pointee> FromHost for &T {
    type Raw = *const T::C;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: guaranteed by the caller and the trait.
        unsafe { raw.cast::<T>().as_ref() }
    }
}

impl<T: Pointee> FromHost for &mut T {
    type Raw = *mut T::C;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: as above.
        unsafe { raw.cast::<T>().as_mut() }
    }
}

/// The host gives back what a function of ours made by [`Box::into_raw`], for the last time.
impl<T: Pointee> FromHost for Box<T> {
    type Raw = *const T::C;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: as above.
        (!raw.is_null()).then(|| unsafe { Self::from_raw(raw.cast::<T>().cast_mut()) })
    }
}

impl FromHost for &CStr {
    type Raw = *const c_char;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: as above; strings end with NUL.
        (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) })
    }
}

/// An argument that may be missing.
impl<T: FromHost> FromHost for Option<T> {
    type Raw = T::Raw;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: guaranteed by the caller.
        Some(unsafe { T::from_host(raw) })
    }
}

/// Array whose length the host passes beside it.
pub(crate) struct HostArray<P>(P);

impl<T> FromHost for HostArray<*const T> {
    type Raw = *const T;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        (!raw.is_null()).then_some(Self(raw))
    }
}

impl<T> FromHost for HostArray<*mut T> {
    type Raw = *mut T;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        (!raw.is_null()).then_some(Self(raw))
    }
}

impl<T> HostArray<*const T> {
    /// Returns the elements.
    ///
    /// # Safety
    /// The length is the one that the host has passed for this array.
    pub(crate) unsafe fn elements(&self, length: u32) -> &[T] {
        // SAFETY: guaranteed by the caller; not null.
        unsafe { std::slice::from_raw_parts(self.0, length as usize) }
    }
}

impl<T> HostArray<*mut T> {
    /// Returns the elements.
    ///
    /// # Safety
    /// The length is the one that the host has passed for this array.
    pub(crate) unsafe fn elements_mut(&mut self, length: u32) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.0, length as usize) }
    }
}

/// A result for a host.
pub(crate) trait CResult {
    /// Result after a panic, or if an argument is missing.
    const FAILURE: Self;
}

impl CResult for () {
    const FAILURE: Self = ();
}

impl CResult for bool {
    const FAILURE: Self = false;
}

impl CResult for u32 {
    const FAILURE: Self = 0;
}

/// The status of a block: an error.
impl CResult for i32 {
    const FAILURE: Self = 0;
}

impl<T> CResult for *const T {
    const FAILURE: Self = null();
}

/// Calls `body` from a C function; returns the failure for `None` and after a panic.
pub(crate) fn catch_panic<T: CResult>(body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body))
        .ok()
        .flatten()
        .unwrap_or(T::FAILURE)
}

/// Returns a C function with a function's name and arguments, for a structure of functions.
macro_rules! c_function {
    ($function:path, ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {{
        #[allow(unsafe_code, reason = "each argument is checked by its type")]
        unsafe extern "C" fn call(
            $($argument: <$type as $crate::clap::c_interface::FromHost>::Raw),*
        ) $(-> $result)? {
            $crate::clap::c_interface::catch_panic(|| {
                // SAFETY: only hosts call this, with arguments as CLAP requires.
                $(let $argument = unsafe {
                    <$type as $crate::clap::c_interface::FromHost>::from_host($argument)
                }?;)*
                Some($function($($argument),*))
            })
        }
        Some(call)
    }};
}
pub(crate) use c_function;

/// An argument for a C function; a pointer is valid during the call.
pub(crate) trait IntoC {
    /// Its type in C.
    type C;

    /// Converts the argument.
    fn into_c(self) -> Self::C;
}

impl IntoC for &CStr {
    type C = *const c_char;

    fn into_c(self) -> *const c_char {
        self.as_ptr()
    }
}

impl IntoC for Option<&CStr> {
    type C = *const c_char;

    fn into_c(self) -> *const c_char {
        self.map_or(null(), CStr::as_ptr)
    }
}

impl<T: Pointee<C = T>> IntoC for &T {
    type C = *const T;

    fn into_c(self) -> *const T {
        self
    }
}

impl<T: Pointee<C = T>> IntoC for &mut T {
    type C = *mut T;

    fn into_c(self) -> *mut T {
        self
    }
}

/// Structure of C functions that comes from a host or the framework.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'a, T>(&'a T);

impl<T> FromHost for Functions<'_, T> {
    type Raw = *const T;

    unsafe fn from_host(raw: Self::Raw) -> Option<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { raw.as_ref() }.map(Self)
    }
}

impl<T> Deref for Functions<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> Functions<'_, T> {
    /// Returns the pointer that the functions take as their first argument, if they belong to it.
    pub(crate) fn as_ptr(&self) -> *const T {
        self.0
    }
}

/// Calls a function in [`Functions`] with the object that it belongs to; `None` if it is missing.
macro_rules! call {
    ($functions:expr, $function:ident($object:expr $(, $argument:expr)*)) => {{
        let functions: &$crate::clap::c_interface::Functions<'_, _> = &$functions;
        functions.$function.map(
            // SAFETY: the functions are those of the host or the framework for this object, which is
            // alive.
            #[allow(unsafe_code, reason = "each argument is valid by its type")]
            |function| unsafe {
                function($object $(, $crate::clap::c_interface::IntoC::into_c($argument))*)
            },
        )
    }};
}
pub(crate) use call;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_pointer_and_a_panic_are_failures() {
        fn length(text: &CStr) -> u32 {
            assert!(!text.is_empty(), "on purpose");
            text.count_bytes() as u32
        }
        let function: Option<unsafe extern "C" fn(*const c_char) -> u32> =
            c_function!(length, (text: &CStr) -> u32);
        // SAFETY: null, or NUL-terminated.
        let length = |text: *const c_char| unsafe { function.unwrap()(text) };
        assert_eq!(
            [c"abc".as_ptr(), c"".as_ptr(), null()].map(length),
            [3, 0, 0]
        );
    }
}
