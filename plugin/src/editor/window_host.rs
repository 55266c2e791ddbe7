//! The host of an open window: adapters between the framework's and baseview's types.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use baseview::dpi::Size;
use baseview::host::{self, Host};
use baseview::{HandlerError, WindowSize};
use nice_plug::editor::{HostCallbacks, HostMainThreadCaller, HostMethods};
use ondes_engine::sync::lock;

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

impl WindowHost {
    /// Asks the host for the requested size; returns it if the host agrees.
    pub(super) fn accept_size(&self, scale_factor: f64) -> Option<Size> {
        // Not while it is locked: the host may call back.
        let size = lock(&self.request.0).size.take()?;
        let mut callbacks = self.callbacks.try_borrow_mut().ok()?;
        let result = callbacks.request_resize(size, scale_factor);
        result.is_ok().then_some(size)
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
