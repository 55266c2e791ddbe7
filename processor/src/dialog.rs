//! The system's own dialog for files, on a thread of its own: whoever draws goes on drawing.
//!
//! On Linux that is the desktop's portal, or zenity where there is none.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// A dialog that is gone so soon was never there: nobody is as quick.
const AT_ONCE: Duration = Duration::from_millis(200);

/// What is said where there is no dialog to be had.
pub const UNAVAILABLE: &str =
    "This system has no dialog for files: neither a desktop's portal nor zenity. A path can be typed instead.";

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What the dialog says.
    pub title: &'static str,
    /// What is wanted.
    pub wanted: Wanted,
    /// Kinds of files to choose from, each with its name and endings; the first is shown. Any file where there are none.
    pub kinds: Vec<(&'static str, Vec<&'static str>)>,
    /// Where to begin.
    pub folder: Option<PathBuf>,
}

/// What is wanted of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// A file that is there.
    #[default]
    File,
    /// A folder that is there.
    Folder,
    /// A place for a file, with the name that is proposed.
    Place(String),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The user has not decided.
    Open,
    /// This was chosen.
    Chosen(PathBuf),
    /// The user does not want to, after all.
    Cancelled,
    /// There is no dialog to be had.
    Unavailable,
}

/// A dialog that is open, or was.
pub struct Dialog {
    since: Instant,
    answer: Receiver<Option<PathBuf>>,
}

impl Dialog {
    /// Opens one; `wake` is called when there is an answer.
    pub fn open(request: Request, wake: impl FnOnce() + Send + 'static) -> Self {
        Self::of(move || ask(request), wake)
    }

    /// A dialog that `ask` holds.
    pub(crate) fn of(
        ask: impl FnOnce() -> Option<PathBuf> + Send + 'static,
        wake: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (tell, answer) = channel();
        // Nobody waits for it: a dialog may stay open for as long as its user likes, also when the window is gone.
        std::thread::spawn(move || {
            drop(tell.send(ask()));
            wake();
        });
        Self { since: Instant::now(), answer }
    }

    /// What has come of it; to be asked until it is no more [`Answer::Open`].
    pub fn poll(&self) -> Answer {
        match self.answer.try_recv() {
            Ok(Some(path)) => Answer::Chosen(path),
            Err(TryRecvError::Empty) => Answer::Open,
            Ok(None) | Err(TryRecvError::Disconnected) if self.since.elapsed() < AT_ONCE => Answer::Unavailable,
            Ok(None) | Err(TryRecvError::Disconnected) => Answer::Cancelled,
        }
    }
}

/// Whether there may be dialogs here at all.
#[must_use]
pub fn is_available() -> bool {
    // On macOS only the main thread may open one, which belongs to the host.
    if cfg!(not(target_os = "linux")) {
        return cfg!(target_os = "windows");
    }
    let bus = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
    let paths = std::env::var_os("PATH").unwrap_or_default();
    bus || std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some()
        || std::env::split_paths(&paths).any(|folder| folder.join("zenity").is_file())
}

fn ask(request: Request) -> Option<PathBuf> {
    let mut dialog = rfd::FileDialog::new().set_title(request.title);
    for (name, endings) in &request.kinds {
        dialog = dialog.add_filter(*name, endings);
    }
    if let Some(folder) = request.folder.filter(|folder| folder.is_dir()) {
        dialog = dialog.set_directory(folder);
    }
    match request.wanted {
        Wanted::File => dialog.pick_file(),
        Wanted::Folder => dialog.pick_folder(),
        Wanted::Place(name) => dialog.set_file_name(name).save_file(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn settle(dialog: &Dialog) -> Answer {
        loop {
            match dialog.poll() {
                Answer::Open => std::thread::sleep(Duration::from_millis(1)),
                answer => return answer,
            }
        }
    }

    #[test]
    fn an_answer_is_waited_for_by_nobody() {
        let (decide, decided) = channel();
        let (tell, woken) = channel();
        let dialog = Dialog::of(move || decided.recv().ok(), move || tell.send(()).unwrap());
        assert_eq!(dialog.poll(), Answer::Open);
        decide.send("/models/bell.ondes".into()).unwrap();
        woken.recv().unwrap();
        assert_eq!(dialog.poll(), Answer::Chosen("/models/bell.ondes".into()));

        let later = || {
            std::thread::sleep(2 * AT_ONCE);
            None
        };
        assert_eq!(settle(&Dialog::of(later, || ())), Answer::Cancelled);
    }

    /// What `zenity` is asked, and answers, in a process of its own where it is the only dialog.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_systems_dialog_is_asked() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let zenity = folder.path().join("zenity");
        let script = format!("#!/bin/sh\necho \"$@\" > {0}/asked\necho /models/bell.ondes\n", folder.path().display());
        std::fs::write(&zenity, script).unwrap();
        std::fs::set_permissions(&zenity, std::fs::Permissions::from_mode(0o755)).unwrap();
        let child = |path: &std::ffi::OsStr, expected: &str| {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["dialog::tests::one_that_asks", "--exact", "--ignored"])
                .env("PATH", path)
                .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
                .env_remove("XDG_RUNTIME_DIR")
                .env("ONDES_TEST_ANSWER", expected)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        };
        let paths = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        child(&paths, "Chosen(\"/models/bell.ondes\")");
        let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
        assert!(asked.contains("--file-selection") && asked.contains("*.ondes"), "{asked}");
        child(std::ffi::OsStr::new("/nowhere"), "Unavailable");
    }

    #[test]
    #[ignore = "runs in a process of its own, for the_systems_dialog_is_asked"]
    fn one_that_asks() {
        let kinds = vec![("Models", vec!["ondes"])];
        let request = Request { title: "Open a model", kinds, ..Request::default() };
        let answer = settle(&Dialog::open(request, || ()));
        assert_eq!(format!("{answer:?}"), std::env::var("ONDES_TEST_ANSWER").unwrap());
        assert!(is_available());
    }
}
