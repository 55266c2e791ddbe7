//! A TorchScript module in memory.
//!
//! What tch offers of TorchScript has no buffers, no attributes and no copies that share weights; `script.cpp` brings those, and
//! this file makes them safe. All of it happens in inference mode.

mod native;
pub mod state;

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use ondes_engine::executor::Precision;
use serde_json::Value;
use tch::Tensor;

use native::{Raw, listen, see};

/// A module, with its state.
#[derive(Debug)]
pub struct Script(NonNull<Raw>);

// SAFETY: a module may be used by any thread, one at a time; what is shared between copies, the weights and the code, is only read.
unsafe impl Send for Script {}
// SAFETY: with a shared reference it is only looked at and copied.
unsafe impl Sync for Script {}

/// A tensor of a module.
pub struct Held {
    /// Its name, with those of the submodules it is in.
    pub name: String,
    /// The module's own, not a copy.
    pub tensor: Tensor,
    /// Whether training has made it: then no step changes it.
    pub is_weight: bool,
}

impl Script {
    /// Reads a file; `cuda` is the number of a GPU.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn load(bytes: &[u8], cuda: Option<u8>) -> Result<Self, String> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the bytes are there while it is called.
        told(|listener, context| unsafe {
            let (data, cuda) = (bytes.as_ptr().cast(), cuda.map_or(-1, i32::from));
            native::ondes_script_load(data, bytes.len(), cuda, &raw mut raw, listener, context)
        })?;
        NonNull::new(raw).map(Self).ok_or_else(|| "libtorch read nothing".into())
    }

    /// Brings weights and states to another precision, in which it computes then as autocast has it.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn narrow(&mut self, precision: Precision) -> Result<(), String> {
        if precision == Precision::F32 {
            return Ok(());
        }
        let to_bf16 = precision == Precision::Bf16;
        // SAFETY: it is there.
        let narrowed = told(|listener, context| unsafe {
            native::ondes_script_narrow(self.0.as_ptr(), to_bf16, listener, context)
        });
        narrowed.map(drop)
    }

    /// Another one with a state of its own, which is at first the same; weights are shared.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn copy(&self) -> Result<Self, String> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: it is there.
        told(|listener, context| unsafe {
            native::ondes_script_copy(self.0.as_ptr(), &raw mut raw, listener, context)
        })?;
        NonNull::new(raw).map(Self).ok_or_else(|| "libtorch copied nothing".into())
    }

    /// The file `metadata.json` beside it; empty where there is none.
    #[must_use]
    pub fn metadata(&self) -> String {
        let told = told(|listener, context| {
            // SAFETY: it is there.
            unsafe { native::ondes_script_metadata(self.0.as_ptr(), listener, context) };
            true
        });
        told.unwrap_or_default()
    }

    /// The names of its methods.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn methods(&self) -> Result<Vec<String>, String> {
        // SAFETY: it is there.
        let told =
            told(|listener, context| unsafe { native::ondes_script_methods(self.0.as_ptr(), listener, context) })?;
        serde_json::from_str(&told).map_err(|error| error.to_string())
    }

    /// An attribute or a buffer of its own; null where there is none, or it is no value that JSON has.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn attribute(&self, name: &str) -> Result<Value, String> {
        let name = c_string(name)?;
        // SAFETY: it is there, and the name is.
        let told = told(|listener, context| unsafe {
            native::ondes_script_attribute(self.0.as_ptr(), name.as_ptr(), listener, context)
        })?;
        serde_json::from_str(&told).map_err(|error| error.to_string())
    }

    /// All that it remembers besides tensors, as a text.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn scalars(&self) -> Result<String, String> {
        // SAFETY: it is there.
        told(|listener, context| unsafe { native::ondes_script_scalars(self.0.as_ptr(), listener, context) })
    }

    /// All tensors, weights among them.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn tensors(&self) -> Result<Vec<Held>, String> {
        let mut seen: Vec<Held> = Vec::new();
        // SAFETY: it is there, and so is the list, which only the visitor uses meanwhile.
        told(|listener, context| unsafe {
            let list: *mut c_void = (&raw mut seen).cast();
            native::ondes_script_tensors(self.0.as_ptr(), see, list, listener, context)
        })?;
        Ok(seen)
    }

    /// Number of its weights; of all its values where none counts as a weight.
    ///
    /// # Errors
    /// One line: what libtorch says.
    pub fn parameters(&self) -> Result<usize, String> {
        let held = self.tensors()?;
        let count = |wanted: fn(&&Held) -> bool| held.iter().filter(wanted).map(|held| held.tensor.numel()).sum();
        let weights: usize = count(|held| held.is_weight);
        Ok(if weights > 0 { weights } else { count(|_| true) })
    }

    /// Calls a method with numbers.
    ///
    /// # Errors
    /// One line: there is no such method, it takes something else, or it breaks down.
    pub fn call(&mut self, method: &str, values: &[f64]) -> Result<Value, String> {
        let name = c_string(method)?;
        // SAFETY: it is there, and so are name and values.
        let told = told(|listener, context| unsafe {
            let (values, count) = (values.as_ptr(), values.len());
            native::ondes_script_call(self.0.as_ptr(), name.as_ptr(), values, count, listener, context)
        })?;
        serde_json::from_str(&told).map_err(|error| error.to_string())
    }

    /// Runs a method on tensors; of several that it gives the first counts.
    ///
    /// # Errors
    /// One line: there is no such method, it wants something else, or it breaks down.
    pub fn run(&mut self, method: &str, inputs: &[&Tensor]) -> Result<Tensor, String> {
        let name = c_string(method)?;
        let inputs: Vec<_> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
        let mut output = std::ptr::null_mut();
        // SAFETY: it is there, and so are name and tensors.
        told(|listener, context| unsafe {
            let (script, out) = (self.0.as_ptr(), &raw mut output);
            native::ondes_script_run(script, name.as_ptr(), inputs.as_ptr(), inputs.len(), out, listener, context)
        })?;
        // SAFETY: it was made for us.
        Ok(unsafe { Tensor::from_ptr(output.cast()) })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        unsafe { native::ondes_script_free(self.0.as_ptr()) }
    }
}

/// From now on f32 is f32 on all devices, where GPUs would take less of it for speed.
pub fn full_precision() {
    // SAFETY: it has no conditions.
    unsafe { native::ondes_full_precision() }
}

/// As long as this is there, its thread computes without gradients and without what they need.
pub struct Inference(*mut c_void);

impl Inference {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: it has no conditions.
        Self(unsafe { native::ondes_inference_begin() })
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // SAFETY: it was begun on this thread, which it cannot leave: a raw pointer is not `Send`.
        unsafe { native::ondes_inference_end(self.0) }
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| error.to_string())
}

/// What is said while something is done.
fn told(work: impl FnOnce(native::Listener, *mut c_void) -> bool) -> Result<String, String> {
    let mut heard: Vec<u8> = Vec::new();
    let done = work(listen, (&raw mut heard).cast());
    let heard = String::from_utf8_lossy(&heard).into_owned();
    if done { Ok(heard) } else { Err(last_line(&heard)) }
}

/// The line that says what went wrong: libtorch tells first where, in the program, line by line.
fn last_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // Words for whoever works on libtorch.
    let mut lines = lines.filter(|line| !line.starts_with("Exception raised from") && !line.starts_with("frame #"));
    let is_traced = text.contains("Traceback of TorchScript");
    let line = if is_traced { lines.next_back() } else { lines.next() };
    line.unwrap_or("libtorch does not say why").to_owned()
}
