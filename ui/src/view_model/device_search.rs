//! Search for the devices of libtorch.

use std::any::Any;
use std::thread::JoinHandle;

use ondes_engine::executor::Device;
use ondes_engine::panics;
use ondes_engine::torch::Library;

/// Devices, or the reason why there are none.
type SearchResult = Result<Vec<Device>, String>;

/// Devices of libtorch. The library is loaded on a thread of its own, when devices are first
/// searched for.
#[derive(Default)]
pub struct DeviceSearch {
    found: Option<SearchResult>,
    thread: Option<JoinHandle<SearchResult>>,
}

impl DeviceSearch {
    /// Starts a search, unless devices have been found.
    pub fn search(&mut self) {
        if self.thread.is_none() && !matches!(self.found, Some(Ok(_))) {
            let look = || match Library::get() {
                Ok(library) => Ok(library.devices()),
                Err(error) => Err(format!("Torch: {error}")),
            };
            self.thread = Some(std::thread::spawn(look));
        }
    }

    /// Takes the result of the thread, if it has ended. Returns whether it is still running.
    pub fn poll(&mut self) -> bool {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish();
        }
        self.thread.is_some()
    }

    /// Returns the devices for the window.
    #[must_use]
    pub fn view(&self) -> crate::view::ExecutorDevices<'_> {
        match &self.found {
            None => crate::view::ExecutorDevices::Unknown,
            Some(Ok(devices)) => crate::view::ExecutorDevices::Available(devices),
            Some(Err(reason)) => crate::view::ExecutorDevices::Unavailable(reason),
        }
    }

    /// Waits for the thread.
    fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let failed = |panic: Box<dyn Any + Send>| {
                Err(format!("internal error: {}", panics::message(&*panic)))
            };
            self.found = Some(thread.join().unwrap_or_else(failed));
        }
    }
}

impl Drop for DeviceSearch {
    fn drop(&mut self) {
        // Joined, since a plugin's code may be unloaded after this.
        self.finish();
    }
}
