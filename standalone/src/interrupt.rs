//! Interruption by Ctrl-C or by a signal, for all commands.
//!
//! Long work calls [`check`] now and then, and stops with [`Interrupted`]; unfinished files are
//! removed as after any other error. A command that has not ended within a second, because it waits
//! for a disk, a device, the network, a program or the reader of its output, is ended by force;
//! unfinished files are removed then as well.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ondes_engine::files;
use ondes_engine::sync::lock;

use crate::terminal;

/// Time that a command has to end by itself.
const PATIENCE: Duration = Duration::from_millis(900);
/// Interval at which a command is watched after an interrupt.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);
/// Number of SIGINT.
const INTERRUPT: i32 = 2;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Number of the signal that interrupted.
static SIGNAL: AtomicI32 = AtomicI32::new(INTERRUPT);
static DEADLINE: Mutex<Deadline> = Mutex::new(Deadline {
    patience: PATIENCE,
    since: None,
});
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// End of the time that a command has to end by itself.
struct Deadline {
    patience: Duration,
    /// Time of the interrupt.
    since: Option<Instant>,
}

/// Error of work that was interrupted.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Handles Ctrl-C, SIGTERM and SIGHUP from now on: the first one sets a flag for [`check`], the
/// second one or the end of patience ends the program.
///
/// Signals that are ignored stay ignored, so that a program under nohup survives the end of its
/// terminal.
pub fn listen() {
    // Without the handler signals end the program at once, as usual.
    drop(signals::handle(|next| {
        let Some(signal) = next(None) else { return };
        SIGNAL.store(signal, Relaxed);
        lock(&DEADLINE).since = Some(Instant::now());
        request();
        if let Some(wake) = &*lock(&WAKE) {
            wake();
        }
        while !is_overdue() && next(Some(WATCH_INTERVAL)).is_none() {}
        end_by_force();
    }));
}

/// Calls `wake` on another thread at the first interrupt.
pub fn wake_with(wake: impl Fn() + Send + 'static) {
    *lock(&WAKE) = Some(Box::new(wake));
}

/// Gives the command `patience` to end by itself, from now on or from the interrupt on: it notices
/// an interrupt by itself, and then has files to complete.
pub fn allow(patience: Duration) {
    let mut deadline = lock(&DEADLINE);
    deadline.patience = patience;
    if let Some(since) = &mut deadline.since {
        *since = Instant::now();
    }
}

/// Ends the program by force if it has not ended by itself after `patience`, say because a device
/// does not answer.
pub fn end_after(patience: Duration) {
    let end = move || {
        std::thread::sleep(patience);
        files::remove_unfinished();
        signals::exit(0)
    };
    // Without the thread the program ends all the same, in most cases.
    drop(
        std::thread::Builder::new()
            .name("ondes-end".into())
            .spawn(end),
    );
}

/// Requests an interrupt from within the program.
pub fn request() {
    REQUESTED.store(true, Relaxed);
}

/// Returns whether an interrupt was requested.
pub fn requested() -> bool {
    REQUESTED.load(Relaxed)
}

/// Returns an error if an interrupt was requested.
///
/// # Errors
/// Returns [`Interrupted`] after an interrupt.
pub fn check() -> Result<(), Interrupted> {
    if requested() {
        Err(Interrupted)
    } else {
        Ok(())
    }
}

/// Returns the exit code after an interrupt, as in shells: 128 plus the number of the signal; 130
/// after Ctrl-C.
pub fn exit_code() -> u8 {
    (128 + SIGNAL.load(Relaxed)).try_into().unwrap_or(u8::MAX)
}

fn is_overdue() -> bool {
    let deadline = lock(&DEADLINE);
    deadline
        .since
        .is_some_and(|since| since.elapsed() >= deadline.patience)
}

/// Ends the process without waiting for anything: no thread, no destructor.
fn end_by_force() -> ! {
    files::remove_unfinished();
    // On a thread of its own, since standard error may be a pipe that nobody reads.
    let printing = std::thread::Builder::new().spawn(|| terminal::print_error(&Interrupted.into()));
    let since = Instant::now();
    while printing
        .as_ref()
        .is_ok_and(|printing| !printing.is_finished())
        && since.elapsed() < WATCH_INTERVAL
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    signals::exit(exit_code().into())
}

/// Next signal, within a time or at all.
type NextSignal<'a> = &'a mut dyn FnMut(Option<Duration>) -> Option<i32>;

#[cfg(unix)]
mod signals {
    use std::io;
    use std::time::{Duration, Instant};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use super::NextSignal;

    /// Interval at which a signal is looked for.
    const POLL: Duration = Duration::from_millis(5);

    /// Runs `handler` on a thread of its own with all signals that are not ignored.
    pub fn handle(handler: impl FnOnce(NextSignal<'_>) + Send + 'static) -> io::Result<()> {
        let mut signals = Signals::new(
            [SIGINT, SIGTERM, SIGHUP]
                .into_iter()
                .filter(|signal| !is_ignored(*signal)),
        )?;
        let mut next = move |within: Option<Duration>| match within {
            None => signals.forever().next(),
            Some(within) => {
                let since = Instant::now();
                loop {
                    let found = signals.pending().next();
                    if found.is_some() || since.elapsed() >= within {
                        return found;
                    }
                    std::thread::sleep(POLL);
                }
            }
        };
        std::thread::Builder::new()
            .name("ondes-signals".into())
            .spawn(move || handler(&mut next))?;
        Ok(())
    }

    #[allow(unsafe_code)]
    fn is_ignored(signal: i32) -> bool {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: without a new action `sigaction` only writes the present one, and all zeros are a
        // valid one.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
                && action.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }

    /// Ends the process at once.
    pub fn exit(code: i32) -> ! {
        signal_hook::low_level::exit(code)
    }
}

#[cfg(not(unix))]
mod signals {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{INTERRUPT, NextSignal};

    /// Runs `handler` on a thread of its own with each Ctrl-C.
    pub fn handle(
        handler: impl FnOnce(NextSignal<'_>) + Send + 'static,
    ) -> Result<(), ctrlc::Error> {
        let (sender, receiver) = mpsc::channel();
        ctrlc::try_set_handler(move || drop(sender.send(INTERRUPT)))?;
        let mut next = move |within: Option<Duration>| match within {
            None => receiver.recv().ok(),
            Some(within) => receiver.recv_timeout(within).ok(),
        };
        std::thread::spawn(move || handler(&mut next));
        Ok(())
    }

    /// Ends the process at once.
    pub fn exit(code: i32) -> ! {
        std::process::exit(code)
    }
}
