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
    for length in [1, 8, 100, whole.len() / 2, whole.len() - 1] {
        refuse_model(&folder, &whole[..length], &["not an Ondes model"]);
    }
}

#[test]
fn unsuitable_executors_are_refused() {
    let folder = with_score();
    let render = ["render", "small.ondes", "--midi", "song.mid"];
    folder.refuses(&[&render[..], &["--executor", "torch"]].concat(), &["small.ondes: ", "--executor native"]);
    folder
        .refuses(&[&render[..], &["--device", "cpu"]].concat(), &["small.ondes: ", "--device cpu", "--executor torch"]);
    folder.refuses(&["bench", "small.ondes", "--device", "cuda:1"], &["small.ondes: ", "--device cuda:1"]);
    folder.refuses(
        &[&render[..], &["--precision", "f16"]].concat(),
        &["small.ondes: ", "--precision f16", "--executor torch"],
    );
    folder.refuses(&["bench", "small.ondes", "--precision", "bf16"], &["small.ondes: ", "--precision bf16"]);
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
    let at = bytes.windows(version.len()).position(|window| window == version).expect("the header has a version");
    bytes[at + version.len() - 1] = b'7';
    refuse_model(&folder, &bytes, &["format version 7 is not supported"]);
}

#[test]
fn effects_refuse_notes() {
    let folder = with_score();
    file::write(&effect(), &folder.path("half.ondes")).expect("the model is written");
    folder.refuses(&["render", "half.ondes", "--midi", "song.mid"], &["half.ondes: ", "effect", "only instruments"]);
}

#[test]
fn missing_files_are_reported() {
    let folder = with_score();
    folder.refuses(&["info", "none.ondes"], &["none.ondes: No such file"]);
    folder.refuses(&["render", "none.ondes", "--midi", "song.mid"], &["none.ondes: No such file"]);
    folder.refuses(&["render", "small.ondes", "--midi", "none.mid"], &["none.mid: No such file"]);
    folder.refuses(&["render", "small.ondes", "--input", "none.wav"], &["none.wav: no such file"]);
    folder.refuses(&["render", ".", "--midi", "song.mid"], &[".: ", "not a regular file"]);
    folder.refuses(&["render", "small.ondes", "--midi", "."], &[".: "]);
    folder.refuses(&["render", "small.ondes", "--input", "."], &[".: "]);
}

#[test]
fn text_is_refused_as_midi_and_audio() {
    let folder = Folder::new();
    let text = "It was a dark and stormy night. ".repeat(100);
    for name in ["text.mid", "text.wav", "text.mp3", "text.ondes"] {
        std::fs::write(folder.path(name), &text).expect("the file is written");
    }
    folder.refuses(&["render", "small.ondes", "--midi", "text.mid"], &["text.mid: not a MIDI file"]);
    for name in ["text.wav", "text.mp3"] {
        folder.refuses(&["render", "small.ondes", "--input", name], &[name, "not audio"]);
    }
    folder.refuses(&["info", "text.ondes"], &["text.ondes: "]);
}

#[test]
fn empty_recordings_are_refused() {
    let folder = Folder::new();
    write_wav(&folder.path("empty.wav"), 48_000, 1, std::iter::empty());
    folder.refuses(&["render", "small.ondes", "--input", "empty.wav"], &["empty.wav: contains no audio"]);
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
    std::fs::write(folder.path("empty.mid"), crate::common::midi(&["Nothing"], &[])).expect("the file is written");
    folder.refuses(&["render", "small.ondes", "--midi", "empty.mid"], &["empty.mid: contains no notes"]);
}

#[test]
fn invalid_command_lines_are_refused() {
    let folder = with_score();
    let wrong: &[&[&str]] = &[
        &[],
        &["sing"],
        &["render"],
        &["render", "small.ondes"],
        &["render", "small.ondes", "--midi", "song.mid", "--input", "song.mid"],
        &["render", "small.ondes", "--midi", "song.mid", "--bits", "8"],
        &["render", "small.ondes", "--midi", "song.mid", "--block", "0"],
        &["render", "small.ondes", "--midi", "song.mid", "--sample-rate", "10"],
        &["render", "small.ondes", "--midi", "song.mid", "--transpose", "NaN"],
        &["render", "small.ondes", "--midi", "song.mid", "--channel", "17"],
        &["render", "small.ondes", "--midi", "song.mid", "--voices", "0"],
        &["render", "small.ondes", "--input", "song.mid", "--track", "1"],
    ];
    for arguments in wrong {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}
