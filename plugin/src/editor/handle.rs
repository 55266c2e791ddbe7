//! The framework's handle of an open window, and adapters between the framework's and baseview's
//! host types.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use baseview::dpi::Size;
use baseview::host::{self, Host};
use baseview::{HandlerError, WindowSize};
use nice_plug::editor::dpi::NativeSize;
use nice_plug::editor::{
    EditorHandle, HostCallbacks, HostMainThreadCaller, HostMethods, ParentWindowHandle, ResizeHint,
};
use ondes_engine::sync::lock;

use super::open_window::OpenWindow;
use super::redraw::RedrawFlag;

/// A size that the content needs, on its way from the window's thread to the host. The window is
/// resized only if the host agrees: it may not be resized by itself in a host whose toolkit decides
/// (GTK, as in Ardour), and would be cut in one that refuses.
#[derive(Clone)]
pub struct SizeRequest(Arc<Mutex<Requested>>);

struct Requested {
    size: Option<Size>,
    caller: Box<dyn HostMainThreadCaller>,
}

impl SizeRequest {
    /// Requests a size; on the window's thread.
    pub(super) fn send(&self, size: Size) {
        let mut requested = lock(&self.0);
        requested.size = Some(size);
        requested.caller.call_main_thread();
    }
}

/// The host of an open window, on the main thread.
pub struct WindowHost {
    request: SizeRequest,
    callbacks: Rc<RefCell<Box<dyn HostCallbacks>>>,
}

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

    fn set_parent(
        &self,
        parent: ParentWindowHandle,
        window: &OpenWindow,
    ) -> Result<(), Self::Error> {
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
        if let Some(WindowHost { request, callbacks }) = window.host() {
            // Not while it is locked: the host may call back.
            let requested = lock(&request.0).size.take();
            let scale_factor = window.size().scale_factor;
            if let Some(size) = requested
                && let Ok(mut callbacks) = callbacks.try_borrow_mut()
                && callbacks.request_resize(size, scale_factor).is_ok()
            {
                // The host may have done so already. A refusal leaves the content less room.
                let _ = window.resize(size);
            }
        }
        window.host_main_thread_callback();
    }

    fn adjust_size(&self, size: NativeSize<u32>, window: &OpenWindow) -> Option<NativeSize<u32>> {
        let WindowSize {
            logical,
            physical,
            scale_factor,
        } = window.size();
        Some(self.resize_hint.adjust_size(
            size,
            NativeSize::from_logical_or_physical(logical, physical),
            scale_factor,
        ))
    }

    fn set_fallback_scale_factor(
        &self,
        scale_factor: f64,
        window: &OpenWindow,
    ) -> Result<(), Self::Error> {
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

/// Converts the framework's host callbacks to baseview's, and returns what sends and receives
/// requests of a size.
pub(super) fn baseview_host(methods: HostMethods) -> (Host, WindowHost, SizeRequest) {
    let HostMethods {
        callbacks,
        main_thread_caller,
    } = methods;
    let callbacks = Rc::new(RefCell::new(callbacks));
    let request = SizeRequest(Arc::new(Mutex::new(Requested {
        size: None,
        caller: main_thread_caller,
    })));
    let host = Host::new()
        .with_callbacks(Callbacks(callbacks.clone()))
        .with_main_thread(MainThread(request.clone()));
    (
        host,
        WindowHost {
            request: request.clone(),
            callbacks,
        },
        request,
    )
}

struct Callbacks(Rc<RefCell<Box<dyn HostCallbacks>>>);

impl host::HostCallbacks for Callbacks {
    fn request_resize(&mut self, size: WindowSize) -> Result<(), HandlerError> {
        // The host calls back during a request, which decides the size.
        let Ok(mut callbacks) = self.0.try_borrow_mut() else {
            return Ok(());
        };
        let result: Result<(), Box<dyn Error>> =
            callbacks.request_resize(size.physical.into(), size.scale_factor);
        result.map_err(HandlerError::from_boxed)
    }

    fn destroyed(&mut self) {
        if let Ok(mut callbacks) = self.0.try_borrow_mut() {
            callbacks.destroyed();
        }
    }
}

struct MainThread(SizeRequest);

impl host::HostMainThreadCaller for MainThread {
    fn call_main_thread(&mut self) {
        lock(&self.0.0).caller.call_main_thread();
    }
}
