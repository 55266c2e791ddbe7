//! The C interface of the library `ondes-torch`: one symbol, which gives a table of functions.
//!
//! All texts are UTF-8 and go through a [`Listener`], so that nobody frees what another has made. Functions that give `bool` give
//! whether they have done their work; where they have not, the listener hears one line about why. None of them unwinds.

use std::ffi::c_void;

/// The version of all that is in this file, and of [`super::Order`] and [`super::description::Description`].
pub const VERSION: u32 = 2;

/// The symbol, of type [`Entry`], with its final 0.
pub const SYMBOL: &[u8] = b"ondes_torch_interface\0";

/// Gives the table, which stays where it is. Its first field is the version, whatever the version.
pub type Entry = unsafe extern "C" fn() -> *const Interface;

/// Hears `length` bytes of text, which are gone after it returns; `context` is its own.
pub type Listener = unsafe extern "C" fn(context: *mut c_void, text: *const u8, length: usize);

/// The table. Slices are pointers and lengths; pointers to them are valid for as long as the call lasts.
#[repr(C)]
pub struct Interface {
    /// [`VERSION`].
    pub version: u32,
    /// What is there, as the JSON of [`super::description::About`].
    pub about: unsafe extern "C" fn(listener: Listener, context: *mut c_void) -> bool,
    /// What is in a program, as the JSON of [`super::description::Description`]; runs it for that.
    pub describe:
        unsafe extern "C" fn(bytes: *const u8, length: usize, listener: Listener, context: *mut c_void) -> bool,
    /// Makes what an [`super::Order`], in JSON, asks for out of the bytes of a program or of a model file; it is put at `made`.
    pub make: unsafe extern "C" fn(
        order: *const u8,
        order_length: usize,
        bytes: *const u8,
        length: usize,
        made: *mut *mut c_void,
        listener: Listener,
        context: *mut c_void,
    ) -> bool,
    /// Frees what was made.
    pub free: unsafe extern "C" fn(made: *mut c_void),
    /// Where it computes and, where it is not in f32, in what, such as `cpu` or `cuda:0 f16`.
    pub device: unsafe extern "C" fn(made: *const c_void, listener: Listener, context: *mut c_void),
    /// Bytes of weights and states.
    pub bytes: unsafe extern "C" fn(made: *const c_void) -> usize,
    /// Forgets all that a stream has heard and gives its noise another seed.
    pub seed: unsafe extern "C" fn(made: *mut c_void, stream: usize, seed: u64),
    /// Steps `blocks` blocks of so many streams: `inputs` and `outputs` have one pointer for each port, to
    /// `[stream][frame][channel]`.
    pub run: unsafe extern "C" fn(
        made: *mut c_void,
        streams: *const usize,
        stream_count: usize,
        blocks: usize,
        inputs: *const *const f32,
        outputs: *const *mut f32,
        listener: Listener,
        context: *mut c_void,
    ) -> bool,
}

/// A [`Listener`] that appends what it hears to the [`Vec`] of bytes at `context`.
///
/// # Safety
/// `context` must lead to a `Vec<u8>` that nobody else uses meanwhile, and `text` to `length` bytes.
#[expect(unsafe_code)]
pub unsafe extern "C" fn hear(context: *mut c_void, text: *const u8, length: usize) {
    if length > 0 {
        // SAFETY: so says our caller.
        let (heard, text) = unsafe { (&mut *context.cast::<Vec<u8>>(), std::slice::from_raw_parts(text, length)) };
        heard.extend_from_slice(text);
    }
}
