//! Programs that sessions name run only with consent, and files beside a session move with it.

use std::process::{Command, Output};

use ondes_engine::model::file;
use ondes_player::library::{self, FileReference};
use ondes_tests::torchscript::models::attributes;
use serde_json::{Value, json};

use crate::common::{Folder, assert_refused, library, two_tracks, write_wav};

/// Returns a folder with `songs/birds.ts` and a session beside it that knows the program's hash.
fn with_program() -> (Folder, String) {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("songs")).expect("a folder");
    std::fs::write(folder.path("songs/birds.ts"), attributes().bytes())
        .expect("the file is written");
    write_wav(
        &folder.path("songs/in.wav"),
        44_100,
        1,
        std::iter::repeat_n(0.1, 4_410),
    );
    let hash = library::program(&folder.path("songs/birds.ts"))
        .expect("a program")
        .hash;
    let model = json!({ "hash": hash, "name": "Birds", "path": "birds.ts" });
    let input = json!({ "file": { "path": "in.wav" } });
    let track =
        json!({ "product": "org.ondes.effect", "selection": { "model": model }, "input": input });
    write(
        &folder,
        &json!({ "format": "ondes-session", "version": 1, "tracks": [track] }),
    );
    (folder, hash)
}

fn write(folder: &Folder, session: &Value) {
    std::fs::write(folder.path("songs/a.ondes-session"), session.to_string())
        .expect("the file is written");
}

/// Runs the program with a configuration folder of its own, and the torch library or without one.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.command(arguments);
    command.env("XDG_CONFIG_HOME", folder.path("config"));
    command.env(
        "ONDES_TORCH_LIBRARY",
        library().unwrap_or_else(|| "/nowhere/libondes_torch.so".into()),
    );
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    command(folder, arguments)
        .output()
        .expect("the program starts")
}

/// Asserts that the program was opened: it plays, or needs the library that is not there.
fn assert_opened(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    let needs_library = errors.contains("birds.ts: ") && errors.contains("libtorch");
    assert!(
        if library().is_some() {
            output.status.success()
        } else {
            needs_library
        },
        "{errors}"
    );
}

const RENDER: [&str; 4] = ["render", "songs/a.ondes-session", "--out", "out.wav"];

#[test]
fn a_session_that_names_a_program_needs_consent() {
    let (folder, _) = with_program();
    let words = [
        "songs/a.ondes-session: ",
        "songs/birds.ts: a TorchScript program",
        "--trust",
    ];
    assert_refused(&run(&folder, &RENDER), &words);
    assert_refused(&run(&folder, &["play", "songs/a.ondes-session"]), &words);
    assert!(!folder.path("out.wav").exists());
    assert_opened(&run(&folder, &[&RENDER[..], &["--trust"]].concat()));
    // For this time only.
    assert_refused(&run(&folder, &RENDER), &words);
    // A file that the command names is consent to it, but not for sessions.
    let direct = [
        "render",
        "songs/birds.ts",
        "--input",
        "songs/in.wav",
        "--out",
        "direct.wav",
        "--device",
        "cpu",
    ];
    assert_opened(&run(&folder, &direct));
    assert_refused(&run(&folder, &RENDER), &words);
}

#[test]
fn the_slot_that_is_not_heard_needs_no_consent() {
    let (folder, hash) = with_program();
    let path = folder.path("small.ondes");
    let model = FileReference::to(&file::read(&path).expect("a model"), Some(path));
    let other =
        json!({ "selection": { "model": { "hash": hash, "name": "Birds", "path": "birds.ts" } } });
    let selection = json!({ "model": model, "compare": { "other": other } });
    let track = json!({ "product": "org.ondes.instrument", "selection": selection });
    write(
        &folder,
        &json!({ "format": "ondes-session", "version": 1, "tracks": [track] }),
    );
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    let output = run(&folder, &[&RENDER[..], &["--midi", "song.mid"]].concat());
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("birds"));
}

// Elsewhere the configuration folder is not chosen by a variable.
#[cfg(target_os = "linux")]
#[test]
fn answers_are_listed_added_and_removed() {
    let (folder, hash) = with_program();
    let list = || String::from_utf8(run(&folder, &["trust", "list"]).stdout).expect("text");
    assert_eq!(list(), "");
    assert!(
        run(&folder, &["trust", "add", "songs/birds.ts"])
            .status
            .success()
    );
    let path = folder
        .path("songs/birds.ts")
        .canonicalize()
        .expect("it is there");
    let line = format!("allowed {hash} {}\n", path.display());
    assert_eq!(list(), line);
    assert_opened(&run(&folder, &RENDER));
    for named in ["songs/birds.ts", &hash] {
        assert!(
            run(&folder, &["trust", "add", "songs/birds.ts"])
                .status
                .success()
        );
        assert!(run(&folder, &["trust", "remove", named]).status.success());
        assert_eq!(list(), "");
        assert_refused(&run(&folder, &RENDER), &["--trust"]);
        assert_refused(
            &run(&folder, &["trust", "remove", named]),
            &["no answer is remembered"],
        );
    }
    assert_refused(
        &run(&folder, &["trust", "add", "small.ondes"]),
        &["small.ondes: not a TorchScript program"],
    );
    assert_refused(&run(&folder, &["trust", "add", "none.ts"]), &["none.ts: "]);
}

#[test]
fn files_beside_a_session_move_with_it() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("songs")).expect("a folder");
    std::fs::rename(folder.path("small.ondes"), folder.path("songs/small.ondes"))
        .expect("it is moved");
    write_wav(
        &folder.path("songs/in.wav"),
        48_000,
        1,
        (0..4_800).map(|n| 0.1 * (n as f32 * 0.03).sin()),
    );
    let model = FileReference::to(
        &file::read(&folder.path("songs/small.ondes")).expect("a model"),
        None,
    );
    let model = json!({ "hash": model.hash, "name": "Small", "path": "small.ondes" });
    let input = json!({ "file": { "path": "in.wav" } });
    let track =
        json!({ "product": "org.ondes.effect", "selection": { "model": model }, "input": input });
    write(
        &folder,
        &json!({ "format": "ondes-session", "version": 1, "tracks": [track], "set_list": [model] }),
    );
    let rendered = |arguments: &[&str]| {
        let output = run(&folder, arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    rendered(&RENDER);
    std::fs::rename(folder.path("songs"), folder.path("moved")).expect("it is moved");
    rendered(&["render", "moved/a.ondes-session", "--out", "moved.wav"]);
    let read = |name: &str| std::fs::read(folder.path(name)).expect("it was written");
    assert!(read("out.wav") == read("moved.wav"));
}
