//! Output on the terminal.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use anyhow::anyhow;
use ondes_engine::panics::contain;

/// Prints lines on standard output.
///
/// # Errors
/// Returns an error if standard output cannot be written; see [`is_closed_pipe`].
pub fn print(text: &str) -> anyhow::Result<()> {
    write_line(io::stdout().lock(), text)
        .map_err(|error| describe(error, |error| format!("standard output: {error}")))
}

/// Prints lines on standard error.
///
/// # Errors
/// Returns an error if standard error cannot be written.
pub fn print_to_stderr(text: &str) -> anyhow::Result<()> {
    write_line(io::stderr().lock(), text)
        .map_err(|error| describe(error, |error| format!("standard error: {error}")))
}

/// Prints a one-line warning on standard error.
pub fn warn(warning: &str) {
    print_message(format_args!("warning: {warning}"));
}

/// Prints an error on standard error, in one line.
pub fn print_error(error: &anyhow::Error) {
    print_message(format_args!("{error}"));
}

/// Runs work; a panic, which is a bug, becomes an error, so that other work goes on.
///
/// # Errors
/// Returns the error of the work, or the reason of its panic.
pub fn contain_panic<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    contain(work)
        .unwrap_or_else(|reason| Err(anyhow!("internal error: {reason}; please report this")))
}

/// Returns whether an error only means that the reader of the output has gone away.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Makes text from a file safe to print: replaces control characters by spaces, so that it is one
/// line without escape sequences.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        text.chars().map(shown).collect::<String>().into()
    } else {
        text.into()
    }
}

fn print_message(message: impl Display) {
    // Without standard error the exit code is all that is left.
    drop(writeln!(
        io::stderr().lock(),
        "ondes: {}",
        sanitize(&message.to_string())
    ));
}

fn write_line(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.write_all(b"\n")?;
    stream.flush()
}

fn describe(error: io::Error, message: impl Fn(&io::Error) -> String) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => anyhow::Error::msg(message(&error)),
    }
}
