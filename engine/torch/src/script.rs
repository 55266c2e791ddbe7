//! A TorchScript module in memory.
//!
//! tch lacks buffers, attributes and copies that share weights; `script.cpp` adds them and this
//! file makes them safe. Everything runs in inference mode.

mod native;
pub mod state;

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use ondes_engine::executor::Precision;
use serde_json::Value;
use tch::Tensor;

use native::{RawScript, append_text, collect_tensor};

/// Start of the error of an archive that cannot be loaded.
const DAMAGED: &str = "the TorchScript archive is damaged, or of a newer PyTorch than 2.11";
/// Start of PyTorch's own errors about archives, which says nothing to others.
const ZIP_READER: &str = "PytorchStreamReader failed ";

/// A module with its state.
#[derive(Debug)]
pub struct Script(NonNull<RawScript>);

// SAFETY: any one thread at a time may use a module; copies share only weights and code, which are
// read-only.
unsafe impl Send for Script {}
// SAFETY: shared references only read and copy.
unsafe impl Sync for Script {}

/// A tensor of a module.
pub struct NamedTensor {
    /// Name, prefixed by those of its submodules.
    pub name: String,
    /// The module's own tensor, not a copy.
    pub tensor: Tensor,
    /// True for trained weights, which no step changes.
    pub is_weight: bool,
}

/// Input of one stream for a step, besides audio.
pub struct StreamCall {
    /// Index of the stream.
    pub stream: usize,
    /// `[attribute][value]`
    pub values: Vec<Vec<f32>>,
    /// Seed of the noise.
    pub seed: u64,
}

