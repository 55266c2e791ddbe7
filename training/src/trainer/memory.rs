//! Memory of tensors: activation checkpointing, a bound, and what happens without enough of it.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

use ondes_torch::checkpoint::Block;
use ondes_torch::cpp_error;
use tch::{Device, Tensor};

/// Share of the memory that is free at the start which tensors of the CPU may take, unless told otherwise.
const SHARE: f64 = 0.8;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use super::{c_char, c_void};

    unsafe extern "C" {
        pub safe fn ondes_memory_count();
        pub safe fn ondes_memory_bound(bytes: u64);
        pub safe fn ondes_memory_used() -> u64;
        pub safe fn ondes_memory_peak() -> u64;
        pub fn ondes_checkpoint(
            closure: *mut c_void,
            run: unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut *mut c_void),
            drop: unsafe extern "C" fn(*mut c_void),
            inputs: *const *const c_void,
            input_count: usize,
            outputs: *mut *mut c_void,
            output_count: usize,
        ) -> *mut c_char;
    }
}

/// Block with what the C++ side does not tell.
struct Closure {
    block: Block,
    inputs: usize,
    outputs: usize,
}

/// Computes a block; outputs stay null if it panics.
///
/// # Safety
/// `closure` is a [`Closure`]; `inputs` and `outputs` have the lengths that it states. Inputs pass into our possession,
/// outputs into the caller's.
#[expect(unsafe_code, reason = "called by C++")]
unsafe extern "C" fn run_block(closure: *mut c_void, inputs: *mut *mut c_void, outputs: *mut *mut c_void) {
    // SAFETY: as stated above.
    let (closure, inputs, outputs) = unsafe {
        let closure = &*closure.cast::<Closure>();
        let inputs = std::slice::from_raw_parts(inputs, closure.inputs);
        (closure, inputs, std::slice::from_raw_parts_mut(outputs, closure.outputs))
    };
    // SAFETY: each pointer is a tensor of its own, which nobody else frees.
    let inputs: Vec<Tensor> = inputs.iter().map(|&input| unsafe { Tensor::from_ptr(input.cast()) }).collect();
    // A panic must not pass through C++.
    if let Ok(values) = catch_unwind(AssertUnwindSafe(|| (closure.block)(&inputs))) {
        for (output, value) in outputs.iter_mut().zip(values) {
            *output = std::mem::ManuallyDrop::new(value).as_mut_ptr().cast();
        }
    }
}

/// Frees a block.
///
/// # Safety
/// `closure` is a [`Closure`] that was leaked for C++ and is not used any more.
#[expect(unsafe_code, reason = "called by C++")]
unsafe extern "C" fn drop_block(closure: *mut c_void) {
    // SAFETY: as stated above.
    drop(unsafe { Box::from_raw(closure.cast::<Closure>()) });
}

/// Computes a block whose values are not kept but computed again in the backward pass; see
/// [`TorchGraph::with_checkpoint`](ondes_torch::TorchGraph::with_checkpoint).
///
/// # Panics
/// Panics with libtorch's error, such as that there is not enough memory.
#[expect(unsafe_code, reason = "calls C++")]
#[must_use]
pub fn checkpoint(block: Block, inputs: &[Tensor], outputs: usize) -> Vec<Tensor> {
    let closure = Box::into_raw(Box::new(Closure { block, inputs: inputs.len(), outputs }));
    let inputs: Vec<*const c_void> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
    let mut results = vec![std::ptr::null_mut::<c_void>(); outputs];
    // SAFETY: all pointers are valid for the stated lengths; the closure is freed by `drop_block`, once; the error is ours.
    unsafe {
        let (read, written) = (inputs.as_ptr(), results.as_mut_ptr());
        let closure = closure.cast();
        cpp_error::raise(shim::ondes_checkpoint(closure, run_block, drop_block, read, inputs.len(), written, outputs));
    }
    // SAFETY: without an error, each is a tensor of its own, which nobody else frees.
    results.into_iter().map(|result| unsafe { Tensor::from_ptr(result.cast()) }).collect()
}

/// Bounds the memory of the CPU's tensors to `bytes` less what the process holds besides them; by default, to most of
/// what is free now.
pub fn bound(bytes: Option<u64>) {
    static COUNT: Once = Once::new();
    COUNT.call_once(|| shim::ondes_memory_count());
    let bound = match bytes {
        Some(bytes) => {
            let others = status_bytes("/proc/self/status", "VmRSS:").saturating_sub(shim::ondes_memory_used());
            bytes.saturating_sub(others).max(1)
        }
        None => (SHARE * status_bytes("/proc/meminfo", "MemAvailable:") as f64) as u64,
    };
    shim::ondes_memory_bound(bound);
}

/// Returns the largest memory of the CPU's tensors since the last call, bytes; 0 before [`bound`].
#[must_use]
pub fn peak_bytes() -> u64 {
    shim::ondes_memory_peak()
}

/// Reads a number of kilobytes of the system; 0 where there is none.
fn status_bytes(path: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or(0)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may need too much memory; returns `None` then.
///
/// # Panics
/// Panics with any other reason.
pub fn if_it_fits<R>(run: impl FnOnce() -> R) -> Option<R> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !(QUIET.get() && is_memory(info.payload())) {
                before(info);
            }
        }));
    });
    let was = QUIET.replace(true);
    // A panic leaves gradients off if it comes from a part without them.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let result = tch::with_grad(run);
        #[cfg(test)]
        injection::fail_if_due();
        result
    }));
    QUIET.set(was);
    match result {
        Ok(result) => Some(result),
        Err(panic) if is_memory(&*panic) => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns whether a panic says that memory is missing.
fn is_memory(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.is_some_and(|text| text.contains("out of memory") || text.contains("not enough memory"))
}

/// Returns the device's name in an advice about memory.
#[must_use]
pub fn advice(device: Device) -> &'static str {
    if device == Device::Cpu {
        "use a smaller batch or window, or raise --memory"
    } else {
        "use a smaller batch or window"
    }
}

/// Failures for tests.
#[cfg(test)]
pub(super) mod injection {
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Lets memory end after so many passes, once.
    pub fn fail_after(passes: u32) {
        LEFT.set(Some(passes));
    }

    pub(super) fn fail_if_due() {
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                panic!("out of memory, for a test");
            }
            left => LEFT.set(left.map(|left| left - 1)),
        }
    }
}
