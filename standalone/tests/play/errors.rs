//! Errors of `ondes play`, in one line each.

use std::path::Path;

use ondes::rack::Mixer;
use ondes::rack::session_file::TrackInput;
use ondes_engine::model::file;
use ondes_player::library::FileReference;
use ondes_player::product::Product;

use crate::common::{effect, overflowing};
use crate::program::{Playing, ondes, tone};
use crate::server::{Server, alone};

/// Asserts exit code 2 and one line that starts with `start` and contains `reason`.
fn refuses(folder: &Path, arguments: &[&str], start: &str, reason: &str) {
    let output = ondes(folder, &[&["play"], arguments].concat())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.starts_with(&format!("ondes: {start}")), "{errors}");
    assert!(
        errors.contains(reason) && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn unsuitable_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("bad.ondes"), "x").unwrap();
    std::fs::write(folder.join("bad.ondes-session"), "{}").unwrap();
    let future = r#"{"format": "ondes-session", "version": 99}"#;
    std::fs::write(folder.join("future.ondes-session"), future).unwrap();
    std::fs::write(folder.join("bad.mid"), "x").unwrap();
    std::fs::write(folder.join("bad.kar"), "x").unwrap();
    std::fs::write(
        folder.join("empty.ondes-session"),
        future.replace("99", "1"),
    )
    .unwrap();
    refuses(folder, &["oboe"], "oboe: ", "bowed, plucked, wind");
    refuses(
        folder,
        &["nothing.ondes"],
        "nothing.ondes: ",
        "No such file",
    );
    refuses(folder, &["bad.ondes"], "bad.ondes: ", "");
    refuses(
        folder,
        &["nothing.ondes-session"],
        "nothing.ondes-session: ",
        "No such file",
    );
    refuses(
        folder,
        &["bad.ondes-session"],
        "bad.ondes-session: ",
        "not an Ondes session",
    );
    refuses(
        folder,
        &["future.ondes-session"],
        "future.ondes-session: ",
        "version 99",
    );
    refuses(
        folder,
        &["empty.ondes-session", "--control", "room=1"],
        "--control",
        "is for a model",
    );
    refuses(
        folder,
        &["empty.ondes-session", "--device", "cpu"],
        "--device",
        "is for a model",
    );
    refuses(
        folder,
        &["bowed", "--executor", "torch"],
        "bowed: ",
        "--executor native",
    );
    refuses(
        folder,
        &["fuzz", "--device", "cuda:0"],
        "fuzz: ",
        "--executor torch",
    );
    refuses(
        folder,
        &["fuzz", "--precision", "bf16"],
        "fuzz: ",
        "--executor torch",
    );
    refuses(
        folder,
        &["empty.ondes-session", "--precision", "f16"],
        "--precision",
        "is for a model",
    );
    refuses(folder, &["bowed", "--midi", "bad.mid"], "bad.mid: ", "");
    refuses(folder, &["bowed", "--midi", "bad.kar"], "bad.kar: ", "");
    refuses(
        folder,
        &["bowed", "--record", "take.mp3"],
        "take.mp3: ",
        ".wav or .flac",
    );
    std::os::unix::fs::symlink("/dev/full", folder.join("full.wav")).unwrap();
    refuses(
        folder,
        &["bowed", "--record", "full.wav"],
        "full.wav: ",
        "not a regular file",
    );
    refuses(
        folder,
        &["bowed", "--control", "nonsense=1"],
        "--control nonsense=1: ",
        "room",
    );
    refuses(
        folder,
        &["bowed", "--control", "gate=loud"],
        "--control gate=loud: ",
        "not a value",
    );
    refuses(
        folder,
        &["bowed", "--cabinet", "box.wav"],
        "",
        "box.wav: no such file",
    );
    refuses(
        folder,
        &["bowed", "--input", "singing.wav"],
        "singing.wav: ",
        "No such file",
    );
    refuses(
        folder,
        &["bowed", "--host", "nothing"],
        "unknown sound system \"nothing\"",
        "JACK",
    );
}

#[test]
fn unusable_devices_are_reported() {
    alone("errors::unusable_devices_are_reported", || {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let jack = |rest: &[&'static str]| [&["bowed", "--host", "jack"], rest].concat();
        refuses(folder, &jack(&[]), "no JACK server is running", "");
        let _server = Server::start();
        refuses(
            folder,
            &jack(&["--output", "nothing"]),
            "\"nothing\" is not among the outputs of JACK",
            "system",
        );
        refuses(
            folder,
            &jack(&["--sample-rate", "44100"]),
            "the JACK server runs at 48000 Hz",
            "44100",
        );
        std::fs::write(folder.join("file"), "").unwrap();
        refuses(
            folder,
            &jack(&["--record", "nowhere/take.wav"]),
            "nowhere/take.wav: ",
            "No such file",
        );
        refuses(
            folder,
            &jack(&["--record", "file/take.wav"]),
            "file/take.wav: ",
            "Not a directory",
        );
        std::fs::write(folder.join("noise.wav"), "x").unwrap();
        refuses(folder, &jack(&["--input", "noise.wav"]), "noise.wav: ", "");
    });
}

#[test]
fn invalid_output_and_missing_files_are_reported_while_playing() {
    alone(
        "errors::invalid_output_and_missing_files_are_reported_while_playing",
        || {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            tone(folder, 0.2, 1.0);
            let model = overflowing(&effect());
            file::write(&model, &folder.join("loud.ondes")).unwrap();
            let _server = Server::start();
            let told = Playing::start(
                folder,
                &[
                    "loud.ondes",
                    "--input",
                    "tone.wav",
                    "--loop",
                    "--seconds",
                    "3",
                ],
            )
            .end_well();
            assert!(
                told.contains("the model computes invalid numbers"),
                "{told}"
            );

            let mut mixer = Mixer::new(|| {});
            mixer.add(Product::Instrument).unwrap();
            let mut session = mixer.saved();
            let cabinet = FileReference {
                name: "Box".into(),
                hash: "0".repeat(64),
                ..FileReference::default()
            };
            session.tracks[0].selection.cabinet = Some(cabinet);
            session.tracks[0].input = TrackInput::File {
                path: folder.join("missing.wav"),
                looped: false,
            };
            session.write(&folder.join("a.ondes-session")).unwrap();
            let told = Playing::start(folder, &["a.ondes-session", "--seconds", "1"]).end_well();
            assert!(
                told.contains("warning: the cabinet \"Box\" is missing"),
                "{told}"
            );
            assert!(told.contains("missing.wav: no such file"), "{told}");
        },
    );
}
