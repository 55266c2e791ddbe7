//! Copies of batches to a GPU, on a stream of their own.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;

use ondes_torch::cpp_error;
use tch::{Device, Tensor};

use super::rows::TensorGroup;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use super::{c_char, c_void};

    unsafe extern "C" {
        pub fn ondes_upload_start(
            device: i32,
            tensors: *const *const c_void,
            count: usize,
            copies: *mut *mut c_void,
            copied: *mut *mut c_void,
        ) -> *mut c_char;
        pub fn ondes_upload_finish(
            device: i32,
            copied: *mut c_void,
            tensors: *const *const c_void,
            count: usize,
        ) -> *mut c_char;
        pub fn ondes_upload_drop(copied: *mut c_void);
    }
}

/// Batch on its way to a device.
pub(super) struct Upload<B> {
    batch: B,
    copied: Option<Copied>,
}

/// Event after the last copy to a GPU.
struct Copied {
    event: NonNull<c_void>,
    gpu: i32,
}

impl Drop for Copied {
    #[expect(unsafe_code, reason = "calls C++")]
    fn drop(&mut self) {
        // SAFETY: the event is ours, and dropped once.
        unsafe { shim::ondes_upload_drop(self.event.as_ptr()) };
    }
}

impl<B: TensorGroup> Upload<B> {
    /// Begins to copy a batch; to a GPU from pinned memory and on a stream of its own, without
    /// waiting.
    ///
    /// # Panics
    /// Panics with libtorch's error, such as that there is not enough memory.
    pub fn start(batch: B, device: Device) -> Self {
        let Device::Cuda(gpu) = device else {
            return Self {
                batch: batch.to_device(device),
                copied: None,
            };
        };
        let (batch, tensors) = listed(batch);
        let gpu = gpu as i32;
        let mut copies = vec![std::ptr::null_mut::<c_void>(); tensors.len()];
        let mut event = std::ptr::null_mut::<c_void>();
        #[expect(unsafe_code, reason = "calls C++")]
        let copies = {
            let read: Vec<*const c_void> = tensors
                .iter()
                .map(|tensor| tensor.as_ptr().cast())
                .collect();
            let (read, count, written) = (read.as_ptr(), tensors.len(), copies.as_mut_ptr());
            // SAFETY: all pointers are valid for `count` tensors; the error is ours.
            unsafe {
                cpp_error::raise(shim::ondes_upload_start(
                    gpu,
                    read,
                    count,
                    written,
                    &raw mut event,
                ))
            };
            // SAFETY: without an error, each is a new tensor, which nothing else frees.
            copies
                .into_iter()
                .map(|copy| unsafe { Tensor::from_ptr(copy.cast()) })
        };
        let mut copies = copies.collect::<Vec<_>>().into_iter();
        let batch = batch.map(&mut |_| copies.next().expect("a copy of each tensor"));
        Self {
            batch,
            copied: NonNull::new(event).map(|event| Copied { event, gpu }),
        }
    }

    /// Returns the copied batch. What the device computes from now on waits for the copies; this
    /// thread does not.
    ///
    /// # Panics
    /// Panics with libtorch's error.
    pub fn finish(self) -> B {
        let Some(copied) = self.copied else {
            return self.batch;
        };
        let (batch, tensors) = listed(self.batch);
        let read: Vec<*const c_void> = tensors
            .iter()
            .map(|tensor| tensor.as_ptr().cast())
            .collect();
        #[expect(unsafe_code, reason = "calls C++")]
        // SAFETY: the event and all tensors are alive; the error is ours.
        unsafe {
            let event = copied.event.as_ptr();
            cpp_error::raise(shim::ondes_upload_finish(
                copied.gpu,
                event,
                read.as_ptr(),
                read.len(),
            ));
        }
        batch
    }
}

/// Returns a batch with its tensors in order.
fn listed<B: TensorGroup>(batch: B) -> (B, Vec<Tensor>) {
    let mut tensors = Vec::new();
    let batch = batch.map(&mut |tensor| {
        tensors.push(tensor.shallow_clone());
        tensor
    });
    (batch, tensors)
}
