//! Being asked to stop, by Ctrl-C or by the system.
//!
//! Work that may last looks at [`check`] now and then and gives up when asked to; what it has begun is then removed as after
//! any other failure.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program that was interrupted, as shells have it: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Why there is no result.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on Ctrl-C, a termination or a closed terminal is a request; a second one ends the program at once.
///
/// Where signals are not in their usual state they stay as they are: under nohup a closed terminal shall go on meaning
/// nothing.
pub fn listen() {
    listen_and_wake(|| {});
}

/// The same; `wake` is called, on another thread, when somebody asks.
pub fn listen_and_wake(wake: impl Fn() + Send + 'static) {
    let handler = move || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            process::exit(EXIT_CODE.into());
        }
        wake();
    };
    // Without it Ctrl-C ends the program as it ends any other.
    drop(ctrlc::try_set_handler(handler));
}

/// Asks all that is going on in this program to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Whether somebody asked.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Goes on, or not.
///
/// # Errors
/// [`Interrupted`] when somebody asked to stop.
pub fn check() -> Result<(), Interrupted> {
    if requested() { Err(Interrupted) } else { Ok(()) }
}
