//! The user's answers to the question whether a TorchScript program may run, remembered on this
//! machine by content hash.
//!
//! A program is code of other people, so a project, preset, session or set list that names one is
//! no consent: the user is asked once per file. Answers are never saved in projects, which come
//! from other people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use ondes_engine::files;
use ondes_engine::sync::lock;
use serde::{Deserialize, Serialize};

/// Largest file of answers, bytes: more than ten thousand of them.
const LARGEST: u64 = 4 << 20;

/// A TorchScript program that the user has not allowed to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedProgram {
    /// Path of the file.
    pub path: PathBuf,
    /// Hash of its content, as in [`FileReference::hash`](crate::library::FileReference::hash).
    pub hash: String,
}

impl fmt::Display for UntrustedProgram {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{}: a TorchScript program, which you have not allowed to run",
            self.path.display()
        )
    }
}

/// An answer of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// True if the program may run.
    pub run: bool,
    /// Path of the file when the user was asked, for lists.
    pub path: PathBuf,
}

/// Answers by the content hash of the program, hexadecimal.
pub type Answers = BTreeMap<String, Answer>;

/// File of the answers, and a lock for changing it.
static FILE: LazyLock<Mutex<Option<PathBuf>>> = LazyLock::new(|| {
    Mutex::new(dirs::config_dir().map(|settings| settings.join("ondes").join("trusted.json")))
});

/// Hashes of programs that may run until this process ends.
static THIS_PROCESS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps the answers in another file than `ondes/trusted.json` in the user's configuration folder,
/// for this process.
pub fn set_file(path: PathBuf) {
    *lock(&FILE) = Some(path);
}

/// Returns whether a program may run.
#[must_use]
pub fn may_run(hash: &str) -> bool {
    lock(&THIS_PROCESS).contains(hash) || answer(hash) == Some(true)
}

/// Returns the remembered answer; `None` if the user has not been asked.
#[must_use]
pub fn answer(hash: &str) -> Option<bool> {
    answers().get(hash).map(|answer| answer.run)
}

/// Returns all remembered answers; none if their file is missing or damaged.
#[must_use]
pub fn answers() -> Answers {
    lock(&FILE).as_deref().map(read).unwrap_or_default()
}

/// Lets a program run until this process ends.
pub fn allow_for_this_process(hash: &str) {
    lock(&THIS_PROCESS).insert(hash.to_owned());
}

/// Remembers the user's answer.
///
/// # Errors
/// Returns an error if the answer cannot be written; it holds for this process nevertheless.
pub fn remember(program: &UntrustedProgram, run: bool) -> std::io::Result<()> {
    let UntrustedProgram { path, hash } = program.clone();
    if run {
        allow_for_this_process(&hash);
    }
    change(|answers| drop(answers.insert(hash, Answer { run, path })))
}

/// Forgets the answer for a program, so that the user is asked again.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn forget(hash: &str) -> std::io::Result<()> {
    lock(&THIS_PROCESS).remove(hash);
    change(|answers| drop(answers.remove(hash)))
}

fn change(change: impl FnOnce(&mut Answers)) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Document {
        programs: Answers,
    }
    let file = lock(&FILE);
    let path = file
        .as_deref()
        .ok_or_else(|| std::io::Error::other("there is no folder for settings"))?;
    let mut programs = read(path);
    change(&mut programs);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    files::write(path, &serde_json::to_vec_pretty(&Document { programs })?)
}

/// Reads the answers that are whole.
fn read(path: &Path) -> Answers {
    #[derive(Default, Deserialize)]
    struct Document {
        programs: BTreeMap<String, serde_json::Value>,
    }
    let document: Option<Document> = files::read(path, LARGEST)
        .ok()
        .and_then(|bytes| serde_json::from_slice(files::without_mark(&bytes)).ok());
    let programs = document.unwrap_or_default().programs.into_iter();
    programs
        .filter_map(|(hash, answer)| Some((hash, serde_json::from_value(answer).ok()?)))
        .collect()
}

/// Keeps the answers of this test process in a file of its own.
#[cfg(test)]
pub(crate) fn use_test_file() {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        set_file(folder.path().join("ondes").join("trusted.json"));
        folder
    });
    LazyLock::force(&FOLDER);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(hash: char) -> UntrustedProgram {
        UntrustedProgram {
            path: "/models/birds.ts".into(),
            hash: hash.to_string().repeat(64),
        }
    }

    #[test]
    fn answers_are_remembered_by_hash_until_they_are_forgotten() {
        use_test_file();
        let [yes, no, never] = ['a', 'b', 'c'].map(program);
        assert_eq!(answer(&yes.hash), None);
        remember(&yes, true).unwrap();
        remember(&no, false).unwrap();
        let answers_of = |one: &UntrustedProgram| (answer(&one.hash), may_run(&one.hash));
        assert_eq!(
            [&yes, &no, &never].map(answers_of),
            [(Some(true), true), (Some(false), false), (None, false)]
        );
        assert_eq!(answers()[&yes.hash].path, yes.path);
        forget(&yes.hash).unwrap();
        assert_eq!(
            [&yes, &no].map(answers_of),
            [(None, false), (Some(false), false)]
        );
        allow_for_this_process(&never.hash);
        assert_eq!(answers_of(&never), (None, true), "nothing is remembered");
    }

    #[test]
    fn a_damaged_file_allows_nothing_and_what_is_whole_in_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted.json");
        for text in [
            "",
            "{",
            "[]",
            r#"{ "programs": [1] }"#,
            r#"{ "programs": { "a": true, "b": { "run": "yes" } } }"#,
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path), Answers::new(), "{text}");
        }
        std::fs::write(
            &path,
            r#"{ "programs": { "a": 1, "b": { "run": true, "path": "x.ts", "later": 1 } } }"#,
        )
        .unwrap();
        assert_eq!(
            read(&path),
            Answers::from([(
                "b".into(),
                Answer {
                    run: true,
                    path: "x.ts".into()
                }
            )])
        );
    }
}
