//! The library's side of the C interface [`ondes_engine::torch::interface`].
//!
//! No panic crosses the interface: panics are reported to the caller like other errors.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ondes_engine::torch::description::LibraryInfo;
use ondes_engine::torch::interface::{Interface, Listener, VERSION};
use ondes_engine::torch::{MethodSource, PrepareRequest};

use crate::graph_step::GraphStep;
use crate::program::{self, ProgramStep};
use crate::script::full_precision;
use crate::step::MethodStep;
use crate::{device, threads, warm_up};

/// A prepared method, to which handles point; the request has the ports, and so the lengths of
/// slices.
struct Prepared {
    step: Box<dyn MethodStep>,
    request: PrepareRequest,
}

/// Returns the table of functions. Each of them requires of its caller, the engine, what
/// [`Interface`] says of its arguments: slices are valid, a listener accepts the context beside it,
/// and a handle comes from `prepare`, was not freed, and is used by one thread at a time.
// SAFETY: no other library that a process loads has a symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn ondes_torch_interface() -> *const Interface {
    static TABLE: Interface = Interface {
        version: VERSION,
        about,
        describe,
        prepare,
        free,
        device: device_name,
        bytes,
        seed,
        run,
    };
    static READY: Once = Once::new();
    // Panics are reported to the caller; they must not be printed as well.
    READY.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    &raw const TABLE
}

/// Runs `work` and sends its text, or the reason of its failure in one line, to the listener.
/// Returns true on success.
///
/// # Safety
/// `listener` must accept `context`.
unsafe fn report(
    listener: Listener,
    context: *mut c_void,
    work: impl FnOnce() -> Result<String, String>,
) -> bool {
    let result =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panic_text(&*payload)));
    let (succeeded, text) = match result {
        Ok(text) => (true, text),
        Err(reason) => (
            false,
            reason.lines().map(str::trim).collect::<Vec<_>>().join(" "),
        ),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { listener(context, text.as_ptr(), text.len()) };
    succeeded
}

/// Returns the first line of a panic message, in which libtorch states the reason.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(payload.downcast_ref::<&str>().copied());
    text.and_then(|text| text.lines().next())
        .unwrap_or("libtorch panicked without a reason")
        .to_owned()
}

unsafe extern "C" fn about(listener: Listener, context: *mut c_void) -> bool {
    let work = || {
        threads::limit();
        full_precision();
        serde_json::to_string(&LibraryInfo {
            gpus: device::gpus(),
        })
        .map_err(|error| error.to_string())
    };
    // SAFETY: listener and context belong together.
    unsafe { report(listener, context, work) }
}

unsafe extern "C" fn describe(
    data: *const u8,
    length: usize,
    listener: Listener,
    context: *mut c_void,
) -> bool {
    // SAFETY: the slice is valid; listener and context belong together.
    unsafe {
        let bytes = slice(data, length);
        report(listener, context, || {
            let description = program::describe(bytes)?;
            serde_json::to_string(&description).map_err(|error| error.to_string())
        })
    }
}

unsafe extern "C" fn prepare(
    request: *const u8,
    request_length: usize,
    data: *const u8,
    length: usize,
    executor: *mut *mut c_void,
    listener: Listener,
    context: *mut c_void,
) -> bool {
    // SAFETY: the slices and the place for the handle are valid; listener and context belong
    // together.
    unsafe {
        let (request, bytes) = (slice(request, request_length), slice(data, length));
        report(listener, context, || {
            let request: PrepareRequest =
                serde_json::from_slice(request).map_err(|error| error.to_string())?;
            let mut step: Box<dyn MethodStep> = match &request.source {
                MethodSource::Program(call) => {
                    Box::new(ProgramStep::new(request.clone(), call.clone(), bytes)?)
                }
                MethodSource::Graph => Box::new(GraphStep::new(&request, bytes)?),
            };
            if device::choose(request.device).is_cuda() {
                // Optional: an error here comes again in the next step, which reports it.
                let _ = warm_up::tune(&mut *step, &request);
            }
            executor.write(Box::into_raw(Box::new(Prepared { step, request })).cast());
            Ok(String::new())
        })
    }
}

unsafe extern "C" fn free(executor: *mut c_void) {
    // SAFETY: the handle comes from `prepare` and is not used afterwards.
    let prepared = unsafe { Box::from_raw(executor.cast::<Prepared>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(prepared)));
}

unsafe extern "C" fn device_name(
    executor: *const c_void,
    listener: Listener,
    context: *mut c_void,
) {
    // SAFETY: the handle comes from `prepare`; listener and context belong together.
    unsafe {
        let prepared = &*executor.cast::<Prepared>();
        report(listener, context, || Ok(prepared.step.device()));
    }
}

unsafe extern "C" fn bytes(executor: *const c_void) -> usize {
    // SAFETY: the handle comes from `prepare`.
    let prepared = unsafe { &*executor.cast::<Prepared>() };
    catch_unwind(AssertUnwindSafe(|| prepared.step.bytes())).unwrap_or(0)
}

unsafe extern "C" fn seed(executor: *mut c_void, stream: usize, seed: u64) {
    // SAFETY: the handle comes from `prepare`, and nothing else uses it during the call.
    let prepared = unsafe { &mut *executor.cast::<Prepared>() };
    // An error here comes again in the next step, which reports it.
    let _ = catch_unwind(AssertUnwindSafe(|| prepared.step.seed(stream, seed)));
}

unsafe extern "C" fn run(
    executor: *mut c_void,
    streams: *const usize,
    stream_count: usize,
    blocks: usize,
    inputs: *const *const f32,
    outputs: *const *mut f32,
    listener: Listener,
    context: *mut c_void,
) -> bool {
    // SAFETY: the handle comes from `prepare`, and nothing else uses it during the call; streams,
    // ports and values are as many as the request says; listener and context belong together.
    unsafe {
        let Prepared { step, request } = &mut *executor.cast::<Prepared>();
        let method = &request.method;
        let values = |channels: usize, ratio: usize| {
            channels * (method.block / ratio) * blocks * stream_count
        };
        let streams = slice(streams, stream_count);
        let input_slices: Vec<&[f32]> = method
            .inputs
            .iter()
            .enumerate()
            .map(|(index, port)| slice(*inputs.add(index), values(port.channels, port.ratio)))
            .collect();
        let mut output_slices: Vec<&mut [f32]> = method
            .outputs
            .iter()
            .enumerate()
            .map(|(index, port)| {
                std::slice::from_raw_parts_mut(
                    *outputs.add(index),
                    values(port.channels, port.ratio),
                )
            })
            .collect();
        report(listener, context, || {
            step.run(streams, blocks, &input_slices, &mut output_slices)
                .map(|()| String::new())
        })
    }
}

/// Returns a slice; empty for length 0, whatever the pointer.
///
/// # Safety
/// `data` must point to `length` values.
unsafe fn slice<'a, T>(data: *const T, length: usize) -> &'a [T] {
    if length == 0 {
        &[]
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(data, length) }
    }
}
