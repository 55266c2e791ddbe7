//! `script.cpp`, as it is called.

use std::ffi::{c_char, c_int, c_void};

use tch::Tensor;

use super::Held;

/// A module, in C++.
#[repr(C)]
#[derive(Debug)]
pub struct Raw {
    _opaque: [u8; 0],
}

/// A tensor, in C++.
#[repr(C)]
pub struct RawTensor {
    _opaque: [u8; 0],
}

/// Hears a text.
pub type Listener = unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize);
/// Sees a tensor, which is its own to keep.
pub type Visitor = unsafe extern "C" fn(
    seen: *mut c_void,
    name: *const c_char,
    length: usize,
    tensor: *mut RawTensor,
    is_weight: bool,
);

unsafe extern "C" {
    pub fn ondes_script_load(
        bytes: *const c_char,
        length: usize,
        cuda: c_int,
        script: *mut *mut Raw,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_narrow(script: *mut Raw, to_bf16: bool, listener: Listener, context: *mut c_void) -> bool;
    pub fn ondes_script_free(script: *mut Raw);
    pub fn ondes_script_copy(script: *const Raw, copy: *mut *mut Raw, listener: Listener, context: *mut c_void)
    -> bool;
    pub fn ondes_script_metadata(script: *const Raw, listener: Listener, context: *mut c_void);
    pub fn ondes_script_methods(script: *const Raw, listener: Listener, context: *mut c_void) -> bool;
    pub fn ondes_script_attribute(
        script: *const Raw,
        name: *const c_char,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_scalars(script: *const Raw, listener: Listener, context: *mut c_void) -> bool;
    pub fn ondes_script_call(
        script: *mut Raw,
        name: *const c_char,
        values: *const f64,
        count: usize,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_tensors(
        script: *const Raw,
        visitor: Visitor,
        seen: *mut c_void,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_run(
        script: *mut Raw,
        name: *const c_char,
        inputs: *const *const RawTensor,
        count: usize,
        output: *mut *mut RawTensor,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_full_precision();
    pub fn ondes_inference_begin() -> *mut c_void;
    pub fn ondes_inference_end(inference: *mut c_void);
}

/// A [`Listener`] that appends to the `Vec<u8>` at `context`.
///
/// # Safety
/// `context` must lead to such a list that nobody else uses meanwhile, and `text` to `length` bytes.
pub unsafe extern "C" fn listen(context: *mut c_void, text: *const c_char, length: usize) {
    if length > 0 {
        // SAFETY: so says our caller.
        let (heard, text) =
            unsafe { (&mut *context.cast::<Vec<u8>>(), std::slice::from_raw_parts(text.cast(), length)) };
        heard.extend_from_slice(text);
    }
}

/// A [`Visitor`] that appends to the `Vec<Held>` at `seen`.
///
/// # Safety
/// `seen` must lead to such a list that nobody else uses meanwhile, `name` to `length` bytes, and the tensor must be ours.
pub unsafe extern "C" fn see(
    seen: *mut c_void,
    name: *const c_char,
    length: usize,
    tensor: *mut RawTensor,
    is_weight: bool,
) {
    // SAFETY: so says our caller.
    unsafe {
        let name = String::from_utf8_lossy(std::slice::from_raw_parts(name.cast(), length)).into_owned();
        (*seen.cast::<Vec<Held>>()).push(Held { name, tensor: Tensor::from_ptr(tensor.cast()), is_weight });
    }
}
