//! The system's file dialog, on a thread of its own.
//!
//! On Linux this is the desktop portal, or zenity if there is none.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// A dialog that closes within this time has not opened: no user is as quick.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Message if there is no dialog.
pub const UNAVAILABLE: &str =
    "No file dialog is available: install a desktop portal or zenity, or type a path.";

/// Request for a dialog.
#[derive(Clone, Debug, Default)]
pub struct DialogRequest {
    /// Title.
    pub title: &'static str,
    /// Kind of dialog.
    pub kind: DialogKind,
    /// File types with their extensions, the first one selected; any file if empty.
    pub file_types: Vec<(&'static str, Vec<&'static str>)>,
    /// Initial folder.
    pub folder: Option<PathBuf>,
}

/// Kind of a dialog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DialogKind {
    /// Open a file.
    #[default]
    OpenFile,
    /// Open a folder.
    OpenFolder,
    /// Save a file; with the proposed name.
    SaveFile(String),
}

/// Answer of a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogAnswer {
    /// The dialog is open.
    Pending,
    /// The user chose this path.
    Chosen(PathBuf),
    /// The user cancelled.
    Cancelled,
    /// No dialog is available.
    Unavailable,
}

/// A dialog that was opened.
pub struct FileDialog {
    since: Instant,
    answer: Receiver<Option<PathBuf>>,
}

impl FileDialog {
    /// Opens a dialog; `wake` is called when there is an answer.
    pub fn open(request: DialogRequest, wake: impl FnOnce() + Send + 'static) -> Self {
        Self::new(move || ask(request), wake)
    }

    /// Opens a dialog that `ask` runs.
    pub(crate) fn new(
        ask: impl FnOnce() -> Option<PathBuf> + Send + 'static,
        wake: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (sender, answer) = channel();
        // The thread is detached: the user may leave a dialog open after the window has closed.
        std::thread::spawn(move || {
            drop(sender.send(ask()));
            wake();
        });
        Self {
            since: Instant::now(),
            answer,
        }
    }

    /// Returns the answer; to be polled until it is no longer [`DialogAnswer::Pending`].
    pub fn poll(&self) -> DialogAnswer {
        match self.answer.try_recv() {
            Ok(Some(path)) => DialogAnswer::Chosen(path),
            Err(TryRecvError::Empty) => DialogAnswer::Pending,
            Ok(None) | Err(TryRecvError::Disconnected) if self.since.elapsed() < AT_ONCE => {
                DialogAnswer::Unavailable
            }
            Ok(None) | Err(TryRecvError::Disconnected) => DialogAnswer::Cancelled,
        }
    }
}

/// Returns whether dialogs may be available.
#[must_use]
pub fn is_available() -> bool {
    // On macOS only the main thread may open a dialog, and it belongs to the host.
    if cfg!(not(target_os = "linux")) {
        return cfg!(target_os = "windows");
    }
    let bus = std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| Path::new(&folder).join("bus").exists());
    let paths = std::env::var_os("PATH").unwrap_or_default();
    bus || std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some()
        || std::env::split_paths(&paths).any(|folder| folder.join("zenity").is_file())
}

fn ask(request: DialogRequest) -> Option<PathBuf> {
    let mut dialog = rfd::FileDialog::new().set_title(request.title);
    for (name, endings) in &request.file_types {
        dialog = dialog.add_filter(*name, endings);
    }
    if let Some(folder) = request.folder.filter(|folder| folder.is_dir()) {
        dialog = dialog.set_directory(folder);
    }
    match request.kind {
        DialogKind::OpenFile => dialog.pick_file(),
        DialogKind::OpenFolder => dialog.pick_folder(),
        DialogKind::SaveFile(name) => dialog.set_file_name(name).save_file(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn settle(dialog: &FileDialog) -> DialogAnswer {
        loop {
            match dialog.poll() {
                DialogAnswer::Pending => std::thread::sleep(Duration::from_millis(1)),
                answer => return answer,
            }
        }
    }

    #[test]
    fn the_answer_is_polled() {
        let (decide, decided) = channel();
        let (sender, woken) = channel();
        let dialog = FileDialog::new(
            move || decided.recv().ok(),
            move || sender.send(()).unwrap(),
        );
        assert_eq!(dialog.poll(), DialogAnswer::Pending);
        decide.send("/models/bell.ondes".into()).unwrap();
        woken.recv().unwrap();
        assert_eq!(
            dialog.poll(),
            DialogAnswer::Chosen("/models/bell.ondes".into())
        );

        let later = || {
            std::thread::sleep(2 * AT_ONCE);
            None
        };
        assert_eq!(
            settle(&FileDialog::new(later, || ())),
            DialogAnswer::Cancelled
        );
    }

    /// Tests the arguments and the answer of `zenity`, in a child process where it is the only
    /// dialog.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_dialog_is_opened() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let zenity = folder.path().join("zenity");
        let script = format!(
            "#!/bin/sh\necho \"$@\" > {0}/asked\necho /models/bell.ondes\n",
            folder.path().display()
        );
        std::fs::write(&zenity, script).unwrap();
        std::fs::set_permissions(&zenity, std::fs::Permissions::from_mode(0o755)).unwrap();
        let child = |path: &std::ffi::OsStr, expected: &str| {
            let output = Command::new(std::env::current_exe().unwrap())
                .args([
                    "file_dialog::tests::dialog_in_child_process",
                    "--exact",
                    "--ignored",
                ])
                .env("PATH", path)
                .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
                .env_remove("XDG_RUNTIME_DIR")
                .env("ONDES_TEST_ANSWER", expected)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            );
        };
        let paths = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")])
            .unwrap();
        child(&paths, "Chosen(\"/models/bell.ondes\")");
        let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
        assert!(
            asked.contains("--file-selection") && asked.contains("*.ondes"),
            "{asked}"
        );
        child(std::ffi::OsStr::new("/nowhere"), "Unavailable");
    }

    #[test]
    #[ignore = "run in a child process by the_system_dialog_is_opened"]
    fn dialog_in_child_process() {
        let file_types = vec![("Models", vec!["ondes"])];
        let request = DialogRequest {
            title: "Open a model",
            file_types,
            ..DialogRequest::default()
        };
        let answer = settle(&FileDialog::open(request, || ()));
        assert_eq!(
            format!("{answer:?}"),
            std::env::var("ONDES_TEST_ANSWER").unwrap()
        );
        assert!(is_available());
    }
}
