//! An open window, and the end of its thread.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use baseview::Window;

use super::window_host::WindowHost;

/// Longest wait for the window's thread.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// An open window; dropping it closes the window and waits for its thread.
pub struct OpenWindow {
    window: Option<Window>,
    exited: Receiver<()>,
    host: Option<WindowHost>,
}

/// Closes its channel at the end of the thread that it is bound to.
pub struct ThreadExit {
    _sender: Sender<()>,
}

thread_local! {
    static THREAD_EXIT: std::cell::OnceCell<ThreadExit> = const { std::cell::OnceCell::new() };
}

impl ThreadExit {
    /// Returns an exit signal and its receiver, which disconnects when the thread
    /// [bound](Self::bind_to_thread) to the signal ends.
    pub fn new() -> (Self, Receiver<()>) {
        let (sender, exited) = channel();
        (Self { _sender: sender }, exited)
    }

    /// Binds the signal to the current thread.
    pub fn bind_to_thread(self) {
        // A thread shows one window only.
        let _ = THREAD_EXIT.try_with(|exit| exit.set(self));
    }
}

impl OpenWindow {
    /// Wraps a window whose thread disconnects `exited` at its end. Without a host, the window
    /// resizes itself.
    pub fn new(window: Window, exited: Receiver<()>, host: Option<WindowHost>) -> Self {
        Self {
            window: Some(window),
            exited,
            host,
        }
    }

    /// Returns the host that the window asks for its size.
    #[must_use]
    pub fn host(&self) -> Option<&WindowHost> {
        self.host.as_ref()
    }

    /// Runs the window until it is closed.
    ///
    /// # Errors
    /// Returns an error if the window's event loop fails.
    pub fn run_until_closed(mut self) -> Result<(), baseview::Error> {
        self.window.take().map_or(Ok(()), Window::run_until_closed)
    }
}

impl Deref for OpenWindow {
    type Target = Window;

    fn deref(&self) -> &Window {
        self.window
            .as_ref()
            .expect("the window is only taken on drop")
    }
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        drop(self.window.take());
        // On Linux a window has a thread of its own, which baseview (up to 0.4.2) does not always
        // join. The host may unload the plugin or exit as soon as this returns, so that the thread
        // must have left the graphics driver. On other systems windows run on the host's thread.
        if cfg!(target_os = "linux") {
            let _ = self.exited.recv_timeout(EXIT_TIMEOUT);
        }
    }
}
