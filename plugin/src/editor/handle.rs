//! The framework's handle of an open window, and adapters between the framework's and baseview's host types.

use std::error::Error;

use baseview::host::{self, Host};
use baseview::{HandlerError, WindowSize};
use nice_plug::editor::dpi::NativeSize;
use nice_plug::editor::{
    EditorHandle, HostCallbacks, HostMainThreadCaller, HostMethods, ParentWindowHandle, ResizeHint,
};

use super::open_window::OpenWindow;
use super::redraw::RedrawFlag;

/// Forwards the host's requests to the window.
pub struct WindowHandle {
    /// Requests a repaint.
    pub(super) redraw: RedrawFlag,
    /// Size constraints.
    pub(super) resize_hint: ResizeHint,
}

impl EditorHandle for WindowHandle {
    type Window = OpenWindow;
    type Error = baseview::Error;

    fn run_until_closed(window: OpenWindow) -> Result<(), Self::Error> {
        window.run_until_closed()
    }

    fn set_parent(&self, parent: ParentWindowHandle, window: &OpenWindow) -> Result<(), Self::Error> {
        window.set_parent(&parent)
    }

    fn show(&self, window: &OpenWindow) -> Result<(), Self::Error> {
        let shown = window.show();
        // Not all systems request the first frame.
        self.redraw.request();
        shown
    }

    fn hide(&self, window: &OpenWindow) -> Result<(), Self::Error> {
        window.hide()
    }

    fn set_size(&self, size: NativeSize<u32>, window: &OpenWindow) -> Result<(), Self::Error> {
        window.resize(size)
    }

    fn host_main_thread_callback(&self, window: &OpenWindow) {
        window.host_main_thread_callback();
    }

    fn adjust_size(&self, size: NativeSize<u32>, window: &OpenWindow) -> Option<NativeSize<u32>> {
        let WindowSize { logical, physical, scale_factor } = window.size();
        Some(self.resize_hint.adjust_size(size, NativeSize::from_logical_or_physical(logical, physical), scale_factor))
    }

    fn set_fallback_scale_factor(&self, scale_factor: f64, window: &OpenWindow) -> Result<(), Self::Error> {
        window.suggest_fallback_scale_factor(scale_factor)
    }

    fn state_changed(&self) {
        self.redraw.request();
    }

    fn param_value_changed(&self, _: &str, _: f32) {
        self.redraw.request();
    }

    fn param_modulation_changed(&self, _: &str, _: f32) {
        self.redraw.request();
    }
}

/// Converts the framework's host callbacks to baseview's.
pub(super) fn baseview_host(HostMethods { callbacks, main_thread_caller }: HostMethods) -> Host {
    Host::new().with_callbacks(Callbacks(callbacks)).with_main_thread(MainThread(main_thread_caller))
}

struct Callbacks(Box<dyn HostCallbacks>);

impl host::HostCallbacks for Callbacks {
    fn request_resize(&mut self, size: WindowSize) -> Result<(), HandlerError> {
        let result: Result<(), Box<dyn Error>> = self.0.request_resize(size.physical.into(), size.scale_factor);
        result.map_err(HandlerError::from_boxed)
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
