//! Declarations of `script.cpp`.

use std::ffi::{c_char, c_int, c_void};

use tch::Tensor;

use super::NamedTensor;

/// A module in C++.
#[repr(C)]
#[derive(Debug)]
pub struct RawScript {
    _opaque: [u8; 0],
}

/// A tensor in C++.
#[repr(C)]
pub struct RawTensor {
    _opaque: [u8; 0],
}

/// Receives a text, valid during the call.
pub type Listener = unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize);
/// Receives a tensor, with ownership.
pub type Visitor = unsafe extern "C" fn(
    tensors: *mut c_void,
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
        script: *mut *mut RawScript,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_narrow(
        script: *mut RawScript,
        to_bf16: bool,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_free(script: *mut RawScript);
    pub fn ondes_script_copy(
        script: *const RawScript,
        copy: *mut *mut RawScript,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_metadata(
        script: *const RawScript,
        listener: Listener,
        context: *mut c_void,
    );
    pub fn ondes_script_methods(
        script: *const RawScript,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_attribute(
        script: *const RawScript,
        name: *const c_char,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_scalars(
        script: *const RawScript,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_call(
        script: *mut RawScript,
        name: *const c_char,
        values: *const f64,
        count: usize,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_call_texts(
        script: *mut RawScript,
        name: *const c_char,
        texts: *const *const c_char,
        count: usize,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_set_sound(
        script: *mut RawScript,
        buffer: *const c_char,
        sound: *const RawTensor,
        sample_rate: i64,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_tensors(
        script: *const RawScript,
        visitor: Visitor,
        tensors: *mut c_void,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_script_run(
        script: *mut RawScript,
        name: *const c_char,
        inputs: *const *const RawTensor,
        count: usize,
        seed: u64,
        output: *mut *mut RawTensor,
        listener: Listener,
        context: *mut c_void,
    ) -> bool;
    pub fn ondes_full_precision();
    pub fn ondes_inference_begin() -> *mut c_void;
    pub fn ondes_inference_end(inference: *mut c_void);
}

/// [`Listener`] that appends the text to the `Vec<u8>` at `context`.
///
/// # Safety
/// `context` must point to a `Vec<u8>` that nothing else uses during the call, and `text` to
/// `length` bytes.
pub unsafe extern "C" fn append_text(context: *mut c_void, text: *const c_char, length: usize) {
    if length > 0 {
        // SAFETY: guaranteed by the caller.
        let (received, text) = unsafe {
            (
                &mut *context.cast::<Vec<u8>>(),
                std::slice::from_raw_parts(text.cast(), length),
            )
        };
        received.extend_from_slice(text);
    }
}

/// [`Visitor`] that appends to the `Vec<NamedTensor>` at `tensors`.
///
/// # Safety
/// `tensors` must point to a `Vec<NamedTensor>` that nothing else uses during the call, `name` to
/// `length` bytes, and the tensor must be owned by the caller.
pub unsafe extern "C" fn collect_tensor(
    tensors: *mut c_void,
    name: *const c_char,
    length: usize,
    tensor: *mut RawTensor,
    is_weight: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let name =
            String::from_utf8_lossy(std::slice::from_raw_parts(name.cast(), length)).into_owned();
        (*tensors.cast::<Vec<NamedTensor>>()).push(NamedTensor {
            name,
            tensor: Tensor::from_ptr(tensor.cast()),
            is_weight,
        });
    }
}
