//! Ctrl-C and SIGTERM: the step is finished, and checkpoint and best model are written.

use std::sync::atomic::{AtomicBool, Ordering};

use ondes_engine::files;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Exit code after an interruption, that of a shell.
pub const EXIT_CODE: u8 = 130;

/// Lets runs stop at Ctrl-C and SIGTERM. A second signal ends the process at once.
///
/// # Errors
/// Returns an error if the system refuses the handler.
pub fn install() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            files::remove_unfinished();
            std::process::exit(i32::from(EXIT_CODE));
        }
        eprintln!("stopping after this step; once more to stop at once");
    })
}

/// Tells whether a stop has been requested.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
