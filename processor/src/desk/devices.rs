//! Where libtorch can compute, for who wants to choose.

use std::thread::JoinHandle;

use ondes_engine::executor::Device;
use ondes_engine::torch::Library;

/// What there is, or why there is nothing.
type Found = Result<Vec<Device>, String>;

/// The devices. libtorch is opened for that, when it is asked for, on a thread of its own.
#[derive(Default)]
pub struct Devices {
    found: Option<Found>,
    search: Option<JoinHandle<Found>>,
}

impl Devices {
    /// Looks for them, again where there was nothing: it may have been installed meanwhile.
    pub fn look(&mut self) {
        if self.search.is_none() && !matches!(self.found, Some(Ok(_))) {
            let look = || match Library::get() {
                Ok(library) => Ok(library.devices()),
                Err(error) => Err(format!("Torch: {error}")),
            };
            self.search = Some(std::thread::spawn(look));
        }
    }

    /// Takes what was found since. Gives whether the search goes on.
    pub fn poll(&mut self) -> bool {
        if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish();
        }
        self.search.is_some()
    }

    /// As it is shown.
    #[must_use]
    pub fn shown(&self) -> ondes_ui::Devices<'_> {
        match &self.found {
            None => ondes_ui::Devices::Unknown,
            Some(Ok(devices)) => ondes_ui::Devices::These(devices),
            Some(Err(why)) => ondes_ui::Devices::None(why),
        }
    }

    /// Waits for the search.
    fn finish(&mut self) {
        if let Some(Ok(found)) = self.search.take().map(JoinHandle::join) {
            self.found = Some(found);
        }
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        // This code may be unloaded after this.
        self.finish();
    }
}
