//! Memory: a bound, and activation checkpointing.
//!
//! The bound is on the process: what libtorch's tensors may take is the rest besides the program,
//! the recordings in memory and the queue of crops. After each step it is measured again, so that
//! what else grows makes that rest smaller. Tensors are counted with glibc and on macOS; elsewhere
//! only the recordings and the queue are bounded.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};

use anyhow::ensure;
use ondes_engine::sync::lock;
use ondes_torch::checkpoint::Block;
use ondes_torch::cpp_error;
use tch::Tensor;

use super::resource_usage::ResourceUsage;

/// Share of the memory that is free at the start which tensors of the CPU may take, unless told
/// otherwise.
const SHARE: f64 = 0.8;
/// Share of what a bound on the process leaves that tensors may take: the allocator has gaps, and
/// libtorch memory of its own.
const TENSOR_SHARE: f64 = 0.9;
/// Least memory of tensors with which a run begins, bytes.
const MIN_TENSOR_BYTES: u64 = 64_000_000;
/// Most memory for crops in the queue, bytes.
const QUEUE_BYTES: u64 = 256 << 20;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use super::{c_char, c_void};

    unsafe extern "C" {
        pub safe fn ondes_memory_count();
        pub safe fn ondes_memory_bound(bytes: u64);
        pub safe fn ondes_memory_trim();
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
/// `closure` is a [`Closure`]; `inputs` and `outputs` have the lengths that it states. Inputs pass
/// into our possession, outputs into the caller's.
#[expect(unsafe_code, reason = "called by C++")]
unsafe extern "C" fn run_block(
    closure: *mut c_void,
    inputs: *mut *mut c_void,
    outputs: *mut *mut c_void,
) {
    // SAFETY: as stated above.
    let (closure, inputs, outputs) = unsafe {
        let closure = &*closure.cast::<Closure>();
        let inputs = std::slice::from_raw_parts(inputs, closure.inputs);
        (
            closure,
            inputs,
            std::slice::from_raw_parts_mut(outputs, closure.outputs),
        )
    };
    // SAFETY: each pointer is a tensor of its own, which nobody else frees.
    let inputs: Vec<Tensor> = inputs
        .iter()
        .map(|&input| unsafe { Tensor::from_ptr(input.cast()) })
        .collect();
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
    let closure = Box::into_raw(Box::new(Closure {
        block,
        inputs: inputs.len(),
        outputs,
    }));
    let inputs: Vec<*const c_void> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
    let mut results = vec![std::ptr::null_mut::<c_void>(); outputs];
    // SAFETY: all pointers are valid for the stated lengths; the closure is freed by `drop_block`,
    // once; the error is ours.
    unsafe {
        let (read, written) = (inputs.as_ptr(), results.as_mut_ptr());
        let closure = closure.cast();
        cpp_error::raise(shim::ondes_checkpoint(
            closure,
            run_block,
            drop_block,
            read,
            inputs.len(),
            written,
            outputs,
        ));
    }
    // SAFETY: without an error, each is a tensor of its own, which nobody else frees.
    results
        .into_iter()
        .map(|result| unsafe { Tensor::from_ptr(result.cast()) })
        .collect()
}

/// Bound on the process that was asked for, and what its tensors may take of it, bytes.
static PROCESS: Mutex<Option<(u64, u64)>> = Mutex::new(None);

/// Returns the memory for recordings and that for the queue of crops, bytes, of a bound on the
/// process.
#[must_use]
pub fn data_shares(bound: Option<u64>) -> [u64; 2] {
    bound.map_or([u64::MAX, QUEUE_BYTES], |bytes| {
        [bytes / 8, (bytes / 16).min(QUEUE_BYTES)]
    })
}

/// Counts the memory of tensors that are created from now on.
pub fn count() {
    static COUNT: Once = Once::new();
    COUNT.call_once(|| shim::ondes_memory_count());
}

/// Bounds the memory of the process to `bytes`, or that of the CPU's tensors to most of what is
/// free now. The same bound may be set again.
///
/// # Errors
/// Returns an error if the program itself leaves nothing of it.
pub fn bound(bytes: Option<u64>) -> anyhow::Result<()> {
    count();
    let mut process = lock(&PROCESS);
    let Some(bytes) = bytes else {
        *process = None;
        shim::ondes_memory_bound((SHARE * available().unwrap_or(0) as f64) as u64);
        return Ok(());
    };
    if process.is_some_and(|(known, _)| known == bytes) {
        return Ok(());
    }
    let others = ResourceUsage::now()
        .bytes
        .saturating_sub(shim::ondes_memory_used());
    let data: u64 = data_shares(Some(bytes)).iter().sum();
    let tensors = (TENSOR_SHARE * bytes.saturating_sub(others + data) as f64) as u64;
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    ensure!(
        tensors >= MIN_TENSOR_BYTES,
        "a bound of {:.2} GB on memory is too low: the program itself takes {:.2} GB; raise --memory to {:.1}G or more",
        gigabytes(bytes),
        gigabytes(others),
        (gigabytes((others + 3 * MIN_TENSOR_BYTES) / 13 * 16) * 10.0).ceil() / 10.0
    );
    *process = Some((bytes, tensors));
    shim::ondes_memory_bound(tensors);
    Ok(())
}

/// Measures the process again after a step. If it has taken more than its bound, its tensors get so
/// much less, and the memory that it does not use goes back to the system.
pub fn adjust() {
    let mut process = lock(&PROCESS);
    let Some((bytes, tensors)) = &mut *process else {
        return;
    };
    let excess = ResourceUsage::now().bytes.saturating_sub(*bytes);
    if excess > 0 {
        *tensors = tensors.saturating_sub(excess).max(1);
        shim::ondes_memory_bound(*tensors);
        shim::ondes_memory_trim();
    }
}

/// Returns the largest memory of the CPU's tensors since the last call, bytes; 0 before [`count`].
#[must_use]
pub fn peak_bytes() -> u64 {
    shim::ondes_memory_peak()
}

/// Returns the free memory of the machine, bytes, where the system tells.
#[must_use]
pub fn available() -> Option<u64> {
    status_bytes("/proc/meminfo", "MemAvailable:")
}

/// Returns the largest memory that a process has had, bytes, where the system tells.
#[must_use]
pub fn peak_of_process(process: u32) -> Option<u64> {
    status_bytes(&format!("/proc/{process}/status"), "VmHWM:")
}

/// Reads a number of kilobytes that Linux tells.
fn status_bytes(path: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}
