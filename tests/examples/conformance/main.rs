//! Reads the files of a folder of `tests/conformance` and what other programs made of them, for
//! `cargo xtask conformance`: prints a JSON array, a line of the table each.
//!
//! Arguments: the kind of files, and a folder with the other programs' results, `FILE.PROGRAM.wav`
//! or another extension each.

mod nam_rs;

use std::path::{Path, PathBuf};

use ondes_tests::conformance::{answers, audio, captures, folder, midi};
use serde_json::Value;

/// Programs in the order of the columns.
const AUDIO_PROGRAMS: [&str; 2] = ["ffmpeg.wav", "sox.wav"];
const MIDI_PROGRAMS: [&str; 2] = ["fluidsynth.json", "timidity.mid"];

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [kind, results] = arguments.as_slice() else {
        panic!("usage: conformance KIND RESULTS")
    };
    let name = kind.to_str().unwrap_or_default();
    let files = folder(name);
    let lines: Vec<Value> = match name {
        "audio" => {
            let line = |answer: audio::Answer| {
                audio::compare(
                    &files,
                    &answer,
                    &others(results, &answer.file, &AUDIO_PROGRAMS),
                )
            };
            audio::answers(&files).into_iter().map(line).collect()
        }
        "midi" => {
            let line = |answer: midi::Answer| {
                midi::compare(
                    &files,
                    &answer,
                    &others(results, &answer.file, &MIDI_PROGRAMS),
                )
            };
            answers(&files).into_iter().map(line).collect()
        }
        "captures" => {
            let input = captures::input(&files);
            let line = |answer: captures::Answer| {
                let path = files.join(&answer.file);
                let is_nam = path.extension().is_some_and(|extension| extension == "nam");
                captures::compare(&files, &answer, is_nam.then(|| nam_rs::play(&path, &input)))
            };
            answers(&files).into_iter().map(line).collect()
        }
        _ => panic!("unknown kind of files: {name}"),
    };
    println!("{}", Value::Array(lines));
}

/// Returns the paths of the other programs' results.
fn others(results: &Path, file: &str, programs: &[&str]) -> Vec<PathBuf> {
    programs
        .iter()
        .map(|program| results.join(format!("{file}.{program}")))
        .collect()
}
