//! Damaged, missing and unsuitable files.

use ondes_engine::model::file;

use crate::common::{Folder, effect, two_tracks, write_wav};

fn with_score() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("song.mid"), two_tracks()).expect("the file is written");
    folder
}

/// Asserts that both commands refuse a model with these bytes.
fn refuse_model(folder: &Folder, bytes: &[u8], words: &[&str]) {
    std::fs::write(folder.path("bad.ondes"), bytes).expect("the file is written");
    let words = [&["bad.ondes: "], words].concat();
    folder.refuses(&["render", "bad.ondes", "--midi", "song.mid"], &words);
    folder.refuses(&["info", "bad.ondes"], &words);
}

fn model_bytes(folder: &Folder) -> Vec<u8> {
    std::fs::read(folder.path("small.ondes")).expect("there is a model")
}

#[test]
fn truncated_models_are_refused() {
    let folder = with_score();
    let whole = model_bytes(&folder);
    refuse_model(&folder, &[], &["empty"]);
    refuse_model(
        &folder,
        &whole[..1],
        &["too short", "download or copy it again"],
    );
    for length in [8, 100, whole.len() / 2, whole.len() - 1] {
        refuse_model(
            &folder,
            &whole[..length],
            &["cut off", "download or copy it again"],
        );
    }
}

#[test]
fn unsuitable_executors_are_refused() {
    let folder = with_score();
    let render = ["render", "small.ondes", "--midi", "song.mid"];
    folder.refuses(
        &[&render[..], &["--executor", "torch"]].concat(),
        &["small.ondes: ", "--executor native"],
    );
    folder.refuses(
        &[&render[..], &["--device", "cpu"]].concat(),
        &["small.ondes: ", "--device cpu", "--executor torch"],
    );
    folder.refuses(
        &["bench", "small.ondes", "--device", "cuda:1"],
        &["small.ondes: ", "--device cuda:1"],
    );
    folder.refuses(
        &[&render[..], &["--precision", "f16"]].concat(),
        &["small.ondes: ", "--precision f16", "--executor torch"],
    );
    folder.refuses(
        &["bench", "small.ondes", "--precision", "bf16"],
        &["small.ondes: ", "--precision bf16"],
    );
}

#[test]
fn models_with_a_flipped_bit_are_refused() {
    let folder = with_score();
    let whole = model_bytes(&folder);
    for at in [3, 8, 60, 200, whole.len() / 2, whole.len() - 2] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        refuse_model(&folder, &bytes, &[]);
    }
}

#[test]
fn non_finite_weights_are_refused() {
    let folder = with_score();
    let mut bytes = model_bytes(&folder);
    for value in [f32::NAN, f32::INFINITY] {
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&value.to_le_bytes());
        refuse_model(&folder, &bytes, &["NaN or an infinity"]);
    }
}

#[test]
fn models_of_other_versions_are_refused() {
    let folder = with_score();
    let mut bytes = model_bytes(&folder);
    let version = br#"\"format\":1"#;
    let at = bytes
        .windows(version.len())
        .position(|window| window == version)
        .expect("the header has a version");
    bytes[at + version.len() - 1] = b'7';
    refuse_model(&folder, &bytes, &["format version 7 is not supported"]);
}

#[test]
fn effects_refuse_notes() {
    let folder = with_score();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    folder.refuses(
        &["render", "half.ondes", "--midi", "song.mid"],
        &["half.ondes: ", "effect", "only instruments"],
    );
}

#[test]
fn missing_files_are_reported() {
    let folder = with_score();
    folder.refuses(&["info", "none.ondes"], &["none.ondes: No such file"]);
    folder.refuses(
        &["render", "none.ondes", "--midi", "song.mid"],
        &["none.ondes: No such file"],
    );
    folder.refuses(
        &["render", "small.ondes", "--midi", "none.mid"],
        &["none.mid: No such file"],
    );
    folder.refuses(
        &["render", "small.ondes", "--input", "none.wav"],
        &["none.wav: no such file"],
    );
    folder.refuses(
        &["render", ".", "--midi", "song.mid"],
        &[".: ", "not a regular file"],
    );
    folder.refuses(&["render", "small.ondes", "--midi", "."], &[".: "]);
    folder.refuses(&["render", "small.ondes", "--input", "."], &[".: "]);
}

/// Nothing waits for a pipe or reads a device without end, whatever names it.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = with_score();
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path(name))
            .status();
        assert!(made.expect("mkfifo is there").success());
    };
    pipe("pipe");
    for (path, kind) in [
        ("pipe", "a pipe"),
        ("/dev/zero", "a device"),
        ("/dev/stdin", "a device"),
    ] {
        let reason = format!("not a regular file, but {kind}");
        let words = [path, reason.as_str()];
        for arguments in [
            &["info", path][..],
            &["bench", path],
            &["import", path],
            &["render", path, "--midi", "song.mid"],
            &["render", "small.ondes", "--midi", path],
            &["render", "small.ondes", "--input", path],
            &[
                "render",
                "small.ondes",
                "--midi",
                "song.mid",
                "--cabinet",
                path,
            ],
        ] {
            folder.refuses(arguments, &words);
        }
        folder.write_session(path);
        folder.refuses(&["render", "a.ondes-session", "--out", "x.wav"], &words);
    }
    pipe("pipe.ondes-session");
    folder.refuses(
        &["render", "pipe.ondes-session", "--seconds", "1"],
        &["a pipe"],
    );
    // In a batch it is a file that fails.
    std::fs::create_dir(folder.path("songs")).expect("a folder is made");
    std::fs::copy(folder.path("song.mid"), folder.path("songs/a.mid")).expect("the file is copied");
    pipe("songs/b.mid");
    let output = folder.run(&["render", "small.ondes", "--midi", "songs", "--out", "out"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && errors.contains("b.mid: not a regular file, but a pipe"),
        "{errors}"
    );
    assert_eq!(folder.files_in("out"), ["a.wav"]);
}

