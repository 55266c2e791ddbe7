//! Ctrl-C and SIGTERM: the step is finished, and checkpoint and best model are written.

use std::sync::atomic::{AtomicU8, Ordering};

use ondes_engine::files;

/// Exit code of the first signal; 0 before it.
static REQUESTED: AtomicU8 = AtomicU8::new(0);

/// Lets runs stop at Ctrl-C and SIGTERM. A second signal ends the process at once.
///
/// # Errors
/// Returns an error if the system refuses the handler.
pub fn install() -> anyhow::Result<()> {
    signals::handle(|code| {
        if REQUESTED.swap(code, Ordering::Relaxed) != 0 {
            files::remove_unfinished();
            std::process::exit(i32::from(code));
        }
        eprintln!("stopping after this step; once more to stop at once");
    })
}

/// Tells whether a stop has been requested.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed) != 0
}

/// Returns the exit code after an interruption, that of a shell: 130 after Ctrl-C, 143 after
/// SIGTERM.
#[must_use]
pub fn exit_code() -> u8 {
    REQUESTED.load(Ordering::Relaxed)
}

#[cfg(unix)]
mod signals {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    /// Exit code of a shell after a signal, less the signal's number.
    const SHELL: u8 = 128;

    /// Calls `handler` on a thread of its own with the exit code of each signal.
    pub fn handle(mut handler: impl FnMut(u8) + Send + 'static) -> anyhow::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        std::thread::Builder::new()
            .name("ondes-signals".into())
            .spawn(move || {
                signals
                    .forever()
                    .for_each(|signal| handler(SHELL + u8::try_from(signal).unwrap_or_default()));
            })?;
        Ok(())
    }
}

#[cfg(not(unix))]
mod signals {
    /// Calls `handler` on a thread of its own with the exit code of each Ctrl-C.
    pub fn handle(mut handler: impl FnMut(u8) + Send + 'static) -> anyhow::Result<()> {
        Ok(ctrlc::set_handler(move || handler(130))?)
    }
}
