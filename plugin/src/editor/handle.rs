//! An open window as the framework holds it.

use std::error::Error;

use baseview::host::{self, Host};
use baseview::{HandlerError, WindowSize};
use nice_plug::editor::dpi::NativeSize;
use nice_plug::editor::{
    EditorHandle, HostCallbacks, HostMainThreadCaller, HostMethods, ParentWindowHandle, ResizeHint,
};

use super::opened::Opened;
use super::wake::Wake;

/// Through this the host moves, sizes and shows the window.
pub struct Handle {
    /// Asks for a new picture.
    pub(super) wake: Wake,
    /// Which sizes the window takes.
    pub(super) resize_hint: ResizeHint,
}

impl EditorHandle for Handle {
    type Window = Opened;
    type Error = baseview::Error;

    fn run_until_closed(window: Opened) -> Result<(), Self::Error> {
        window.run_until_closed()
    }

    fn set_parent(&self, parent: ParentWindowHandle, window: &Opened) -> Result<(), Self::Error> {
        window.set_parent(&parent)
    }

    fn show(&self, window: &Opened) -> Result<(), Self::Error> {
        let shown = window.show();
        // Not all systems ask for a picture by themselves.
        self.wake.request();
        shown
    }

    fn hide(&self, window: &Opened) -> Result<(), Self::Error> {
        window.hide()
    }

    fn set_size(&self, size: NativeSize<u32>, window: &Opened) -> Result<(), Self::Error> {
        window.resize(size)
    }

    fn host_main_thread_callback(&self, window: &Opened) {
        window.host_main_thread_callback();
    }

    fn adjust_size(&self, size: NativeSize<u32>, window: &Opened) -> Option<NativeSize<u32>> {
        let WindowSize { logical, physical, scale_factor } = window.size();
        Some(self.resize_hint.adjust_size(size, NativeSize::from_logical_or_physical(logical, physical), scale_factor))
    }

    fn set_fallback_scale_factor(&self, scale_factor: f64, window: &Opened) -> Result<(), Self::Error> {
        window.suggest_fallback_scale_factor(scale_factor)
    }

    fn state_changed(&self) {
        self.wake.request();
    }

    fn param_value_changed(&self, _: &str, _: f32) {
        self.wake.request();
    }

    fn param_modulation_changed(&self, _: &str, _: f32) {
        self.wake.request();
    }
}

/// The host as the window wants to know it: the framework has types of its own for the same.
pub(super) fn host(HostMethods { callbacks, main_thread_caller }: HostMethods) -> Host {
    Host::new().with_callbacks(Callbacks(callbacks)).with_main_thread(MainThread(main_thread_caller))
}

struct Callbacks(Box<dyn HostCallbacks>);

impl host::HostCallbacks for Callbacks {
    fn request_resize(&mut self, size: WindowSize) -> Result<(), HandlerError> {
        let asked: Result<(), Box<dyn Error>> = self.0.request_resize(size.physical.into(), size.scale_factor);
        asked.map_err(HandlerError::from_boxed)
    }

    fn destroyed(&mut self) {
        self.0.destroyed();
    }
}

struct MainThread(Box<dyn HostMainThreadCaller>);

impl host::HostMainThreadCaller for MainThread {
    fn call_main_thread(&mut self) {
        self.0.call_main_thread();
    }
}