impl Script {
    /// Loads the bytes of a file; `gpu` is the index of a GPU, `None` for the CPU.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn load(bytes: &[u8], gpu: Option<u8>) -> Result<Self, String> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the bytes are valid during the call.
        let loaded = call_native(|listener, context| unsafe {
            let (data, cuda) = (bytes.as_ptr().cast(), gpu.map_or(-1, i32::from));
            native::ondes_script_load(data, bytes.len(), cuda, &raw mut raw, listener, context)
        });
        loaded.map_err(|reason| format!("{DAMAGED}: {}", reason.trim_start_matches(ZIP_READER)))?;
        NonNull::new(raw)
            .map(Self)
            .ok_or_else(|| "libtorch returned no module".into())
    }

    /// Converts weights and states to another precision; steps then compute in it as autocast does.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn convert(&mut self, precision: Precision) -> Result<(), String> {
        if precision == Precision::F32 {
            return Ok(());
        }
        let to_bf16 = precision == Precision::Bf16;
        // SAFETY: the module is valid.
        let converted = call_native(|listener, context| unsafe {
            native::ondes_script_narrow(self.0.as_ptr(), to_bf16, listener, context)
        });
        converted.map(drop)
    }

    /// Copies the module and its state; the weights are shared.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn copy(&self) -> Result<Self, String> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is valid.
        call_native(|listener, context| unsafe {
            native::ondes_script_copy(self.0.as_ptr(), &raw mut raw, listener, context)
        })?;
        NonNull::new(raw)
            .map(Self)
            .ok_or_else(|| "libtorch returned no copy".into())
    }

    /// Returns the file `metadata.json` of the archive; empty without one.
    #[must_use]
    pub fn metadata(&self) -> String {
        let text = call_native(|listener, context| {
            // SAFETY: the module is valid.
            unsafe { native::ondes_script_metadata(self.0.as_ptr(), listener, context) };
            true
        });
        text.unwrap_or_default()
    }

    /// Lists the names of the methods.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn methods(&self) -> Result<Vec<String>, String> {
        // SAFETY: the module is valid.
        let text = call_native(|listener, context| unsafe {
            native::ondes_script_methods(self.0.as_ptr(), listener, context)
        })?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Returns an attribute or a buffer of the module; null if it does not exist or is no JSON
    /// value.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn attribute(&self, name: &str) -> Result<Value, String> {
        let name = c_string(name)?;
        // SAFETY: the module and the name are valid.
        let text = call_native(|listener, context| unsafe {
            native::ondes_script_attribute(self.0.as_ptr(), name.as_ptr(), listener, context)
        })?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Returns the state besides tensors, as a text for comparison.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn scalars(&self) -> Result<String, String> {
        // SAFETY: the module is valid.
        call_native(|listener, context| unsafe {
            native::ondes_script_scalars(self.0.as_ptr(), listener, context)
        })
    }

    /// Lists all tensors, including weights.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn tensors(&self) -> Result<Vec<NamedTensor>, String> {
        let mut tensors: Vec<NamedTensor> = Vec::new();
        // SAFETY: the module and the list are valid, and only the visitor uses the list during the
        // call.
        call_native(|listener, context| unsafe {
            let list: *mut c_void = (&raw mut tensors).cast();
            native::ondes_script_tensors(self.0.as_ptr(), collect_tensor, list, listener, context)
        })?;
        Ok(tensors)
    }

    /// Returns the number of weights, or of all values if no tensor counts as a weight.
    ///
    /// # Errors
    /// Returns libtorch's error in one line.
    pub fn parameters(&self) -> Result<usize, String> {
        let tensors = self.tensors()?;
        let count = |filter: fn(&&NamedTensor) -> bool| {
            tensors
                .iter()
                .filter(filter)
                .map(|named| named.tensor.numel())
                .sum()
        };
        let weights: usize = count(|named| named.is_weight);
        Ok(if weights > 0 {
            weights
        } else {
            count(|_| true)
        })
    }

    /// Calls a method with numbers.
    ///
    /// # Errors
    /// Returns the reason in one line if the method does not exist, takes other arguments, or
    /// fails.
    pub fn call(&mut self, method: &str, values: &[f64]) -> Result<Value, String> {
        let name = c_string(method)?;
        // SAFETY: the module, the name and the values are valid.
        let text = call_native(|listener, context| unsafe {
            let (values, count) = (values.as_ptr(), values.len());
            native::ondes_script_call(
                self.0.as_ptr(),
                name.as_ptr(),
                values,
                count,
                listener,
                context,
            )
        })?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Calls a method with texts, which are read as its signature asks.
    ///
    /// # Errors
    /// Returns the reason in one line if the method does not exist, takes other arguments, or
    /// fails.
    pub fn call_with_texts(&mut self, method: &str, texts: &[String]) -> Result<Value, String> {
        let name = c_string(method)?;
        let texts = texts
            .iter()
            .map(|text| c_string(text))
            .collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: the module, the name and the texts are valid.
        let text = call_native(|listener, context| unsafe {
            let (texts, count) = (pointers.as_ptr(), pointers.len());
            native::ondes_script_call_texts(
                self.0.as_ptr(),
                name.as_ptr(),
                texts,
                count,
                listener,
                context,
            )
        })?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Sets a buffer to a sound `[channel, frame]` with its sample rate in Hz.
    ///
    /// # Errors
    /// Returns the reason in one line if the program takes no sounds, or fails.
    pub fn set_sound(
        &mut self,
        buffer: &str,
        sound: &Tensor,
        sample_rate: u32,
    ) -> Result<Value, String> {
        let name = c_string(buffer)?;
        // SAFETY: the module, the name and the tensor are valid.
        let text = call_native(|listener, context| unsafe {
            let (script, sound) = (self.0.as_ptr(), sound.as_ptr().cast());
            native::ondes_script_set_sound(
                script,
                name.as_ptr(),
                sound,
                sample_rate.into(),
                listener,
                context,
            )
        })?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Runs a method on tensors and returns its first output; random numbers follow the seed.
    /// Programs that draw any run one at a time, since libtorch has one generator per device.
    ///
    /// # Errors
    /// Returns the reason in one line if the method does not exist, takes other arguments, or
    /// fails.
    pub fn run(&mut self, method: &str, inputs: &[&Tensor], seed: u64) -> Result<Tensor, String> {
        let name = c_string(method)?;
        let inputs: Vec<_> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
        let mut output = std::ptr::null_mut();
        // SAFETY: the module, the name and the tensors are valid.
        call_native(|listener, context| unsafe {
            let (script, name, count) = (self.0.as_ptr(), name.as_ptr(), inputs.len());
            native::ondes_script_run(
                script,
                name,
                inputs.as_ptr(),
                count,
                seed,
                &raw mut output,
                listener,
                context,
            )
        })?;
        // SAFETY: the call returned ownership of the tensor.
        Ok(unsafe { Tensor::from_ptr(output.cast()) })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // SAFETY: the module is not used afterwards.
        unsafe { native::ondes_script_free(self.0.as_ptr()) }
    }
}

/// Disables TF32, so that f32 has its full precision on GPUs.
pub fn full_precision() {
    // SAFETY: the call has no preconditions.
    unsafe { native::ondes_full_precision() }
}

/// Guard of inference mode: while it exists, its thread computes without gradients.
pub struct Inference(*mut c_void);

impl Inference {
    /// Enters inference mode.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: the call has no preconditions.
        Self(unsafe { native::ondes_inference_begin() })
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // SAFETY: entered on this thread, which the guard cannot leave: a raw pointer is not
        // `Send`.
        unsafe { native::ondes_inference_end(self.0) }
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| error.to_string())
}

/// Calls a function of `script.cpp` and returns its text, or the line of its error that states the
/// reason.
fn call_native(work: impl FnOnce(native::Listener, *mut c_void) -> bool) -> Result<String, String> {
    let mut text: Vec<u8> = Vec::new();
    let succeeded = work(append_text, (&raw mut text).cast());
    let text = String::from_utf8_lossy(&text).into_owned();
    if succeeded {
        Ok(text)
    } else {
        Err(reason_line(&text))
    }
}

/// Returns the line that states the reason. In an error of a program, it is the last one, after the
/// traceback.
fn reason_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // Lines for developers of libtorch.
    let mut lines = lines
        .filter(|line| !line.starts_with("Exception raised from") && !line.starts_with("frame #"));
    let is_traced = text.contains("Traceback of TorchScript");
    let line = if is_traced {
        lines.next_back()
    } else {
        lines.next()
    };
    line.unwrap_or("libtorch gave no reason").to_owned()
}
