//! C interface of the library `ondes-torch`: one symbol, which returns a table of functions.
//!
//! All texts are UTF-8 and go through a [`Listener`], so that neither side frees the other's
//! memory. Functions that return `bool` return true on success; on failure the listener receives
//! the reason in one line. None of them unwinds.

use std::ffi::c_void;

/// Version of this file, of [`super::PrepareRequest`] and of
/// [`super::description::ProgramDescription`].
pub const VERSION: u32 = 3;

/// Name of the symbol, of type [`InterfaceFn`], with a terminating 0.
pub const SYMBOL: &[u8] = b"ondes_torch_interface\0";

/// Returns the table, which lives as long as the library. Its first field is the version, in all
/// versions.
pub type InterfaceFn = unsafe extern "C" fn() -> *const Interface;

/// Receives `length` bytes of text, valid during the call; `context` belongs to the listener.
pub type Listener = unsafe extern "C" fn(context: *mut c_void, text: *const u8, length: usize);

/// Table of functions. Slices are pointers and lengths; pointers are valid during the call.
#[repr(C)]
pub struct Interface {
    /// [`VERSION`].
    pub version: u32,
    /// Describes the library as the JSON of [`super::description::LibraryInfo`].
    pub about: unsafe extern "C" fn(listener: Listener, context: *mut c_void) -> bool,
    /// Describes a program, which it runs, as the JSON of
    /// [`super::description::ProgramDescription`].
    pub describe: unsafe extern "C" fn(
        bytes: *const u8,
        length: usize,
        listener: Listener,
        context: *mut c_void,
    ) -> bool,
    /// Prepares the method of a [`super::PrepareRequest`], in JSON, from the bytes of a program or
    /// of a model file, and stores its handle at `executor`.
    pub prepare: unsafe extern "C" fn(
        request: *const u8,
        request_length: usize,
        bytes: *const u8,
        length: usize,
        executor: *mut *mut c_void,
        listener: Listener,
        context: *mut c_void,
    ) -> bool,
    /// Frees a handle.
    pub free: unsafe extern "C" fn(executor: *mut c_void),
    /// Returns the device and, unless it is f32, the precision, such as `cpu` or `cuda:0 f16`.
    pub device:
        unsafe extern "C" fn(executor: *const c_void, listener: Listener, context: *mut c_void),
    /// Returns the bytes of weights and states.
    pub bytes: unsafe extern "C" fn(executor: *const c_void) -> usize,
    /// Resets a stream's state and sets the seed of its noise.
    pub seed: unsafe extern "C" fn(executor: *mut c_void, stream: usize, seed: u64),
    /// Steps `stream_count` streams by `blocks` blocks; `inputs` and `outputs` have one pointer for
    /// each port, to `[stream][frame][channel]`.
    pub run: unsafe extern "C" fn(
        executor: *mut c_void,
        streams: *const usize,
        stream_count: usize,
        blocks: usize,
        inputs: *const *const f32,
        outputs: *const *mut f32,
        listener: Listener,
        context: *mut c_void,
    ) -> bool,
}

/// [`Listener`] that appends the text to the `Vec<u8>` at `context`.
///
/// # Safety
/// `context` must point to a `Vec<u8>` that nothing else uses during the call, and `text` to
/// `length` bytes.
#[expect(unsafe_code)]
pub unsafe extern "C" fn append_text(context: *mut c_void, text: *const u8, length: usize) {
    if length > 0 {
        // SAFETY: guaranteed by the caller.
        let (received, text) = unsafe {
            (
                &mut *context.cast::<Vec<u8>>(),
                std::slice::from_raw_parts(text, length),
            )
        };
        received.extend_from_slice(text);
    }
}
