//! An open window, and how it ends.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use baseview::Window;

/// How long a thread of the system may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open window. It is gone, with all that belongs to it, when this is dropped.
pub struct Opened {
    window: Option<Window>,
    ended: Receiver<()>,
}

/// Tells, when it is dropped, that the thread that has it is at its end.
pub struct Ending {
    _telling: Sender<()>,
}

thread_local! {
    static ENDING: std::cell::OnceCell<Ending> = const { std::cell::OnceCell::new() };
}

impl Ending {
    /// The end of the thread that [keeps](Ending::keep) this, and where it is told.
    pub fn new() -> (Self, Receiver<()>) {
        let (telling, ended) = channel();
        (Self { _telling: telling }, ended)
    }

    /// From now on the end is that of this thread.
    pub fn keep(self) {
        // A thread shows one window only.
        let _ = ENDING.try_with(|ending| ending.set(self));
    }
}

impl Opened {
    /// A window whose thread tells of its end.
    pub fn new(window: Window, ended: Receiver<()>) -> Self {
        Self { window: Some(window), ended }
    }

    /// Shows it until somebody closes it.
    ///
    /// # Errors
    /// When the system does not show it.
    pub fn run_until_closed(mut self) -> Result<(), baseview::Error> {
        self.window.take().map_or(Ok(()), Window::run_until_closed)
    }
}

impl Deref for Opened {
    type Target = Window;

    fn deref(&self) -> &Window {
        self.window.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        drop(self.window.take());
        // On Linux a window has a thread of its own, which baseview (up to 0.4.2) does not always wait for. The host may unload
        // us, or end, as soon as this returns; by then nothing may be in the graphics driver any more. Elsewhere windows live on
        // the host's thread.
        if cfg!(target_os = "linux") {
            let _ = self.ended.recv_timeout(PATIENCE);
        }
    }
}