#[cfg(target_os = "linux")]
#[test]
fn models_are_not_written_over_devices_and_links_stay() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new();
    std::fs::write(folder.path("wire.json"), WIRE).expect("the file is written");
    folder.refuses(
        &["import", "wire.json", "-o", "/dev/full"],
        &["/dev/full: not a regular file, but a device"],
    );
    assert!(
        std::fs::metadata("/dev/full")
            .expect("it is there")
            .file_type()
            .is_char_device()
    );
    std::fs::write(folder.path("target.ondes"), "before").expect("the file is written");
    std::os::unix::fs::symlink("target.ondes", folder.path("link.ondes")).expect("a link is made");
    assert!(
        folder
            .run(&["import", "wire.json", "-o", "link.ondes"])
            .status
            .success()
    );
    assert!(
        std::fs::symlink_metadata(folder.path("link.ondes"))
            .expect("it is there")
            .is_symlink()
    );
    assert!(file::read(&folder.path("target.ondes")).is_ok());
    assert_eq!(
        folder.files(),
        ["link.ondes", "small.ondes", "target.ondes", "wire.json"]
    );
}

/// A capture of one dense layer.
const WIRE: &str = r#"{ "in_shape": [null, null, 1], "layers": [
    { "type": "dense", "activation": "", "shape": [null, null, 1], "weights": [[[1.0]], [0.0]] }] }"#;

#[test]
fn text_is_refused_as_midi_and_audio() {
    let folder = Folder::new();
    let text = "It was a dark and stormy night. ".repeat(100);
    for name in ["text.mid", "text.wav", "text.mp3", "text.ondes"] {
        std::fs::write(folder.path(name), &text).expect("the file is written");
    }
    folder.refuses(
        &["render", "small.ondes", "--midi", "text.mid"],
        &["text.mid: not a MIDI file"],
    );
    for name in ["text.wav", "text.mp3"] {
        folder.refuses(
            &["render", "small.ondes", "--input", name],
            &[name, "not audio"],
        );
    }
    folder.refuses(&["info", "text.ondes"], &["text.ondes: "]);
}

#[test]
fn empty_recordings_are_refused() {
    let folder = Folder::new();
    write_wav(&folder.path("empty.wav"), 48_000, 1, std::iter::empty());
    folder.refuses(
        &["render", "small.ondes", "--input", "empty.wav"],
        &["empty.wav: contains no audio"],
    );
}

#[test]
fn a_single_sample_renders() {
    let folder = Folder::new();
    write_wav(&folder.path("click.wav"), 44_100, 1, std::iter::once(0.5));
    let report = folder.json(&["render", "small.ondes", "--input", "click.wav"]);
    assert_eq!(report["frames"], 1 + 441);
}

#[test]
fn midi_files_without_notes_are_refused() {
    let folder = Folder::new();
    std::fs::write(
        folder.path("empty.mid"),
        crate::common::midi(&["Nothing"], &[]),
    )
    .expect("the file is written");
    folder.refuses(
        &["render", "small.ondes", "--midi", "empty.mid"],
        &["empty.mid: contains no notes"],
    );
}

#[test]
fn invalid_command_lines_are_refused() {
    let folder = with_score();
    let wrong: &[&[&str]] = &[
        &[],
        &["sing"],
        &["render"],
        &["render", "small.ondes"],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--input",
            "song.mid",
        ],
        &["render", "small.ondes", "--midi", "song.mid", "--bits", "8"],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--block",
            "0",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--sample-rate",
            "10",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--transpose",
            "NaN",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--transpose",
            "inf",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--control",
            "noise=NaN",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--control",
            "noise=1e39",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--normalize",
            "nan",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--normalize",
            "-inf",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--treble",
            "nan",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--interface-dbu",
            "inf",
        ],
        &["render", "small.ondes", "--seconds", "nan"],
        &["render", "small.ondes", "--seconds", "inf"],
        &["bench", "small.ondes", "--seconds", "nan"],
        &["bench", "small.ondes", "--size", "inf"],
        #[cfg(feature = "devices")]
        &["play", "wind", "--seconds", "nan"],
        #[cfg(feature = "devices")]
        &["play", "wind", "--seconds", "inf"],
        #[cfg(feature = "devices")]
        &["play", "wind", "--seconds", "-1"],
        #[cfg(feature = "devices")]
        &["play", "wind", "--seconds", "0"],
        #[cfg(feature = "devices")]
        &["play", "wind", "--transpose", "nan"],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--channel",
            "17",
        ],
        &[
            "render",
            "small.ondes",
            "--midi",
            "song.mid",
            "--voices",
            "0",
        ],
        &[
            "render",
            "small.ondes",
            "--input",
            "song.mid",
            "--track",
            "1",
        ],
    ];
    for arguments in wrong {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}
