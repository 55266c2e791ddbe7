//! Operators of some steps, and their Chrome trace, by libtorch's own profiler (Kineto).

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tch::Device;

use super::operators::Operator;

/// Steps before the first that is traced: they allocate memory and choose algorithms.
const FIRST_STEP: u64 = 2;
/// Steps in a trace; a step of an instrument has about ten thousand events.
const STEPS: u64 = 5;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use std::ffi::{c_char, c_void};

    unsafe extern "C" {
        pub safe fn ondes_profiler_start(cuda: bool) -> bool;
        pub fn ondes_profiler_range(name: *const c_char);
        pub fn ondes_profiler_stop(
            path: *const c_char,
            list: *mut c_void,
            add: unsafe extern "C" fn(*mut c_void, *const c_char, bool, u64, u64, u64),
        ) -> bool;
    }
}

/// Adds an operator to a list.
///
/// # Safety
/// `list` is a `Vec<Operator>`, and `name` ends with a zero.
#[expect(unsafe_code, reason = "called by C++")]
unsafe extern "C" fn add(
    list: *mut c_void,
    name: *const c_char,
    on_device: bool,
    calls: u64,
    total_ns: u64,
    self_ns: u64,
) {
    // SAFETY: as stated above.
    let (list, name) = unsafe { (&mut *list.cast::<Vec<Operator>>(), CStr::from_ptr(name)) };
    list.push(Operator {
        name: name.to_string_lossy().into_owned(),
        on_device,
        calls,
        total_ns,
        self_ns,
    });
}

/// Runs something as a range of the trace, on any thread; costs next to nothing while none is
/// recorded.
pub(crate) fn in_range<R>(name: &CStr, run: impl FnOnce() -> R) -> R {
    // SAFETY: the name is valid during the call, which copies it; null ends the range.
    #[expect(unsafe_code)]
    unsafe {
        shim::ondes_profiler_range(name.as_ptr());
        let result = run();
        shim::ondes_profiler_range(std::ptr::null());
        result
    }
}

/// Trace of some steps.
pub(super) struct Trace {
    /// File to write, if any.
    path: Option<PathBuf>,
    cuda: bool,
    is_recording: bool,
    steps: u64,
    operators: Vec<Operator>,
    /// Steps that the operators are of.
    traced: u64,
}

impl Trace {
    /// Prepares a trace; a path must be writable.
    pub(super) fn new(path: Option<&Path>, device: Device) -> anyhow::Result<Self> {
        if let Some(path) = path {
            std::fs::File::create(path)
                .with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(Self {
            path: path.map(Path::to_owned),
            cuda: device != Device::Cpu,
            is_recording: false,
            steps: 0,
            operators: Vec::new(),
            traced: 0,
        })
    }

    /// Tells whether steps are being recorded.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// Returns the operators, and the number of steps that they are of.
    pub(super) fn operators(&self) -> (&[Operator], u64) {
        (&self.operators, self.traced)
    }

    /// Adds a table of ours to the file.
    pub(super) fn append(&self, name: &str, table: &impl serde::Serialize) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let unwritable = || format!("{}: cannot be written", path.display());
        let mut text = std::fs::read_to_string(path).with_context(unwritable)?;
        // A run of too few steps has no trace.
        let Some(end) = text.rfind('}') else {
            return Ok(());
        };
        text.insert_str(
            end,
            &format!(",\n  {name:?}: {}\n", serde_json::to_string(table)?),
        );
        std::fs::write(path, text).with_context(unwritable)
    }

    /// Begins a range with a name.
    pub(super) fn range(&self, name: &CStr) {
        if self.is_recording {
            // SAFETY: the name is valid during the call, which copies it.
            #[expect(unsafe_code)]
            unsafe {
                shim::ondes_profiler_range(name.as_ptr());
            }
        }
    }

    /// Ends a step: starts recording, or stops it and writes the file.
    pub(super) fn step_done(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        if self.steps == FIRST_STEP {
            ensure!(
                shim::ondes_profiler_start(self.cuda),
                "libtorch's profiler cannot be started"
            );
            self.is_recording = true;
        } else if self.steps == FIRST_STEP + STEPS {
            self.finish()?;
        }
        Ok(())
    }

    /// Stops recording and writes the file.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.is_recording) {
            return Ok(());
        }
        self.traced = self.steps.saturating_sub(FIRST_STEP);
        let path = self
            .path
            .as_ref()
            .map(|path| CString::new(path.as_os_str().as_encoded_bytes()));
        let path = path.transpose().context("the path has a zero")?;
        let list: *mut Vec<Operator> = &raw mut self.operators;
        // SAFETY: path and list are valid during the call, which uses them in no other way than
        // stated.
        #[expect(unsafe_code)]
        let written = unsafe {
            shim::ondes_profiler_stop(
                path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
                list.cast(),
                add,
            )
        };
        let Some(path) = &self.path else {
            return Ok(());
        };
        ensure!(
            written,
            "{}: cannot be written by libtorch's profiler",
            path.display()
        );
        eprintln!(
            "{}: written; open it at https://ui.perfetto.dev",
            path.display()
        );
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
