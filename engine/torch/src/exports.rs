//! The C interface of the library: [`ondes_engine::torch::interface`].
//!
//! No panic crosses it: what breaks down is told like everything else.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ondes_engine::torch::description::About;
use ondes_engine::torch::interface::{Interface, Listener, VERSION};
use ondes_engine::torch::{Order, Work};

use crate::graph_step::Graph;
use crate::program::{self, Program};
use crate::script::full_precision;
use crate::step::Step;
use crate::{device, threads, warm_up};

/// What is given out for a method: the ports are needed to know how long slices are.
struct Made {
    step: Box<dyn Step>,
    order: Order,
}

/// Gives the table of functions.
#[unsafe(no_mangle)]
pub extern "C" fn ondes_torch_interface() -> *const Interface {
    static TABLE: Interface =
        Interface { version: VERSION, about, describe, make, free, device: name, bytes, seed, run };
    static READY: Once = Once::new();
    // Panics are told to whoever called; nobody wants them on standard error as well.
    READY.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    &raw const TABLE
}

/// Does something that may break down, and tells what it gives, or why there is nothing.
unsafe fn tell(listener: Listener, context: *mut c_void, work: impl FnOnce() -> Result<String, String>) -> bool {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(words(&*panic)));
    let (is_done, text) = match done {
        Ok(text) => (true, text),
        Err(why) => (false, why.lines().map(str::trim).collect::<Vec<_>>().join(" ")),
    };
    // SAFETY: that is how our caller has it.
    unsafe { listener(context, text.as_ptr(), text.len()) };
    is_done
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    // Of libtorch's words the first line says what is wrong.
    text.and_then(|text| text.lines().next()).unwrap_or("libtorch broke down").to_owned()
}

unsafe extern "C" fn about(listener: Listener, context: *mut c_void) -> bool {
    let work = || {
        threads::few();
        full_precision();
        serde_json::to_string(&About { gpus: device::gpus() }).map_err(|error| error.to_string())
    };
    // SAFETY: listener and context belong together.
    unsafe { tell(listener, context, work) }
}

unsafe extern "C" fn describe(data: *const u8, length: usize, listener: Listener, context: *mut c_void) -> bool {
    // SAFETY: so many bytes are there; listener and context belong together.
    unsafe {
        let bytes = slice(data, length);
        tell(listener, context, || {
            let description = program::describe(bytes)?;
            serde_json::to_string(&description).map_err(|error| error.to_string())
        })
    }
}

unsafe extern "C" fn make(
    order: *const u8,
    order_length: usize,
    data: *const u8,
    length: usize,
    made: *mut *mut c_void,
    listener: Listener,
    context: *mut c_void,
) -> bool {
    // SAFETY: so many bytes are there, as is the place for what is made; listener and context belong together.
    unsafe {
        let (order, bytes) = (slice(order, order_length), slice(data, length));
        tell(listener, context, || {
            let order: Order = serde_json::from_slice(order).map_err(|error| error.to_string())?;
            let mut step: Box<dyn Step> = match &order.work {
                Work::Program(call) => Box::new(Program::new(order.clone(), call.clone(), bytes)?),
                Work::Graph => Box::new(Graph::new(&order, bytes)?),
            };
            if device::choose(order.device).is_cuda() {
                // It is played as well without; what breaks down now does so in the next step too, which tells.
                let _ = warm_up::tune(&mut *step, &order);
            }
            made.write(Box::into_raw(Box::new(Made { step, order })).cast());
            Ok(String::new())
        })
    }
}

unsafe extern "C" fn free(made: *mut c_void) {
    // SAFETY: it was made here, and nobody uses it after this.
    let made = unsafe { Box::from_raw(made.cast::<Made>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(made)));
}

unsafe extern "C" fn name(made: *const c_void, listener: Listener, context: *mut c_void) {
    // SAFETY: it was made here; listener and context belong together.
    unsafe {
        let made = &*made.cast::<Made>();
        tell(listener, context, || Ok(made.step.device()));
    }
}

unsafe extern "C" fn bytes(made: *const c_void) -> usize {
    // SAFETY: it was made here.
    let made = unsafe { &*made.cast::<Made>() };
    catch_unwind(AssertUnwindSafe(|| made.step.bytes())).unwrap_or(0)
}

unsafe extern "C" fn seed(made: *mut c_void, stream: usize, seed: u64) {
    // SAFETY: it was made here, and nobody else uses it meanwhile.
    let made = unsafe { &mut *made.cast::<Made>() };
    // What breaks down now does so in the next step too, which tells.
    let _ = catch_unwind(AssertUnwindSafe(|| made.step.seed(stream, seed)));
}

unsafe extern "C" fn run(
    made: *mut c_void,
    streams: *const usize,
    stream_count: usize,
    blocks: usize,
    inputs: *const *const f32,
    outputs: *const *mut f32,
    listener: Listener,
    context: *mut c_void,
) -> bool {
    // SAFETY: it was made here, and nobody else uses it meanwhile; streams, ports and their values are as many as the order says;
    // listener and context belong together.
    unsafe {
        let Made { step, order } = &mut *made.cast::<Made>();
        let method = &order.method;
        let values = |channels: usize, ratio: usize| channels * (method.block / ratio) * blocks * stream_count;
        let streams = slice(streams, stream_count);
        let heard: Vec<&[f32]> = method
            .inputs
            .iter()
            .enumerate()
            .map(|(port, facts)| slice(*inputs.add(port), values(facts.channels, facts.ratio)))
            .collect();
        let mut given: Vec<&mut [f32]> = method
            .outputs
            .iter()
            .enumerate()
            .map(|(port, facts)| {
                std::slice::from_raw_parts_mut(*outputs.add(port), values(facts.channels, facts.ratio))
            })
            .collect();
        tell(listener, context, || step.run(streams, blocks, &heard, &mut given).map(|()| String::new()))
    }
}

/// A slice; empty where there is nothing.
unsafe fn slice<'a, T>(data: *const T, length: usize) -> &'a [T] {
    // SAFETY: so many values are there.
    if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } }
}
