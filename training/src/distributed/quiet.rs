//! Silence of all processes but the first.

use std::fs::File;

/// Standard error of a process that is otherwise silent.
pub struct SavedStderr(Option<File>);

/// Redirects standard output and error of this process to nothing; returns the saved standard
/// error.
#[must_use]
pub fn silence() -> SavedStderr {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let saved = std::io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .ok()
            .map(File::from);
        if let Ok(null) = File::options().write(true).open("/dev/null") {
            for target in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
                use std::os::fd::AsRawFd;
                // SAFETY: both descriptors are open; the standard library does not own the replaced
                // one.
                #[expect(unsafe_code)]
                unsafe {
                    libc::dup2(null.as_raw_fd(), target);
                }
            }
        }
        SavedStderr(saved)
    }
    #[cfg(not(unix))]
    SavedStderr(None)
}

impl SavedStderr {
    /// Writes a line.
    pub fn print(&mut self, line: &str) {
        use std::io::Write;
        match &mut self.0 {
            Some(file) => drop(writeln!(file, "{line}")),
            None => eprintln!("{line}"),
        }
    }
}
