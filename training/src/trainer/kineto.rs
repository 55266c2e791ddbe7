//! Chrome trace of some steps, written by libtorch's own profiler (Kineto).

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tch::Device;

/// Steps before the first that is traced: they allocate memory and choose algorithms.
const FIRST_STEP: u64 = 2;
/// Steps in a trace; a step of an instrument has about ten thousand events.
const STEPS: u64 = 5;

#[expect(unsafe_code, reason = "calls C++")]
mod shim {
    use std::ffi::c_char;

    unsafe extern "C" {
        pub safe fn ondes_profiler_start(cuda: bool) -> bool;
        pub fn ondes_profiler_range(name: *const c_char);
        pub fn ondes_profiler_stop(path: *const c_char) -> bool;
    }
}

/// Trace of some steps.
pub(super) struct Trace {
    path: PathBuf,
    cuda: bool,
    is_recording: bool,
    steps: u64,
}

impl Trace {
    /// Prepares a trace; `path` must be writable.
    pub(super) fn new(path: &Path, device: Device) -> anyhow::Result<Self> {
        std::fs::File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Self { path: path.to_owned(), cuda: device != Device::Cpu, is_recording: false, steps: 0 })
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
            ensure!(shim::ondes_profiler_start(self.cuda), "libtorch's profiler cannot be started");
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
        let path = CString::new(self.path.as_os_str().as_encoded_bytes()).context("the path has a zero")?;
        // SAFETY: the path is valid during the call, which copies it.
        #[expect(unsafe_code)]
        let written = unsafe { shim::ondes_profiler_stop(path.as_ptr()) };
        ensure!(written, "{}: cannot be written by libtorch's profiler", self.path.display());
        eprintln!("{}: written; open it at https://ui.perfetto.dev", self.path.display());
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
