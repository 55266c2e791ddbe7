//! What is printed, and where.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

/// Prints lines on standard output.
///
/// # Errors
/// When standard output does not take them; see [`is_closed_pipe`].
pub fn print(text: &str) -> anyhow::Result<()> {
    put(io::stdout().lock(), text).map_err(|error| named(error, |error| format!("standard output: {error}")))
}

/// Prints lines on standard error.
///
/// # Errors
/// When standard error does not take them.
pub fn print_aside(text: &str) -> anyhow::Result<()> {
    put(io::stderr().lock(), text).map_err(|error| named(error, |error| format!("standard error: {error}")))
}

/// Says in one line on standard error what a user should know but what stops nothing.
pub fn warn(warning: &str) {
    say(format_args!("warning: {warning}"));
}

/// Says in one line on standard error why there is no result.
pub fn complain(error: &anyhow::Error) {
    say(format_args!("{error}"));
}

/// Whether an error only means that the reader of our output went away.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Text from a file, made safe to print: one line, and nothing that a terminal would obey.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        text.chars().map(shown).collect::<String>().into()
    } else {
        text.into()
    }
}

fn say(message: impl Display) {
    // Without a standard error there is nobody to tell; the exit code says it.
    drop(writeln!(io::stderr().lock(), "ondes: {}", plain(&message.to_string())));
}

fn put(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.write_all(b"\n")?;
    stream.flush()
}

fn named(error: io::Error, message: impl Fn(&io::Error) -> String) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => anyhow::Error::msg(message(&error)),
    }
}
