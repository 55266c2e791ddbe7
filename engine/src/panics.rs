//! Contains panics: the task that panics ends with a reason in one line, and its thread goes on.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::Path;
use std::sync::Once;

use crate::realtime::audio_callback;

/// Longest part of a message that is reported, in characters.
const MAX_CHARS: usize = 200;

thread_local! {
    /// Number of calls of [`contain`] that this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Last message that the hook has seen in one of them, and its place in the source.
    static SEEN: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Runs a task. If it panics the reason is returned, and the caller drops what the task may have
/// left half done. Allocates nothing unless the task panics, so an audio callback may run in it.
///
/// # Errors
/// Returns the first line of the panic's message, shortened if it is long; with its place in the
/// source if [`install_hook`] was called.
///
/// # Examples
/// ```
/// use ondes_engine::panics::contain;
///
/// let words = ["one"];
/// assert_eq!(contain(|| words[0]), Ok("one"));
/// let reason = contain(|| words[words.len()]).unwrap_err();
/// assert!(reason.starts_with("index out of bounds"));
/// ```
pub fn contain<R>(task: impl FnOnce() -> R) -> Result<R, String> {
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(task));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|payload| {
        let message = message(&*payload);
        // A panic that was passed on, such as the error of a TorchScript program, has not passed
        // the hook; what that has seen was caught elsewhere.
        match SEEN.take() {
            Some((seen, place)) if seen == message => format!("{message} ({place})"),
            _ => message,
        }
    })
}

/// Returns the message of a panic: its first line, shortened if it is long.
#[must_use]
pub fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("panic without a message");
    let short: String = line.chars().take(MAX_CHARS).collect();
    if short.len() < line.len() {
        short + "…"
    } else {
        short
    }
}

/// Makes panics that [`contain`] catches, and all on audio threads, silent: their reasons are
/// reported instead. Other panics are printed as before. With the variable `RUST_BACKTRACE`, all
/// but those on audio threads are printed.
///
/// For programs and plugins, at their start; further calls do nothing.
pub fn install_hook() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let prints_all = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_contained = DEPTH.get() > 0;
            if is_contained {
                SEEN.set(Some((message(info.payload()), place(info))));
            }
            if !audio_callback::is_inside() && (prints_all || !is_contained) {
                print(info);
            }
        }));
    });
}

/// Returns the file and the line of a panic.
fn place(info: &PanicHookInfo<'_>) -> String {
    let location = info
        .location()
        .map(|location| (Path::new(location.file()).file_name(), location.line()));
    location.map_or_else(String::new, |(file, line)| {
        format!("{}:{line}", file.unwrap_or_default().display())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[test]
    fn reasons_are_one_short_line() {
        let reason = |text: &str| {
            contain(|| -> () { resume_unwind(Box::new(text.to_owned())) }).unwrap_err()
        };
        assert_eq!(
            reason("\n RuntimeError: shape\nTraceback"),
            "RuntimeError: shape"
        );
        assert_eq!(
            reason(&"é".repeat(1_000)),
            format!("{}…", "é".repeat(MAX_CHARS))
        );
        assert_eq!(reason(" "), "panic without a message");
        assert_eq!(
            contain(|| -> () { resume_unwind(Box::new(7)) }),
            Err("panic without a message".into())
        );
    }

    #[test]
    fn the_hook_adds_the_place_of_each_panic() {
        install_hook();
        for number in 0..3 {
            let reason = contain(|| -> () { panic!("number {number}") }).unwrap_err();
            assert!(
                reason.starts_with(&format!("number {number} (panics.rs:")),
                "{reason}"
            );
            // The place of an inner panic is not taken for that of the outer one.
            let outer = contain(|| -> () {
                drop(catch_unwind(|| panic!("inner")));
                resume_unwind(Box::new("outer"))
            });
            assert_eq!(outer, Err("outer".into()));
        }
    }
}
