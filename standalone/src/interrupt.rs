//! Interruption by Ctrl-C or by a signal.
//!
//! Long work calls [`check`] now and then, and stops with [`Interrupted`]; unfinished files are removed as after any
//! other error.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code after an interrupt, as in shells: 128 plus the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Error of work that was interrupted.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Handles Ctrl-C, SIGTERM and SIGHUP from now on: the first one sets a flag for [`check`], the second one exits.
///
/// Signals that are ignored stay ignored, so that a program under nohup survives the end of its terminal.
pub fn listen() {
    listen_and_wake(|| {});
}

/// Same as [`listen`], and calls `wake` on another thread at the first interrupt.
pub fn listen_and_wake(wake: impl Fn() + Send + 'static) {
    let handler = move || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            process::exit(EXIT_CODE.into());
        }
        wake();
    };
    // Without the handler Ctrl-C ends the program at once, as usual.
    drop(ctrlc::try_set_handler(handler));
}

/// Requests an interrupt from within the program.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Returns whether an interrupt was requested.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Returns an error if an interrupt was requested.
///
/// # Errors
/// Returns [`Interrupted`] after an interrupt.
pub fn check() -> Result<(), Interrupted> {
    if requested() { Err(Interrupted) } else { Ok(()) }
}
