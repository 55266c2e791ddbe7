//! Interrupted batches.

use std::process::{Child, Output, Stdio};

use crate::common::{Folder, json_lines, tone, write_wav};

const FILES: usize = 5;
const BATCH: [&str; 8] = ["render", "small.ondes", "--input", "takes", "--jobs", "2", "--out", "out"];

/// Creates a folder with recordings long enough to be interrupted.
fn with_long_takes() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("takes")).expect("a folder is made");
    for index in 0..FILES {
        let take = tone(200.0 + 20.0 * index as f64, 30.0, 48_000);
        write_wav(&folder.path(&format!("takes/{index}.wav")), 48_000, 1, take);
    }
    folder
}

/// Returns the names of finished and of unfinished files.
fn results(folder: &Folder) -> (Vec<String>, Vec<String>) {
    if !folder.path("out").exists() {
        return Default::default();
    }
    folder.files_in("out").into_iter().partition(|name| !name.starts_with('.'))
}

/// Waits until at least one file is finished and another one is not.
fn wait_for_the_middle(folder: &Folder, child: &mut Child) {
    loop {
        let (finished, unfinished) = results(folder);
        if !finished.is_empty() && !unfinished.is_empty() {
            break;
        }
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it could be stopped");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_killed_batch_continues_to_the_same_result() {
    let folder = with_long_takes();
    let mut child = folder.command(&BATCH).stdout(Stdio::null()).spawn().expect("the program starts");
    wait_for_the_middle(&folder, &mut child);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    let (finished, unfinished) = results(&folder);
    assert!(finished.len() < FILES && !unfinished.is_empty(), "{finished:?}, {unfinished:?}");

    let (lines, summary) = folder.batch(&BATCH);
    assert_eq!((lines.len(), summary["skipped"].as_u64()), (FILES, Some(finished.len() as u64)));
    assert_eq!(summary["rendered"], FILES - finished.len());
    let (whole, left) = results(&folder);
    assert_eq!((whole.len(), left.len()), (FILES, 0), "{left:?}");
    folder.batch(&[&BATCH[..7], &["uninterrupted"]].concat());
    for name in whole {
        let read = |folder_name: &str| std::fs::read(folder.path(folder_name).join(&name)).expect("there is a file");
        assert!(read("out") == read("uninterrupted"), "{name}");
    }
}

/// Later outputs are newer than the new model, although they were rendered with the old one.
#[test]
fn a_changed_model_outdates_all_outputs() {
    let folder = with_long_takes();
    let mut child = folder.command(&BATCH).stdout(Stdio::null()).spawn().expect("the program starts");
    wait_for_the_middle(&folder, &mut child);
    let model = std::fs::read(folder.path("small.ondes")).expect("there is a model");
    std::fs::write(folder.path("small.ondes"), model).expect("the model is written");
    assert!(child.wait().expect("it ends").success());
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!((&summary["rendered"], &summary["skipped"]), (&FILES.into(), &0.into()));
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!(summary["skipped"], FILES);
}

#[test]
fn a_closed_pipe_ends_a_batch() {
    let folder = with_long_takes();
    let mut child =
        folder.command(&BATCH).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), "".into()));
    let (finished, unfinished) = results(&folder);
    assert!((1..FILES).contains(&finished.len()) && unfinished.is_empty(), "{finished:?}, {unfinished:?}");
}

/// Interrupts the program like Ctrl-C when `ready` returns true, and returns its output.
#[cfg(target_os = "linux")]
fn interrupt(folder: &Folder, arguments: &[&str], ready: impl FnOnce(&mut Child)) -> Output {
    // The tests may run with signals ignored.
    let mut child = std::process::Command::new("env")
        .args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_ondes")])
        .args(arguments)
        .current_dir(folder.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    ready(&mut child);
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-INT", &child.id().to_string()]).status().expect("it is sent").success());
    child.wait_with_output().expect("it ends")
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_batch_leaves_only_complete_files() {
    let folder = with_long_takes();
    let output = interrupt(&folder, &[&BATCH[..], &["--json"]].concat(), |child| wait_for_the_middle(&folder, child));
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "ondes: interrupted\n");
    let (lines, summary) = json_lines(&output.stdout);
    let (finished, unfinished) = results(&folder);
    assert_eq!((lines.len(), unfinished.len()), (finished.len(), 0), "{unfinished:?}");
    assert_eq!((&summary["interrupted"], &summary["failed"]), (&true.into(), &0.into()));
    assert!(finished.len() < FILES);
    let (_, summary) = folder.batch(&BATCH);
    assert_eq!((&summary["skipped"], &summary["interrupted"]), (&finished.len().into(), &false.into()));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_render_leaves_nothing() {
    let folder = with_long_takes();
    let render = ["render", "small.ondes", "--input", "takes/0.wav", "--out", "x.wav"];
    let before = folder.files();
    let output = interrupt(&folder, &render, |child| {
        while folder.files() == before {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it could be stopped");
        }
    });
    assert_eq!(output.status.code(), Some(130));
    assert_eq!((output.stdout.len(), String::from_utf8_lossy(&output.stderr)), (0, "ondes: interrupted\n".into()));
    assert_eq!(folder.files(), before);
}
