//! Where libtorch can compute, for who wants to choose.

use std::thread::JoinHandle;

use ondes_engine::executor::Device;
use ondes_engine::torch::Library;

/// What there is, or why there is nothing.
type SearchResult = Result<Vec<Device>, String>;

/// The devices. libtorch is opened for that, when it is asked for, on a thread of its own.
#[derive(Default)]
pub struct DeviceSearch {
    found: Option<SearchResult>,
    thread: Option<JoinHandle<SearchResult>>,
}

impl DeviceSearch {
    /// Looks for them, again where there was nothing: it may have been installed meanwhile.
    pub fn search(&mut self) {
        if self.thread.is_none() && !matches!(self.found, Some(Ok(_))) {
            let look = || match Library::get() {
                Ok(library) => Ok(library.devices()),
                Err(error) => Err(format!("Torch: {error}")),
            };
            self.thread = Some(std::thread::spawn(look));
        }
    }

    /// Takes what was found since. Gives whether the search goes on.
    pub fn poll(&mut self) -> bool {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish();
        }
        self.thread.is_some()
    }

    /// As it is shown.
    #[must_use]
    pub fn view(&self) -> crate::view::ExecutorDevices<'_> {
        match &self.found {
            None => crate::view::ExecutorDevices::Unknown,
            Some(Ok(devices)) => crate::view::ExecutorDevices::Available(devices),
            Some(Err(reason)) => crate::view::ExecutorDevices::Unavailable(reason),
        }
    }

    /// Waits for the search.
    fn finish(&mut self) {
        if let Some(Ok(found)) = self.thread.take().map(JoinHandle::join) {
            self.found = Some(found);
        }
    }
}

impl Drop for DeviceSearch {
    fn drop(&mut self) {
        // This code may be unloaded after this.
        self.finish();
    }
}
